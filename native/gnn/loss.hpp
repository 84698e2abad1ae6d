// Logits of many rows: the loss, the last layer together with it, and label margins.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/lanes.hpp"
#include "gnn/layer.hpp"

namespace bmpaudit {

// Logits of sixteen rows at a time, transposed: a vector for each class, with a lane for each row. Largest values and sums
// then run over vectors, instead of over the lanes of each row, and lanes beyond the classes take no time.

class ClassColumns {
  public:
    explicit ClassColumns(int num_classes)
        : num_classes_(num_classes), columns_(static_cast<size_t>(blocks_for(num_classes)) * kLanes) {}

    // Takes in sixteen rows from `from` on; lanes beyond the last row repeat it.
    void load(const Matrix &rows, int64_t from) {
        num_rows_ = static_cast<int>(std::min<int64_t>(kLanes, rows.rows() - from));
        Lanes tile[kLanes];
        for (int b = 0; b < rows.blocks(); ++b) {
            for (int i = 0; i < kLanes; ++i) tile[i] = rows.row(from + std::min(i, num_rows_ - 1))[b];
            transpose(tile);
            std::copy_n(tile, std::min(kLanes, num_classes_ - b * kLanes), &columns_[static_cast<size_t>(b) * kLanes]);
        }
    }
    // How many lanes stand for rows of their own.
    int num_rows() const { return num_rows_; }
    Lanes &operator[](int c) { return columns_[c]; }
    const Lanes &operator[](int c) const { return columns_[c]; }

  private:
    int num_classes_, num_rows_ = 0;
    std::vector<Lanes> columns_;  // up to a multiple of sixteen classes, those beyond num_classes_ being zeros
};

// The loss that training lowers.

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

// What logits say of labels.

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

// The last layer and the loss, there and back in one pass over the rows that the layer multiplies with its weight.
//
// Sixteen rows at a time are turned into columns, so that no lane beyond the classes is multiplied, and their logits stay
// in the first-level cache. Each of the three steps is done for some tiles of sixteen before the next: what a tile waits
// for is then filled with the work of the others.

class Head {
  public:
    // Of rows with logits rows[i] · weight + bias: the gradients of weight and bias, in the layer, and those of the rows.
    void learn(const Matrix &rows, const CrossEntropy &loss, Layer &layer, Matrix &rows_gradient);

  private:
    static constexpr int kMostTogether = 8;  // classes whose sums stay in registers
    static constexpr int kTiles = 8;

    void begin(const Matrix &rows, const CrossEntropy &loss, const Layer &layer);
    void save_gradients(int num_classes, Layer &layer) const;
    // Classes go in groups of Q; `Groups` is a number of groups, which the compiler may know.
    template <int Q, typename Groups>
    void learn_in(Groups groups, const Matrix &rows, const CrossEntropy &loss, Matrix &rows_gradient);
    template <int Q, typename Groups> void multiply(Groups groups, const Lanes *tile, int blocks, Lanes *classes) const;
    // From the gradients of logits to those of rows and weight, of one block of lanes.
    template <int Q, typename Groups>
    void turn_back(Groups groups, int64_t num_rows, int b, const Lanes *rows, Lanes *rows_gradient);

    int padded_classes_ = 0;            // zeros after the last class, up to a full group
    std::vector<float> bias_, weight_;  // for each class; for each input and class
    Matrix transposed_;                 // the weight, classes x inputs, and its gradient
    Matrix gradient_;
    std::vector<Lanes> bias_gradient_;  // of each class, in sixteen parts
    std::vector<Lanes> classes_;        // of each tile and class: logits, then their gradients; a lane for each row
    std::vector<Lanes> last_tile_;      // filled up with zeros
};

}  // namespace bmpaudit
