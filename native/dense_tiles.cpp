#include "dense_tiles.hpp"

#include <algorithm>

#include "matrix_products.hpp"

namespace bmpaudit {

void DenseTiles::reshape(int64_t num_rows, int num_columns) {
    num_rows_ = num_rows;
    num_columns_ = num_columns;
    num_panels_ = blocks_for(num_columns);
    const int64_t num_tiles = (num_rows + kTileRows - 1) / kTileRows;
    numbers_.assign(num_tiles * num_panels_ * kTileRows, Lanes{});
    mask_.clear();
    scale_ = 1.0f;
}

void DenseTiles::draw_mask(CoinFlips &keep) {
    scale_ = static_cast<float>(1.0 / keep.probability());
    mask_.resize(numbers_.size());
    for (uint16_t &coins : mask_) coins = static_cast<uint16_t>(keep.next_sixteen());
}

const float *DenseTiles::masked(int64_t row, int panel, int64_t count, Lanes *buffer) const {
    const int64_t from = place(row, panel);
    if (mask_.empty()) return reinterpret_cast<const float *>(&numbers_[from]);
    for (int64_t q = 0; q < count; ++q) buffer[q] = only(mask_[from + q], scale_ * numbers_[from + q]);
    return reinterpret_cast<const float *>(buffer);
}

void DenseTiles::times(const Matrix &weight, Matrix &result) const {
    result.reshape(num_rows_, weight.blocks());
    for_block_groups(weight.blocks(), [&](auto width, int first) {
        constexpr int B = decltype(width)::value;
        constexpr int64_t R = B == 1 ? 8 : 4;  // rows that share a row of the weight; a tile holds a multiple of them
        static_assert(kTileRows % R == 0);
        Lanes buffer[R];
        for (int64_t i = 0; i < num_rows_; i += R) {
            Lanes sums[R][B] = {};
            for (int panel = 0; panel < num_panels_; ++panel) {
                const float *x = masked(i, panel, R, buffer);
                for (int k = 0; k < columns_of(panel); ++k) {
                    const Lanes *w = weight.row(panel * kLanes + k) + first;
                    for (int64_t q = 0; q < R; ++q)
                        for (int b = 0; b < B; ++b) sums[q][b] += x[q * kLanes + k] * w[b];
                }
            }
            // A loop of known length keeps the sums in registers.
            for (int64_t q = 0; q < R; ++q)
                if (q < num_rows_ - i)
                    for (int b = 0; b < B; ++b) result.row(i + q)[first + b] = sums[q][b];
        }
    });
}

void DenseTiles::transposed_times(const Matrix &gradient, Matrix &result) const {
    result.reshape(num_columns_, gradient.blocks());
    result.fill_zero();
    for_block_groups(gradient.blocks(), [&](auto width, int first) {
        constexpr int B = decltype(width)::value;
        constexpr int Q = B == 3 ? 4 : 16 / B;  // columns whose sums are in registers; a panel holds a multiple of them
        static_assert(kLanes % Q == 0);
        Lanes buffer[kTileRows];
        for (int64_t from = 0; from < num_rows_; from += kTileRows) {
            const int64_t count = std::min(kTileRows, num_rows_ - from);
            for (int panel = 0; panel < num_panels_; ++panel) {
                const float *x = masked(from, panel, count, buffer);
                for (int k = 0; k < columns_of(panel); k += Q, x += Q) {
                    Lanes sums[Q][B] = {};
                    for (int64_t i = 0; i < count; ++i) {
                        const Lanes *g = gradient.row(from + i) + first;
                        for (int q = 0; q < Q; ++q)
                            for (int b = 0; b < B; ++b) sums[q][b] += x[i * kLanes + q] * g[b];
                    }
                    for (int q = 0; q < Q; ++q)
                        if (q < columns_of(panel) - k)
                            for (int b = 0; b < B; ++b) result.row(panel * kLanes + k + q)[first + b] += sums[q][b];
                }
            }
        }
    });
}

}  // namespace bmpaudit
