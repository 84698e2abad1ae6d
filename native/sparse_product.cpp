#include "sparse_product.hpp"

#include <algorithm>
#include <utility>

namespace bmpaudit {

namespace {

constexpr int64_t kBandBytes = 16 << 10;  // half of a first-level cache
constexpr int64_t kWorthABand = 32;        // entries: fewer do not repay reading and writing the sum once more
constexpr int kMostBits = 16;             // of a column's number within its band

// log₂ of the columns of a band.
int band_bits(int64_t num_rows, int64_t num_columns, int64_t num_entries, int blocks) {
    const int64_t row_bytes = std::min(blocks, kMostBlocksTogether) * static_cast<int64_t>(sizeof(Lanes));
    int bits = 0;
    while ((row_bytes << (bits + 1)) <= kBandBytes) ++bits;
    const auto num_bands = [&] { return ((num_columns - 1) >> bits) + 1; };
    while (bits < kMostBits && num_bands() > 1 && num_entries < kWorthABand * num_rows * num_bands()) ++bits;
    return bits;
}

}  // namespace

void CompressedRows::clear() {
    start.assign(1, 0);
    columns.clear();
    values.clear();
    origin.clear();
}

void CompressedRows::transpose_of(const CompressedRows &other, int32_t num_columns, bool keeps_origin) {
    // start[k + 1] is first where row k goes, and in the end where it ends.
    start.assign(num_columns + int64_t{2}, 0);
    for (const int32_t column : other.columns) ++start[column + 2];
    for (int32_t column = 0; column < num_columns; ++column) start[column + 2] += start[column + 1];
    columns.resize(other.columns.size());
    values.resize(other.values.size());
    origin.resize(keeps_origin ? other.columns.size() : 0);
    for (int64_t row = 0; row < other.num_rows(); ++row) {
        for (int64_t e = other.start[row]; e < other.start[row + 1]; ++e) {
            const int64_t at = start[other.columns[e] + 1]++;
            columns[at] = static_cast<int32_t>(row);
            if (!values.empty()) values[at] = other.values[e];
            if (keeps_origin) origin[at] = static_cast<uint32_t>(e);
        }
    }
    start.pop_back();
}

void SparseProduct::build(const CompressedRows &matrix, int64_t num_columns, int blocks, const float *of_entry) {
    num_rows_ = matrix.num_rows();
    const int64_t num_entries = matrix.num_entries();
    const int bits = band_bits(num_rows_, num_columns, num_entries, blocks);
    const int64_t num_bands = ((num_columns - 1) >> bits) + 1;

    next_.assign(num_bands * num_rows_, 0);  // first the lengths
    for (int64_t row = 0; row < num_rows_; ++row)
        for (int64_t e = matrix.start[row]; e < matrix.start[row + 1]; ++e)
            ++next_[(matrix.columns[e] >> bits) * num_rows_ + row];

    const bool has_values = of_entry == nullptr && !matrix.values.empty();
    const bool is_padded = has_values && kTakesFours;
    const auto padded = [&](int64_t length) { return is_padded ? (length + 3) / 4 * 4 : length; };
    bands_.clear();
    lists_.clear();
    int64_t entry = 0;
    for (int64_t band = 0; band < num_bands; ++band) {
        bands_.push_back({static_cast<int64_t>(lists_.size()), entry, band << bits});
        const bool is_last = band + 1 == num_bands;
        for (int64_t row = 0; row < num_rows_; ++row) {
            const int64_t length = padded(std::exchange(next_[band * num_rows_ + row], entry));
            if (length > 0 || is_last) lists_.push_back({static_cast<int32_t>(row), static_cast<int32_t>(length)});
            entry += length;
        }
    }
    bands_.push_back({static_cast<int64_t>(lists_.size()), entry, 0});

    of_entry_ = of_entry;
    columns_.resize(entry);
    values_.resize(has_values ? entry : 0);
    origin_.resize(of_entry == nullptr ? 0 : entry);
    for (int64_t row = 0; row < num_rows_; ++row) {
        for (int64_t e = matrix.start[row]; e < matrix.start[row + 1]; ++e) {
            const int64_t band = matrix.columns[e] >> bits, at = next_[band * num_rows_ + row]++;
            columns_[at] = static_cast<uint16_t>(matrix.columns[e] - (band << bits));
            if (has_values) values_[at] = matrix.values[e];
            if (of_entry != nullptr) origin_[at] = matrix.origin.empty() ? static_cast<uint32_t>(e) : matrix.origin[e];
        }
    }
    if (!is_padded) return;
    for (int64_t at : next_) {  // where lists end
        for (; at % 4 != 0; ++at) {
            columns_[at] = columns_[at - 1];
            values_[at] = 0.0f;
        }
    }
}

void SparseProduct::multiply_into(const Matrix &source, Matrix &result) const {
    result.reshape(num_rows_, source.blocks());
    const RowPointers to(result, 0);
    multiply(source, result, [to](int64_t row, int first, auto width, const Lanes *sums) {
        for (int b = 0; b < decltype(width)::value; ++b) to(row)[first + b] = sums[b];
    });
}

}  // namespace bmpaudit
