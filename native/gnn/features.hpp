// The features of a graph's nodes, sparse or dense, and those of a sample as the first layer multiplies with them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/lanes.hpp"
#include "core/random.hpp"
#include "gnn/graph.hpp"
#include "gnn/matrix.hpp"

namespace bmpaudit {

// Features of the whole graph, compressed rows or dense; the arrays belong to the caller.
struct FeatureView {
    int32_t num_features;
    const int64_t *indptr;   // compressed rows ...
    const int32_t *indices;
    const float *values;     // ... null where every value is 1
    const float *dense;      // null for compressed rows

    bool is_sparse() const { return dense == nullptr; }
    const float *dense_row(int32_t node) const { return dense + static_cast<int64_t>(node) * num_features; }
};

// A dense matrix in tiles, for products with it and with its transpose, with or without a mask of dropout.

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

// How many features of all nodes are multiplied: those that are not zero, or, where dense features have too few zeros to
// be worth compressing, all of them.
struct FeatureCount {
    int64_t entries;
    bool is_sparse;

    FeatureCount(const FeatureView &features, int32_t num_nodes);
};

// Features of all nodes, in compressed rows where that is faster.
class GraphFeatures {
  public:
    // For weights of `blocks` blocks of lanes.
    GraphFeatures(const FeatureView &features, int32_t num_nodes, int blocks);
    int32_t num_features() const { return features_.num_features; }
    bool is_sparse() const { return features_.is_sparse(); }
    bool is_binary() const { return is_sparse() && features_.values == nullptr; }
    // result[i] = x[i] · weight for every node i.
    void times(const Matrix &weight, Matrix &result) const;
    void copy_rows(const std::vector<int32_t> &nodes, CompressedRows &rows) const;
    const float *dense_row(int32_t node) const { return features_.dense_row(node); }

  private:
    void compress(int32_t num_nodes);

    FeatureView features_;
    int32_t num_nodes_;
    std::vector<int64_t> indptr_;  // what features_ points to if it was dense and is compressed
    std::vector<int32_t> indices_;
    std::vector<float> values_;
    SparseProduct product_;
};

// What a first layer multiplies with its weight.
struct FeatureLayout {
    int blocks;        // of the weight
    InputParts parts;  // of a row: a node's features, those gathered from its neighbours, or both
    bool is_dropped;   // never where features are gathered
};

// How often features are multiplied before others take their place.
enum class Uses { once, many };

// Features of a sample. They are the same in every epoch, or only their values change, by dropout; so all layouts are
// made once a model. Those of a mini-batch, which one step uses, go without.
class SampleFeatures {
  public:
    SampleFeatures(const GraphFeatures &all, const FeatureLayout &layout) : all_(all), layout_(layout) {}
    void begin(const TrainingGraph &graph, Uses uses);
    // New coins for every feature.
    void drop(RandomBits &random, double dropout);
    void times(const Matrix &weight, Matrix &result) const;
    // The gradient of the weight, from that of the product: finish(row, first, width, sums) as of SparseProduct::multiply.
    template <typename Finish> void transposed_times(const Matrix &gradient, Matrix &partial, Finish finish) const {
        if (all_.is_sparse() && uses_ == Uses::many) {
            by_column_.multiply(gradient, partial, finish);
            return;
        }
        if (all_.is_sparse()) with_values([&](auto value) { columns_times(rows_, value, gradient, partial); });
        else tiles_.transposed_times(gradient, partial);
        for_block_groups(gradient.blocks(), [&](auto width, int first) {
            for (int64_t row = 0; row < partial.rows(); ++row) finish(row, first, width, partial.row(row) + first);
        });
    }

  private:
    // Calls use(value), where value(e) is that of entry e of rows_.
    template <typename Use> void with_values(Use use) const {
        const float *values = layout_.is_dropped ? kept_.data() : rows_.values.data();
        if (layout_.is_dropped || !rows_.values.empty()) use([values](int64_t e) { return values[e]; });
        else use([](int64_t) { return 1.0f; });
    }

    const GraphFeatures &all_;
    FeatureLayout layout_;
    Uses uses_ = Uses::many;
    CompressedRows rows_;
    SparseProduct by_row_, by_column_;
    std::vector<float> kept_;  // after dropout, each entry of rows_
    DenseTiles tiles_;
};

}  // namespace bmpaudit
