// Products of one sparse matrix with many dense ones, laid out so that the rows it gathers lie in the first-level cache.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "lanes.hpp"
#include "matrix_products.hpp"

namespace bmpaudit {

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

}  // namespace bmpaudit
