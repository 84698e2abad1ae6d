// Products of small dense and sparse matrices with accumulators in registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "lanes.hpp"

namespace bmpaudit {

// Calls kernel with the number of blocks as a compile-time constant, at most four at a time from `first` on, so that
// accumulators stay in registers.
template <typename Kernel> void for_block_groups(int blocks, Kernel kernel) {
    for (int first = 0; first < blocks; first += 4) {
        switch (blocks - first) {
        case 1: kernel(std::integral_constant<int, 1>{}, first); break;
        case 2: kernel(std::integral_constant<int, 2>{}, first); break;
        case 3: kernel(std::integral_constant<int, 3>{}, first); break;
        default: kernel(std::integral_constant<int, 4>{}, first);
        }
    }
}

// result[i] = Σ_k row(i)[k] · weight[k], several rows at a time to use each weight row several times.
template <typename Row> void rows_times_weight(int64_t num_rows, int inputs, Row row, const Matrix &weight, Matrix &result) {
    result.reshape(num_rows, weight.blocks());
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
            for (int64_t q = 0; q < count; ++q)
                for (int b = 0; b < B; ++b) result.row(i + q)[first + b] = sums[q][b];
        }
    });
}

// result[k] = Σ_i row(i)[k] · gradient[i], several inputs k at a time.
template <typename Row>
void transposed_rows_times(int64_t num_rows, int inputs, Row row, const Matrix &gradient, Matrix &result) {
    for_block_groups(gradient.blocks(), [&](auto width, int first) {
        constexpr int B = decltype(width)::value;
        const auto inputs_from = [&](int k, auto together) {
            constexpr int Q = decltype(together)::value;
            Lanes sums[Q][B] = {};
            for (int64_t i = 0; i < num_rows; ++i) {
                const float *x = row(i) + k;
                const Lanes *g = gradient.row(i) + first;
                for (int q = 0; q < Q; ++q)
                    for (int b = 0; b < B; ++b) sums[q][b] += x[q] * g[b];
            }
            for (int q = 0; q < Q; ++q)
                for (int b = 0; b < B; ++b) result.row(k + q)[first + b] = sums[q][b];
        };
        constexpr int Q = 16 / B;
        int k = 0;
        for (; k + Q <= inputs; k += Q) inputs_from(k, std::integral_constant<int, Q>{});
        for (; k < inputs; ++k) inputs_from(k, std::integral_constant<int, 1>{});
    });
}

// Σ over entries [begin, end) of value · rows[index], for B blocks from `first` on; `values` null where all are 1.
// Several sums run side by side, so that one addition need not wait for the one before.
template <int B>
inline void sum_of_rows(int64_t begin, int64_t end, const int32_t *indices, const float *values, const Matrix &rows, int first,
                        Lanes *sum) {
    constexpr int U = B == 1 ? 4 : 2;
    Lanes parts[U][B] = {};
    const auto add = [&](int64_t entry, Lanes *part) {
        const Lanes *row = rows.row(indices[entry]) + first;
        for (int b = 0; b < B; ++b) part[b] += values == nullptr ? row[b] : values[entry] * row[b];
    };
    int64_t e = begin;
    for (; e + U <= end; e += U)
        for (int u = 0; u < U; ++u) add(e + u, parts[u]);
    for (; e < end; ++e) add(e, parts[0]);
    for (int b = 0; b < B; ++b) {
        sum[b] = parts[0][b];
        for (int u = 1; u < U; ++u) sum[b] += parts[u][b];
    }
}

// result[i] = scale · Σ over the entries of row i of value · weight[index].
template <typename Range>
void sparse_times_weight(int64_t num_rows, Range range, const int32_t *indices, const float *values, const Matrix &weight,
                         float scale, Matrix &result) {
    result.reshape(num_rows, weight.blocks());
    for_block_groups(weight.blocks(), [&](auto width, int first) {
        constexpr int B = decltype(width)::value;
        for (int64_t i = 0; i < num_rows; ++i) {
            const auto [begin, end] = range(i);
            Lanes sum[B];
            sum_of_rows<B>(begin, end, indices, values, weight, first, sum);
            for (int b = 0; b < B; ++b) result.row(i)[first + b] = scale * sum[b];
        }
    });
}

}  // namespace bmpaudit
