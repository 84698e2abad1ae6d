// The graph as the engine sees it: the whole one, and the part that a sample induces, both with self-loops.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/lanes.hpp"
#include "core/random.hpp"
#include "core/samplers.hpp"
#include "gnn/matrix.hpp"

namespace bmpaudit {

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

// The largest value among a node's neighbours, lane by lane: what max aggregation multiplies with a weight.

// What stands side by side in the rows that a weight is multiplied with.
struct InputParts {
    bool has_largest = false;  // of a node's neighbours; zeros where it has none
    bool has_own = true;

    int count() const { return has_largest + has_own; }
};

// Rows of [largest of the neighbours, own input], or of the first alone.
void gather_largest(const TrainingGraph &graph, const Matrix &input, const InputParts &parts, Matrix &gathered);
// From the gradient of the gathered rows to that of the input; neighbours that are equally large share, as in PyTorch.
void scatter_largest(const TrainingGraph &graph, const Matrix &input, const InputParts &parts, const Matrix &gathered,
                     const Matrix &gathered_gradient, Matrix &input_gradient);

// The same of sparse rows of so many columns, in which what is not there is 0; own columns come after those of neighbours.
CompressedRows gather_largest(const TrainingGraph &graph, const CompressedRows &own, int32_t num_columns,
                              const InputParts &parts);
// The same of one dense row: `row(i)` is where the numbers of node i begin.
template <typename Row>
void gather_largest_row(const TrainingGraph &graph, int32_t i, int32_t num_columns, const InputParts &parts, Row row,
                        std::vector<float> &gathered) {
    gathered.assign(static_cast<size_t>(num_columns) * parts.count(), 0.0f);
    const int64_t first = graph.start[i] + 1, end = graph.start[i + 1];
    for (int64_t e = first; e < end; ++e) {
        const float *from = row(graph.neighbors[e]);
        for (int32_t k = 0; k < num_columns; ++k)
            if (e == first || from[k] > gathered[k]) gathered[k] = from[k];
    }
    if (parts.has_own) std::copy_n(row(i), num_columns, gathered.begin() + num_columns);
}

// DropEdge (Rong et al. 2020): a share of a sample's edges is left out, drawn anew each time.

class DroppedEdges {
  public:
    DroppedEdges(double share, const EdgeMatrices &matrices) : share_(share), matrices_(matrices) {}
    void begin(const TrainingGraph &sample);
    // The sample without the share of its edges, rounded to a whole number of them, both directions of an edge together;
    // self-loops stay, and the matrices are those of what is left. Edges are numbered by their nodes, the lower one first.
    const TrainingGraph &draw(const TrainingGraph &sample, RandomBits &random);

  private:
    double share_;
    EdgeMatrices matrices_;
    std::vector<int32_t> edge_;  // of each neighbour in the sample, self-loops left out: the number of its edge
    int32_t num_edges_ = 0;
    WordOrder order_;
    std::vector<uint8_t> is_dropped_;
    TrainingGraph left_;
};

// Mini-batches by neighbour sampling (Hamilton, Ying and Leskovec 2017), as PyTorch Geometric's NeighborLoader makes them.

class NeighbourBatches {
  public:
    static constexpr int kAll = -1;  // neighbours

    // `neighbors[h]` are taken at most of each node that hop h has reached.
    NeighbourBatches(int batch_size, std::vector<int> neighbors, const EdgeMatrices &matrices)
        : batch_size_(batch_size), neighbors_(std::move(neighbors)), matrices_(matrices) {
        batch_.is_symmetric = false;
    }
    // A new order of the nodes of a graph that have labels.
    void begin_epoch(const std::vector<int32_t> &labels, RandomBits &random);
    // The next batch of that order; whether there is one. Nodes that carry the loss come first. A node's neighbours are drawn
    // once, without replacement, when a hop has first reached it; those of the last hop have none.
    bool next(const TrainingGraph &graph, const std::vector<int32_t> &labels, RandomBits &random);
    const TrainingGraph &graph() const { return batch_; }
    // Those of the first nodes, -1 for the others.
    const std::vector<int32_t> &labels() const { return labels_; }

  private:
    int32_t place_of(int32_t node);
    void expand(const TrainingGraph &graph, int32_t node, int most, RandomBits &random);

    int batch_size_;
    std::vector<int> neighbors_;
    EdgeMatrices matrices_;
    std::vector<int32_t> seeds_;
    size_t num_done_ = 0;
    WordOrder order_;
    std::vector<int32_t> here_;   // nodes of the batch
    std::vector<int32_t> place_;  // of a node in the batch, or -1
    TrainingGraph batch_;
    std::vector<int32_t> labels_;
};

}  // namespace bmpaudit
