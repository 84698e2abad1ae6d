// The loss that training lowers.
#pragma once

#include <cstdint>
#include <vector>

#include "lanes.hpp"

namespace bmpaudit {

// gradient[i] = (softmax(logits[i]) - the i-th label's unit vector) / rows: that of the mean cross-entropy. `labels` holds
// one a row. All classes get a share `smoothing` of each label, in equal parts.
void cross_entropy_gradient(const Matrix &logits, int num_classes, const std::vector<int32_t> &labels, double smoothing,
                            Matrix &gradient);

}  // namespace bmpaudit
