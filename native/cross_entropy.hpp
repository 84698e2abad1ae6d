// The loss that training lowers.
#pragma once

#include <cstdint>
#include <vector>

#include "lanes.hpp"

namespace bmpaudit {

// From logits to (softmax(logits[i]) - the i-th label's unit vector) / labels in each row: the gradient of the mean
// cross-entropy. `labels` holds one a row, or -1 where a row has none, and then gets a gradient of 0. All classes get a share
// `smoothing` of each label, in equal parts.
void cross_entropy_gradient(int num_classes, const std::vector<int32_t> &labels, double smoothing, Matrix &rows);

// The mean cross-entropy of some rows, whose labels are `labels` of the row.
double mean_cross_entropy(const Matrix &logits, int num_classes, const std::vector<int32_t> &rows,
                          const std::vector<int32_t> &labels);

}  // namespace bmpaudit
