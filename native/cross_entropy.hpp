// The loss that training lowers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lanes.hpp"

namespace bmpaudit {

// The mean cross-entropy of rows of logits. `labels` holds one a row, or -1 where a row has none, which then does not count.
// All classes get a share `smoothing` of each label, in equal parts.
class CrossEntropy {
  public:
    CrossEntropy(int num_classes, const std::vector<int32_t> &labels, double smoothing);
    int num_classes() const { return num_classes_; }
    // From logits to their gradient, (softmax(logits[i]) - the i-th label's unit vector) / labels: of sixteen rows from
    // `from` on, in columns. Rows that do not count, and lanes beyond the last row, get 0. `Count` may be a number that
    // the compiler knows.
    template <typename Count> void to_gradient(int64_t from, Count num_classes, Lanes *classes) const {
        IntLanes label = IntLanes{} - 1;
        const int64_t count = std::min<int64_t>(kLanes, static_cast<int64_t>(labels_.size()) - from);
        if (count == kLanes) std::memcpy(&label, labels_.data() + from, sizeof label);
        else std::memcpy(&label, labels_.data() + from, count * sizeof(int32_t));
        Lanes largest = splat(-INFINITY), total = {};
        for (int c = 0; c < num_classes; ++c) largest = max_lanes(largest, classes[c]);
        for (int c = 0; c < num_classes; ++c) total += classes[c] = exp_lanes(classes[c] - largest);
        const Lanes scale = share_ / total;
        for (int c = 0; c < num_classes; ++c) {
            const Lanes wanted = select(label == c, splat(of_each_ + of_label_), splat(of_each_));
            classes[c] = select(label >= 0, scale * classes[c] - wanted, Lanes{});
        }
    }
    // The same of all rows.
    void to_gradient(Matrix &rows) const;

  private:
    int num_classes_;
    const std::vector<int32_t> &labels_;
    float share_, of_label_, of_each_;
};

// The mean cross-entropy of some rows, whose labels are `labels` of the row.
double mean_cross_entropy(const Matrix &logits, int num_classes, const std::vector<int32_t> &rows,
                          const std::vector<int32_t> &labels);

}  // namespace bmpaudit
