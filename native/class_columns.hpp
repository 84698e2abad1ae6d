// Logits of sixteen rows at a time, transposed: a vector for each class, with a lane for each row. Largest values and sums
// then run over vectors, instead of over the lanes of each row, and lanes beyond the classes take no time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lanes.hpp"

namespace bmpaudit {

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

}  // namespace bmpaudit
