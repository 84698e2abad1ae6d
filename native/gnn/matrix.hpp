// Matrices of lanes, and products with dense and sparse ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/lanes.hpp"

namespace bmpaudit {

// Rows of floats in lanes, and their products.

// Rows of lanes; columns beyond the true width are kept at zero.
class Matrix {
  public:
    // Numbers that were not there before are zeros; others are left as they are, in places that mean nothing.
    void reshape(int64_t rows, int blocks) {
        rows_ = rows;
        blocks_ = blocks;
        if (data_.size() < size()) data_.resize(size());
    }
    void fill_zero() { std::fill_n(data_.begin(), size(), Lanes{}); }
    int64_t rows() const { return rows_; }
    int blocks() const { return blocks_; }
    Lanes *row(int64_t index) { return data_.data() + index * blocks_; }
    const Lanes *row(int64_t index) const { return data_.data() + index * blocks_; }
    float *floats(int64_t index) { return reinterpret_cast<float *>(row(index)); }
    const float *floats(int64_t index) const { return reinterpret_cast<const float *>(row(index)); }

  private:
    size_t size() const { return static_cast<size_t>(rows_) * blocks_; }

    int64_t rows_ = 0;
    int blocks_ = 0;
    std::vector<Lanes> data_;  // never shrinks: a matrix that changes its shape in turns is not cleared each time
};

// Where the rows of a matrix are, from one block on: a copy in registers, for inner loops that write to memory.
class RowPointers {
  public:
    RowPointers(Matrix &matrix, int first) : from_(matrix.row(0) + first), blocks_(matrix.blocks()) {}
    Lanes *operator()(int64_t row) const { return from_ + row * blocks_; }

  private:
    Lanes *from_;
    int64_t blocks_;
};

// Products of small dense matrices with accumulators in registers.

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

// Products of one sparse matrix with many dense ones, laid out so that the rows it gathers lie in the first-level cache.

// A sparse matrix in compressed rows.
struct CompressedRows {
    std::vector<int64_t> start = {0};
    std::vector<int32_t> columns;
    std::vector<float> values;     // empty where every value is 1
    std::vector<uint32_t> origin;  // of a transposed matrix: the place of each entry before

    int64_t num_rows() const { return static_cast<int64_t>(start.size()) - 1; }
    int64_t num_entries() const { return static_cast<int64_t>(columns.size()); }
    void clear();
    // Becomes the transpose of a matrix of so many columns.
    void transpose_of(const CompressedRows &other, int32_t num_columns);
};

// result[r] = Σ over the entries of row r of value · source[column].
//
// Columns are cut into bands: the rows of the source that a band gathers fit into half of a first-level cache of 32 KB,
// where rows are long enough to be worth cutting, and their numbers within the band fit into 16 bits. In a band, rows of
// about the same place go in the order of their lengths: the end of a list that is as long as the one before it is
// foreseen by the core, and one that is not costs as much as a dozen entries.
class SparseProduct {
  public:
    // For sources of `blocks` blocks of lanes. Unless `of_entry` is null, values may change and are read anew in every
    // product: of_entry[e] is that of the matrix's entry e.
    void build(const CompressedRows &matrix, int64_t num_columns, int blocks, const float *of_entry = nullptr);
    // The product with the transpose of the matrix.
    void build_transposed(const CompressedRows &matrix, int64_t num_columns, int blocks, const float *of_entry = nullptr);
    void multiply_into(const Matrix &source, Matrix &result) const;

    // Calls finish(row, first, width, sums) once for each row and group of `width` blocks from `first` on, as
    // for_block_groups cuts them. `partial` is scratch of the result's shape, and may be where `finish` puts the sums.
    template <typename Finish> void multiply(const Matrix &source, Matrix &partial, Finish finish) const {
        multiply(source, partial, finish, source.blocks());
    }
    // The same with the first `blocks` blocks of the source alone.
    template <typename Finish> void multiply(const Matrix &source, Matrix &partial, Finish finish, int blocks) const {
        if (of_entry_ != nullptr) multiply_as<Values::elsewhere>(source, partial, finish, blocks);
        else if (!values_.empty()) multiply_as<Values::here>(source, partial, finish, blocks);
        else multiply_as<Values::ones>(source, partial, finish, blocks);
    }

  private:
    // Where a row of lanes is one register, the core's loads limit a product: four columns then take one of them, and
    // three of four values another; the fourth is loaded, as a shuffle takes the place of a multiplication. Where it is
    // several, what that saves is less than what it costs.
    static constexpr bool kTakesFours = kRegisterBytes == sizeof(Lanes);
    // What a column's number counts if the band is narrow enough: x86 multiplies with 8 while it adds up an address.
    using Unit = double;
    static constexpr int64_t kUnits = sizeof(Lanes) / sizeof(Unit);

    enum class Values { ones, here, elsewhere };
    struct List {  // the entries of one row in one band
        int32_t row, count;
    };
    struct Band {
        int64_t first_list, first_entry, first_column;
    };

    // The lists from `begin` on.
    void sort_by_length(int64_t begin);
    // visit(use) calls use(row, column, entry) for each entry of what is multiplied; entries are numbered as in `matrix`.
    template <typename Visit>
    void build(int64_t num_rows, int64_t num_columns, int blocks, const CompressedRows &matrix, const float *of_entry,
               Visit visit);

