#include "label_scores.hpp"

#include <cmath>
#include <cstring>

namespace bmpaudit {

void label_margins(const Matrix &logits, int num_classes, const int32_t *labels, float *margins) {
    ClassColumns columns(num_classes);
    for (int64_t from = 0; from < logits.rows(); from += kLanes) {
        columns.load(logits, from);
        IntLanes label = {};
        std::memcpy(&label, labels + from, columns.num_rows() * sizeof(int32_t));
        Lanes own = {}, top = splat(-INFINITY), total = {};
        for (int c = 0; c < num_classes; ++c) {
            own = select(label == c, columns[c], own);
            top = max_lanes(top, select(label == c, splat(-INFINITY), columns[c]));
        }
        for (int first = 0; first < num_classes; first += kLanes) {
            Lanes weights[kLanes] = {};
            for (int c = first; c < std::min(first + kLanes, num_classes); ++c)
                weights[c - first] = select(label == c, Lanes{}, exp_lanes(columns[c] - top));
            for (int by = kLanes / 2; by > 0; by /= 2)
                for (int c = 0; c < by; ++c) weights[c] += weights[c + by];
            total += weights[0];
        }
        for (int i = 0; i < columns.num_rows(); ++i) margins[from + i] = own[i] - (top[i] + std::log(total[i]));
    }
}

}  // namespace bmpaudit
