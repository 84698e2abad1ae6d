#include "gnn/features.hpp"

#include <algorithm>

#include "gnn/matrix.hpp"

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

namespace {

// Where less of a dense matrix is not zero, compressed rows are faster: an entry takes about 1.6 times what a number of a
// dense row does, and a zero nothing.
constexpr double kSparseShare = 0.6;

}  // namespace

FeatureCount::FeatureCount(const FeatureView &features, int32_t num_nodes) {
    if (features.is_sparse()) {
        entries = features.indptr[num_nodes];
        is_sparse = true;
        return;
    }
    const float *end = features.dense_row(num_nodes);
    const int64_t size = end - features.dense;
    entries = size - std::count(features.dense, end, 0.0f);
    is_sparse = static_cast<double>(entries) < kSparseShare * static_cast<double>(size);
    if (!is_sparse) entries = size;
}

GraphFeatures::GraphFeatures(const FeatureView &features, int32_t num_nodes, int blocks)
    : features_(features), num_nodes_(num_nodes) {
    if (!is_sparse() && FeatureCount(features, num_nodes).is_sparse) compress(num_nodes);
    if (!is_sparse()) return;
    std::vector<int32_t> everyone(num_nodes);
    for (int32_t node = 0; node < num_nodes; ++node) everyone[node] = node;
    CompressedRows rows;
    copy_rows(everyone, rows);
    product_.build(rows, num_features(), blocks);
}

void GraphFeatures::compress(int32_t num_nodes) {
    bool is_binary = true;
    indptr_.assign(1, 0);
    for (int32_t node = 0; node < num_nodes; ++node) {
        const float *row = features_.dense_row(node);
        for (int32_t k = 0; k < num_features(); ++k) {
            if (row[k] == 0.0f) continue;
            indices_.push_back(k);
            values_.push_back(row[k]);
            is_binary &= row[k] == 1.0f;
        }
        indptr_.push_back(static_cast<int64_t>(indices_.size()));
    }
    if (is_binary) std::vector<float>().swap(values_);
    features_ = {num_features(), indptr_.data(), indices_.data(), is_binary ? nullptr : values_.data(), nullptr};
}

void GraphFeatures::times(const Matrix &weight, Matrix &result) const {
    if (is_sparse()) product_.multiply_into(weight, result);
    else rows_times_weight(num_nodes_, num_features(), [&](int64_t i) { return dense_row(static_cast<int32_t>(i)); }, weight,
                           result);
}

void GraphFeatures::copy_rows(const std::vector<int32_t> &nodes, CompressedRows &rows) const {
    rows.clear();
    for (const int32_t node : nodes) {
        const int64_t begin = features_.indptr[node], end = features_.indptr[node + 1];
        rows.columns.insert(rows.columns.end(), features_.indices + begin, features_.indices + end);
        if (!is_binary()) rows.values.insert(rows.values.end(), features_.values + begin, features_.values + end);
        rows.start.push_back(rows.num_entries());
    }
}

void SampleFeatures::begin(const TrainingGraph &graph, Uses uses) {
    uses_ = uses;
    const InputParts &parts = layout_.parts;
    const int32_t num_columns = all_.num_features() * parts.count();
    const auto dense_row = [&](int64_t i) { return all_.dense_row(graph.nodes[i]); };
    if (!all_.is_sparse() && !parts.has_largest) {
        tiles_.build(graph.size(), num_columns, dense_row);
        return;
    }
    if (!all_.is_sparse()) {
        std::vector<float> gathered;
        tiles_.build(graph.size(), num_columns, [&](int64_t i) {
            gather_largest_row(graph, static_cast<int32_t>(i), all_.num_features(), parts, dense_row, gathered);
            return gathered.data();
        });
        return;
    }
    all_.copy_rows(graph.nodes, rows_);
    if (parts.has_largest) rows_ = gather_largest(graph, rows_, all_.num_features(), parts);
    if (layout_.is_dropped) kept_.resize((rows_.num_entries() / kLanes + 1) * kLanes);
    if (uses == Uses::once) return;
    const float *kept = layout_.is_dropped ? kept_.data() : nullptr;
    by_row_.build(rows_, num_columns, layout_.blocks, kept);
    by_column_.build_transposed(rows_, num_columns, layout_.blocks, kept);
}

void SampleFeatures::drop(RandomBits &random, double dropout) {
    CoinFlips keep(random, 1.0 - dropout);
    if (!all_.is_sparse()) {
        tiles_.draw_mask(keep);
        return;
    }
    // Only features that are not zero need a coin: dropping a zero changes nothing.
    const float scale = static_cast<float>(1.0 / keep.probability());
    const int64_t num_entries = rows_.num_entries();
    for (int64_t e = 0; e < num_entries; e += kLanes) store(only(keep.next_sixteen(), splat(scale)), &kept_[e]);
    for (size_t e = 0; e < rows_.values.size(); ++e) kept_[e] *= rows_.values[e];
}

void SampleFeatures::times(const Matrix &weight, Matrix &result) const {
    if (all_.is_sparse() && uses_ == Uses::many) by_row_.multiply_into(weight, result);
    else if (all_.is_sparse()) with_values([&](auto value) { rows_times(rows_, value, weight, result); });
    else tiles_.times(weight, result);
}

}  // namespace bmpaudit
