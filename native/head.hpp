// The last layer and the loss, there and back in one pass over the rows that the layer multiplies with its weight.
//
// Sixteen rows at a time are turned into columns, so that no lane beyond the classes is multiplied, and their logits stay
// in the first-level cache. Each of the three steps is done for some tiles of sixteen before the next: what a tile waits
// for is then filled with the work of the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cross_entropy.hpp"
#include "lanes.hpp"
#include "layer.hpp"

namespace bmpaudit {

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
