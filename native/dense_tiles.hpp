// A dense matrix in tiles, for products with it and with its transpose, with or without a mask of dropout.
#pragma once

#include <cstdint>
#include <vector>

#include "lanes.hpp"
#include "random.hpp"

namespace bmpaudit {

// Tiles of kTileRows rows stand one after another, and in a tile panels of sixteen columns: both products read it from
// begin to end, as fast as memory gives it, and a tile of the other factor stays in the first-level cache. Dropout is
// sixteen bits for the sixteen numbers of a row and panel, applied when they are read.
class DenseTiles {
  public:
    // `row(i)` is where the numbers of row i begin.
    template <typename Row> void build(int64_t num_rows, int num_columns, Row row) {
        reshape(num_rows, num_columns);
        for (int64_t i = 0; i < num_rows; ++i) {
            const float *from = row(i);
            for (int k = 0; k < num_columns; ++k) floats(i, k / kLanes)[k % kLanes] = from[k];
        }
    }
    // Keeps each number with the coins' probability and scales it so that its mean stays.
    void draw_mask(CoinFlips &keep);

    // result[i] = Σ_k x[i][k] · weight[k]
    void times(const Matrix &weight, Matrix &result) const;
    // result[k] = Σ_i x[i][k] · gradient[i]
    void transposed_times(const Matrix &gradient, Matrix &result) const;

  private:
    static constexpr int64_t kTileRows = 64;

    void reshape(int64_t num_rows, int num_columns);
    int64_t place(int64_t row, int panel) const {
        return (row / kTileRows * num_panels_ + panel) * kTileRows + row % kTileRows;
    }
    float *floats(int64_t row, int panel) { return reinterpret_cast<float *>(&numbers_[place(row, panel)]); }
    // `count` rows of a panel from `row` on, all of one tile: where they stand, or masked in the buffer.
    const float *masked(int64_t row, int panel, int64_t count, Lanes *buffer) const;
    int columns_of(int panel) const { return std::min(kLanes, num_columns_ - panel * kLanes); }

    int64_t num_rows_ = 0;
    int num_columns_ = 0, num_panels_ = 0;
    std::vector<Lanes> numbers_;
    std::vector<uint16_t> mask_;  // empty where nothing is dropped
    float scale_ = 1.0f;
};

}  // namespace bmpaudit