    template <Values V, typename Finish>
    void multiply_as(const Matrix &source, Matrix &partial, Finish finish, int blocks) const {
        if (bands_.size() > 2) partial.fill_zero();
        for_block_groups(blocks, [&](auto width, int first) {
            constexpr int B = decltype(width)::value;
            const RowPointers to(partial, first);
            for (size_t band = 0; band + 2 < bands_.size(); ++band) {
                sum_lists<B, V>(band, source, first, [to](int64_t row, const Lanes *sums) {
                    for (int b = 0; b < B; ++b) to(row)[b] += sums[b];
                });
            }
            const bool is_only_band = bands_.size() == 2;
            sum_lists<B, V>(bands_.size() - 2, source, first, [=](int64_t row, Lanes *sums) {
                if (!is_only_band)
                    for (int b = 0; b < B; ++b) sums[b] += to(row)[b];
                finish(row, first, width, sums);
            });
        });
    }

    // Several sums run side by side, so that one addition need not wait for the one before.
    template <int B, Values V, typename Use>
    void sum_lists(size_t band, const Matrix &source, int first, Use use) const {
        // A distance between rows that the compiler knows saves a multiplication an entry.
        constexpr std::integral_constant<int64_t, B> known{};
        if (source.blocks() == B && units_ == kUnits) sum_lists<B, V>(band, source, first, known, use);
        else sum_lists<B, V>(band, source, first, source.blocks() * kUnits / units_, use);
    }
    // `distance` is that of rows, in units, for each that a column's number counts.
    template <int B, Values V, typename Distance, typename Use>
    void sum_lists(size_t band, const Matrix &source, int first, Distance distance, Use use) const {
        constexpr int U = B == 1 ? 4 : 2;
        const auto *rows = reinterpret_cast<const Unit *>(source.row(bands_[band].first_column) + first);
        // GCC would take the sum of addresses apart, and merge shifts into one that an address cannot hold.
        asm("" : "+r"(rows));
        const auto row_of = [&](uint64_t column) {
            asm("" : "+r"(column));
            return reinterpret_cast<const Lanes *>(rows + column * distance);
        };
        const int64_t first_entry = bands_[band].first_entry;
        const uint16_t *columns = columns_.data() + first_entry;
        const float *values = V == Values::here ? values_.data() + first_entry : of_entry_;
        const uint32_t *origin = V == Values::elsewhere ? origin_.data() + first_entry : nullptr;
        const List *end = lists_.data() + bands_[band + 1].first_list;
        for (const List *list = lists_.data() + bands_[band].first_list; list != end; ++list) {
            Lanes parts[U][B] = {};
            const auto add = [&](int32_t entry, Lanes *part) {
                const Lanes *row = row_of(columns[entry]);
                for (int b = 0; b < B; ++b) {
                    if constexpr (V == Values::here) part[b] += values[entry] * row[b];
                    else if constexpr (V == Values::elsewhere) part[b] += values[origin[entry]] * row[b];
                    else part[b] += row[b];
                }
            };
            const int32_t count = list->count;
            int32_t e = 0;
            if constexpr (V == Values::here && kTakesFours) {
                for (; e < count; e += 4) {
                    uint64_t four;
                    std::memcpy(&four, columns + e, sizeof four);
                    const Lanes value = four_repeated<Lanes>(values + e);
                    for (int u = 0; u < 4; ++u) {
                        const Lanes *row = row_of(static_cast<uint16_t>(four >> (16 * u)));
                        for (int b = 0; b < B; ++b) {
                            if (u != 3) parts[u % U][b] += lane_of_fours(value, u) * row[b];
                            else parts[u % U][b] += values[e + u] * row[b];
                        }
                    }
                }
            } else {
                if constexpr (V == Values::ones && kTakesFours && U == 4) {
                    for (; e + 4 <= count; e += 4) {
                        uint64_t four;
                        std::memcpy(&four, columns + e, sizeof four);
                        for (int u = 0; u < 4; ++u) parts[u][0] += *row_of(static_cast<uint16_t>(four >> (16 * u)));
                    }
                }
                for (; e + U <= count; e += U)
                    for (int u = 0; u < U; ++u) add(e + u, parts[u]);
                for (; e < count; ++e) add(e, parts[0]);
            }
            if constexpr (V == Values::here) values += count;
            if constexpr (V == Values::elsewhere) origin += count;
            columns += count;
            Lanes sums[B];
            for (int b = 0; b < B; ++b) {
                sums[b] = parts[0][b] + parts[1][b];
                if constexpr (U == 4) sums[b] += parts[2][b] + parts[3][b];
            }
            use(list->row, sums);
        }
    }

    int64_t num_rows_ = 0;
    int64_t units_ = 1;              // that numbers of columns count, of each column
    std::vector<Band> bands_;        // and one more, where the last ends
    std::vector<List> lists_;
    // Of each entry: its column, from the band's first, and its value. Where fours are taken, lists with values are padded
    // to a multiple of four: with zeros, at a column that the list has.
    std::vector<uint16_t> columns_;
    std::vector<float> values_;
    // While building: where the next entry of a band and row goes, and lists that are sorted.
    std::vector<int64_t> next_;
    std::vector<List> unsorted_;
    const float *of_entry_ = nullptr;
    std::vector<uint32_t> origin_;   // of each entry: its place in of_entry_
};

// Products with a sparse matrix as its rows are: for one that is multiplied once, which a layout would not repay.

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
