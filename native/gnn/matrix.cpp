#include "gnn/matrix.hpp"

#include <algorithm>
#include <utility>

namespace bmpaudit {

namespace {

constexpr int64_t kBandBytes = 16 << 10;  // half of a first-level cache
constexpr int64_t kWorthABand = 32;        // entries: fewer do not repay reading and writing the sum once more
constexpr int kMostBits = 16;             // of a column's number within its band
constexpr int32_t kLongest = 127;         // entries: what longer lists cost at their ends is little beside them
constexpr int64_t kRowsSorted = 512;      // together, by length: what they read and write stays in a core's own caches

// log₂ of the columns of a band.
int band_bits(int64_t num_rows, int64_t num_columns, int64_t num_entries, int blocks) {
    const int64_t row_bytes = std::min(blocks, kMostBlocksTogether) * static_cast<int64_t>(sizeof(Lanes));
    int bits = 0;
    while ((row_bytes << (bits + 1)) <= kBandBytes) ++bits;
    const auto num_bands = [&] { return ((num_columns - 1) >> bits) + 1; };
    while (bits < kMostBits && num_bands() > 1 && num_entries < kWorthABand * num_rows * num_bands()) ++bits;
    return bits;
}

// Calls use(row, column, entry).
template <typename Use> void for_entries(const CompressedRows &matrix, Use use) {
    const int32_t *columns = matrix.columns.data();
    int64_t e = 0;
    for (int64_t row = 0; row < matrix.num_rows(); ++row)
        for (const int64_t end = matrix.start[row + 1]; e < end; ++e) use(row, columns[e], e);
}

}  // namespace

void CompressedRows::clear() {
    start.assign(1, 0);
    columns.clear();
    values.clear();
    origin.clear();
}

void CompressedRows::transpose_of(const CompressedRows &other, int32_t num_columns) {
    // start[k + 1] is first where row k goes, and in the end where it ends.
    start.assign(num_columns + int64_t{2}, 0);
    for (const int32_t column : other.columns) ++start[column + 2];
    for (int32_t column = 0; column < num_columns; ++column) start[column + 2] += start[column + 1];
    columns.resize(other.columns.size());
    values.resize(other.values.size());
    origin.resize(other.columns.size());
    for (int64_t row = 0; row < other.num_rows(); ++row) {
        for (int64_t e = other.start[row]; e < other.start[row + 1]; ++e) {
            const int64_t at = start[other.columns[e] + 1]++;
            columns[at] = static_cast<int32_t>(row);
            if (!values.empty()) values[at] = other.values[e];
            origin[at] = static_cast<uint32_t>(e);
        }
    }
    start.pop_back();
}

template <typename Visit>
void SparseProduct::build(int64_t num_rows, int64_t num_columns, int blocks, const CompressedRows &matrix,
                          const float *of_entry, Visit visit) {
    num_rows_ = num_rows;
    const int bits = band_bits(num_rows, num_columns, matrix.num_entries(), blocks);
    const int64_t num_bands = ((num_columns - 1) >> bits) + 1;
    units_ = (std::min(num_columns, int64_t{1} << bits) - 1) * kUnits < (1 << kMostBits) ? kUnits : 1;

    next_.assign(num_bands * num_rows, 0);  // first the lengths
    visit([=, next = next_.data()](int64_t row, int64_t column, int64_t) { ++next[(column >> bits) * num_rows + row]; });

    const bool has_values = of_entry == nullptr && !matrix.values.empty();
    const bool is_padded = has_values && kTakesFours;
    const auto padded = [&](int64_t length) { return is_padded ? (length + 3) / 4 * 4 : length; };
    bands_.clear();
    lists_.clear();
    int64_t entry = 0;
    for (int64_t band = 0; band < num_bands; ++band) {
        bands_.push_back({static_cast<int64_t>(lists_.size()), entry, band << bits});
        const bool is_last = band + 1 == num_bands;
        int64_t *next = next_.data() + band * num_rows;
        for (int64_t from = 0; from < num_rows; from += kRowsSorted) {
            const auto begin = static_cast<int64_t>(lists_.size());
            for (int64_t row = from; row < std::min(num_rows, from + kRowsSorted); ++row) {
                const int64_t length = padded(next[row]);
                if (length > 0 || is_last) lists_.push_back({static_cast<int32_t>(row), static_cast<int32_t>(length)});
                else next[row] = entry;
            }
            sort_by_length(begin);
            for (auto list = lists_.begin() + begin; list != lists_.end(); ++list) {
                next[list->row] = entry;
                entry += list->count;
            }
        }
    }
    bands_.push_back({static_cast<int64_t>(lists_.size()), entry, 0});

    of_entry_ = of_entry;
    columns_.resize(entry);
    values_.resize(has_values ? entry : 0);
    origin_.resize(of_entry == nullptr ? 0 : entry);
    const auto put = [=, units = units_, columns = columns_.data(), values = values_.data(), origin = origin_.data(),
                      next = next_.data(), from = matrix.values.data()](int64_t row, int64_t column, int64_t e) {
        const int64_t band = column >> bits, at = next[band * num_rows + row]++;
        columns[at] = static_cast<uint16_t>((column - (band << bits)) * units);
        if (has_values) values[at] = from[e];
        if (of_entry != nullptr) origin[at] = static_cast<uint32_t>(e);
    };
    visit(put);
    if (!is_padded) return;
    for (int64_t at : next_) {  // where lists end
        for (; at % 4 != 0; ++at) {
            columns_[at] = columns_[at - 1];
            values_[at] = 0.0f;
        }
    }
}

void SparseProduct::sort_by_length(int64_t begin) {
    const auto length = [](const List &list) { return std::min(list.count, kLongest); };
    int32_t place[kLongest + 2] = {};
    for (auto list = lists_.begin() + begin; list != lists_.end(); ++list) ++place[length(*list) + 1];
    for (int32_t k = 0; k < kLongest; ++k) place[k + 1] += place[k];
    unsorted_.assign(lists_.begin() + begin, lists_.end());
    for (const List &list : unsorted_) lists_[begin + place[length(list)]++] = list;
}

void SparseProduct::build(const CompressedRows &matrix, int64_t num_columns, int blocks, const float *of_entry) {
    build(matrix.num_rows(), num_columns, blocks, matrix, of_entry, [&](auto use) {
        for_entries(matrix, [use](int64_t row, int64_t column, int64_t e) { use(row, column, e); });
    });
}

void SparseProduct::build_transposed(const CompressedRows &matrix, int64_t num_columns, int blocks, const float *of_entry) {
    build(num_columns, matrix.num_rows(), blocks, matrix, of_entry, [&](auto use) {
        for_entries(matrix, [use](int64_t row, int64_t column, int64_t e) { use(column, row, e); });
    });
}

void SparseProduct::multiply_into(const Matrix &source, Matrix &result) const {
    result.reshape(num_rows_, source.blocks());
    const RowPointers to(result, 0);
    multiply(source, result, [to](int64_t row, int first, auto width, const Lanes *sums) {
        for (int b = 0; b < decltype(width)::value; ++b) to(row)[first + b] = sums[b];
    });
}

}  // namespace bmpaudit
