// Products with a sparse matrix as its rows are: for one that is multiplied once, which a layout would not repay.
#pragma once

#include <cstdint>

#include "lanes.hpp"
#include "matrix_products.hpp"
#include "sparse_product.hpp"

namespace bmpaudit {

// result[r] = Σ over the entries e of row r of value(e) · source[column of e].
template <typename Value>
void rows_times(const CompressedRows &rows, Value value, const Matrix &source, Matrix &result) {
    result.reshape(rows.num_rows(), source.blocks());
    for_block_groups(source.blocks(), [&](auto width, int first) {
        constexpr int B = decltype(width)::value, U = B == 1 ? 4 : 2;  // sums side by side, as in SparseProduct
        const RowPointers to(result, first);
        for (int64_t row = 0; row < rows.num_rows(); ++row) {
            Lanes parts[U][B] = {};
            const int64_t end = rows.start[row + 1];
            int64_t e = rows.start[row];
            const auto add = [&](int64_t entry, Lanes *part) {
                const Lanes *from = source.row(rows.columns[entry]) + first;
                for (int b = 0; b < B; ++b) part[b] += value(entry) * from[b];
            };
            for (; e + U <= end; e += U)
                for (int u = 0; u < U; ++u) add(e + u, parts[u]);
            for (; e < end; ++e) add(e, parts[0]);
            for (int b = 0; b < B; ++b) {
                Lanes sum = parts[0][b] + parts[1][b];
                if constexpr (U == 4) sum += parts[2][b] + parts[3][b];
                to(row)[b] = sum;
            }
        }
    });
}

// result[c] = Σ over the entries e of column c of value(e) · source[row of e]; `result` has its shape.
template <typename Value>
void columns_times(const CompressedRows &rows, Value value, const Matrix &source, Matrix &result) {
    result.fill_zero();
    for_block_groups(source.blocks(), [&](auto width, int first) {
        constexpr int B = decltype(width)::value;
        const RowPointers to(result, first);
        for (int64_t row = 0; row < rows.num_rows(); ++row) {
            Lanes from[B];
            for (int b = 0; b < B; ++b) from[b] = source.row(row)[first + b];
            for (int64_t e = rows.start[row]; e < rows.start[row + 1]; ++e)
                for (int b = 0; b < B; ++b) to(rows.columns[e])[b] += value(e) * from[b];
        }
    });
}

}  // namespace bmpaudit
