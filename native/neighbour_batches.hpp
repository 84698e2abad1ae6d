// Mini-batches by neighbour sampling (Hamilton, Ying and Leskovec 2017), as PyTorch Geometric's NeighborLoader makes them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph_view.hpp"
#include "random.hpp"
#include "word_order.hpp"

namespace bmpaudit {

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
