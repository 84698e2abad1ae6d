// Products of small dense matrices with accumulators in registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "lanes.hpp"

namespace bmpaudit {

constexpr int kMostBlocksTogether = 4;

// Calls kernel with the number of blocks as a compile-time constant, at most four at a time from `first` on, so that
// accumulators stay in registers.
template <typename Kernel> void for_block_groups(int blocks, Kernel kernel) {
    for (int first = 0; first < blocks; first += kMostBlocksTogether) {
        switch (blocks - first) {
        case 1: kernel(std::integral_constant<int, 1>{}, first); break;
        case 2: kernel(std::integral_constant<int, 2>{}, first); break;
        case 3: kernel(std::integral_constant<int, 3>{}, first); break;
        default: kernel(std::integral_constant<int, kMostBlocksTogether>{}, first);
        }
    }
}

// result[i] = rows[i] + bias.
inline void add_to_rows(const Matrix &rows, const Lanes *bias, Matrix &result) {
    result.reshape(rows.rows(), rows.blocks());
    for (int64_t i = 0; i < rows.rows(); ++i)
        for (int b = 0; b < rows.blocks(); ++b) result.row(i)[b] = rows.row(i)[b] + bias[b];
}

// result[0] = Σ_i rows[i], in four sums side by side.
inline void sum_of_rows(const Matrix &rows, Matrix &result) {
    for (int b = 0; b < rows.blocks(); ++b) {
        Lanes parts[4] = {};
        int64_t i = 0;
        for (; i + 4 <= rows.rows(); i += 4)
            for (int u = 0; u < 4; ++u) parts[u] += rows.row(i + u)[b];
        for (; i < rows.rows(); ++i) parts[0] += rows.row(i)[b];
        result.row(0)[b] = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }
}

// Calls finish(i, block, sum) with each block of Σ_k row(i)[k] · weight[k]; several rows at a time use each weight row.
template <typename Row, typename Finish>
void for_rows_times_weight(int64_t num_rows, int inputs, Row row, const Matrix &weight, Finish finish) {
    for_block_groups(weight.blocks(), [&](auto width, int first) {
        constexpr int B = decltype(width)::value, R = B == 1 ? 8 : 4;
        for (int64_t i = 0; i < num_rows; i += R) {
            const int64_t count = std::min<int64_t>(R, num_rows - i);
            const float *rows[R];
            for (int64_t q = 0; q < R; ++q) rows[q] = row(i + std::min(q, count - 1));
            Lanes sums[R][B] = {};
            for (int k = 0; k < inputs; ++k) {
                const Lanes *w = weight.row(k) + first;
                for (int q = 0; q < R; ++q)
                    for (int b = 0; b < B; ++b) sums[q][b] += rows[q][k] * w[b];
            }
            // A loop of known length keeps the sums in registers.
            for (int64_t q = 0; q < R; ++q)
                if (q < count)
                    for (int b = 0; b < B; ++b) finish(i + q, first + b, sums[q][b]);
        }
    });
}

// result[i] = Σ_k row(i)[k] · weight[k].
template <typename Row> void rows_times_weight(int64_t num_rows, int inputs, Row row, const Matrix &weight, Matrix &result) {
    result.reshape(num_rows, weight.blocks());
    const RowPointers to(result, 0);
    for_rows_times_weight(num_rows, inputs, row, weight, [to](int64_t i, int b, const Lanes &sum) { to(i)[b] = sum; });
}

// result[k] = Σ_i row(i)[k] · other[i] for k < inputs, several k at a time. Rows and result have room up to a multiple
// of eight.
template <typename Row> void transposed_rows_times(int64_t num_rows, int inputs, Row row, const Matrix &other, Matrix &result) {
    for_block_groups(other.blocks(), [&](auto width, int first) {
        constexpr int B = decltype(width)::value;
        const auto inputs_from = [&](int k, auto together) {
            constexpr int Q = decltype(together)::value;
            Lanes sums[Q][B] = {};
            for (int64_t i = 0; i < num_rows; ++i) {
                const float *x = row(i) + k;
                const Lanes *y = other.row(i) + first;
                for (int q = 0; q < Q; ++q)
                    for (int b = 0; b < B; ++b) sums[q][b] += x[q] * y[b];
            }
            for (int q = 0; q < Q; ++q)
                for (int b = 0; b < B; ++b) result.row(k + q)[first + b] = sums[q][b];
        };
        constexpr int Q = B == 1 ? 8 : 4;
        int k = 0;
        for (; k + 4 < inputs; k += Q) inputs_from(k, std::integral_constant<int, Q>{});
        if (k < inputs) inputs_from(k, std::integral_constant<int, 4>{});
    });
}

}  // namespace bmpaudit
