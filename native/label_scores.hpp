// What logits say of labels.
#pragma once

#include <cstdint>

#include "class_columns.hpp"
#include "lanes.hpp"

namespace bmpaudit {

// z = o_y - log Σ_{c≠y} e^{o_c} of each row, the label margin of Algorithm 2.
void label_margins(const Matrix &logits, int num_classes, const int32_t *labels, float *margins);

// Calls use(row, class) with the class of each row's largest logit; of equals, the first.
template <typename Use> void for_predicted_classes(const Matrix &logits, int num_classes, Use use) {
    ClassColumns columns(num_classes);
    for (int64_t from = 0; from < logits.rows(); from += kLanes) {
        columns.load(logits, from);
        Lanes largest = columns[0];
        IntLanes predicted = {};
        for (int c = 1; c < num_classes; ++c) {
            const auto is_larger = columns[c] > largest;
            largest = select(is_larger, columns[c], largest);
            predicted = select(is_larger, IntLanes{} + c, predicted);
        }
        for (int i = 0; i < columns.num_rows(); ++i) use(from + i, predicted[i]);
    }
}

}  // namespace bmpaudit
