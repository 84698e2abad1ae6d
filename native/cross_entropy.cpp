#include "cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "class_columns.hpp"

namespace bmpaudit {

void cross_entropy_gradient(int num_classes, const std::vector<int32_t> &labels, double smoothing, Matrix &rows) {
    const int64_t num_rows = rows.rows();
    const int blocks = rows.blocks();
    const float share = 1.0f / static_cast<float>(num_rows - std::count(labels.begin(), labels.end(), -1));
    const float of_label = share * static_cast<float>(1.0 - smoothing);
    const float of_each = share * static_cast<float>(smoothing / num_classes);
    ClassColumns classes(num_classes);
    for (int64_t from = 0; from < num_rows; from += kLanes) {
        classes.load(rows, from);
        const int count = classes.num_rows();
        Lanes largest = splat(-INFINITY), total = {}, tile[kLanes];
        for (int c = 0; c < num_classes; ++c) largest = max_lanes(largest, classes[c]);
        for (int c = 0; c < num_classes; ++c) total += classes[c] = exp_lanes(classes[c] - largest);
        const Lanes scale = share / total;
        for (int b = 0; b < blocks; ++b) {
            for (int c = 0; c < kLanes; ++c) tile[c] = scale * classes[b * kLanes + c];
            transpose(tile);
            for (int i = 0; i < count; ++i) rows.row(from + i)[b] = tile[i];
        }
        for (int i = 0; i < count; ++i) {
            float *row = rows.floats(from + i);
            if (labels[from + i] < 0) {
                std::fill_n(rows.row(from + i), blocks, Lanes{});
                continue;
            }
            row[labels[from + i]] -= of_label;
            if (smoothing > 0)
                for (int c = 0; c < num_classes; ++c) row[c] -= of_each;
        }
    }
}

double mean_cross_entropy(const Matrix &logits, int num_classes, const std::vector<int32_t> &rows,
                          const std::vector<int32_t> &labels) {
    double total = 0;
    for (const int32_t i : rows) {
        const float *o = logits.floats(i);
        const double largest = *std::max_element(o, o + num_classes);
        double sum = 0;
        for (int c = 0; c < num_classes; ++c) sum += std::exp(o[c] - largest);
        total += largest + std::log(sum) - o[labels[i]];
    }
    return total / static_cast<double>(rows.size());
}

}  // namespace bmpaudit
