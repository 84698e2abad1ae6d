// The graph as the engine sees it: the whole one, and the part that a sample induces, both with self-loops.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "samplers.hpp"
#include "sparse_product.hpp"

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

// Which matrices of a graph a model multiplies with.
struct EdgeMatrices {
    bool normalised = false, neighbours = false;

    static EdgeMatrices of_normalised() { return {true, false}; }
    static EdgeMatrices of_neighbours() { return {false, true}; }
    EdgeMatrices operator|(const EdgeMatrices &other) const {
        return {normalised || other.normalised, neighbours || other.neighbours};
    }
};

// A matrix that models multiply with, and on the way back with its transpose.
class EdgeMatrix {
  public:
    void build(const CompressedRows &matrix, bool is_symmetric) {
        const auto size = static_cast<int32_t>(matrix.num_rows());
        product_.build(matrix, size, 1);
        is_symmetric_ = is_symmetric;
        if (!is_symmetric) transposed_.build_transposed(matrix, size, 1);
    }
    const SparseProduct &product() const { return product_; }
    const SparseProduct &transposed() const { return is_symmetric_ ? product_ : transposed_; }

  private:
    SparseProduct product_, transposed_;
    bool is_symmetric_ = true;
};

struct TrainingGraph {
    std::vector<int32_t> nodes;      // ids in the whole graph; of a sample ascending
    std::vector<int64_t> start;      // row starts
    std::vector<int32_t> neighbors;  // places in `nodes`, each node's own first
    bool is_symmetric = true;        // whether each edge is there in both directions
    EdgeMatrix normalised;           // the matrix of a GCN, 1/√((degree + 1)(degree + 1)) at each edge and self-loop
    EdgeMatrix neighbours;           // 1 at each edge, without self-loops

    int32_t size() const { return static_cast<int32_t>(nodes.size()); }
    int64_t degree(int32_t i) const { return start[i + 1] - start[i] - 1; }
    bool has_edges() const { return neighbors.size() > nodes.size(); }

    // All edges of the graph between sampled nodes, and the matrices asked for. `place` is scratch of num_nodes entries.
    void induce(const Adjacency &graph, const uint8_t *member, std::vector<int32_t> &place, const EdgeMatrices &matrices) {
        nodes.clear();
        place.assign(graph.num_nodes(), -1);
        for (int32_t node = 0; node < graph.num_nodes(); ++node) {
            if (!member[node]) continue;
            place[node] = size();
            nodes.push_back(node);
        }
        start.assign(1, 0);
        neighbors.clear();
        for (const int32_t node : nodes) {
            neighbors.push_back(place[node]);
            const int32_t *around = graph.neighbors(node);
            for (int32_t k = 0; k < graph.degree(node); ++k)
                if (place[around[k]] >= 0) neighbors.push_back(place[around[k]]);
            start.push_back(static_cast<int64_t>(neighbors.size()));
        }
        build(matrices);
    }
    // The matrices asked for, of the edges as they are.
    void build(const EdgeMatrices &matrices) {
        if (matrices.normalised) build_normalised();
        if (matrices.neighbours) neighbours.build(rows_without_loops(), is_symmetric);
    }
    CompressedRows rows_without_loops() const {
        CompressedRows rows;
        for (int32_t i = 0; i < size(); ++i) {
            rows.columns.insert(rows.columns.end(), neighbors.begin() + start[i] + 1, neighbors.begin() + start[i + 1]);
            rows.start.push_back(rows.num_entries());
        }
        return rows;
    }

  private:
    void build_normalised() {
        CompressedRows matrix{start, neighbors, {}, {}};
        matrix.values.reserve(neighbors.size());
        const auto inverse_root = [&](int32_t i) { return 1.0f / std::sqrt(static_cast<float>(degree(i) + 1)); };
        for (int32_t i = 0; i < size(); ++i)
            for (int64_t e = start[i]; e < start[i + 1]; ++e)
                matrix.values.push_back(inverse_root(i) * inverse_root(neighbors[e]));
        normalised.build(matrix, is_symmetric);
    }
};

}  // namespace bmpaudit
