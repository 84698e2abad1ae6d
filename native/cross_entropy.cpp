#include "cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "class_columns.hpp"

namespace bmpaudit {

CrossEntropy::CrossEntropy(int num_classes, const std::vector<int32_t> &labels, double smoothing)
    : num_classes_(num_classes), labels_(labels),
      share_(1.0f / static_cast<float>(labels.size() - std::count(labels.begin(), labels.end(), -1))),
      of_label_(share_ * static_cast<float>(1.0 - smoothing)),
      of_each_(share_ * static_cast<float>(smoothing / num_classes)) {}

void CrossEntropy::to_gradient(Matrix &rows) const {
    ClassColumns classes(num_classes_);
    for (int64_t from = 0; from < rows.rows(); from += kLanes) {
        classes.load(rows, from);
        to_gradient(from, num_classes_, &classes[0]);
        for (int b = 0; b < rows.blocks(); ++b) {
            Lanes tile[kLanes];
            for (int c = 0; c < kLanes; ++c) tile[c] = classes[b * kLanes + c];
            transpose(tile);
            for (int i = 0; i < classes.num_rows(); ++i) rows.row(from + i)[b] = tile[i];
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
