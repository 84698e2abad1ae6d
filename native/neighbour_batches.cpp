#include "neighbour_batches.hpp"

#include <algorithm>

namespace bmpaudit {

void NeighbourBatches::begin_epoch(const std::vector<int32_t> &labels, RandomBits &random) {
    std::vector<int32_t> with_label;
    for (size_t node = 0; node < labels.size(); ++node)
        if (labels[node] >= 0) with_label.push_back(static_cast<int32_t>(node));
    seeds_.clear();
    for (const int32_t k : order_.order(random, static_cast<int64_t>(with_label.size()))) seeds_.push_back(with_label[k]);
    num_done_ = 0;
    place_.assign(labels.size(), -1);
    here_.clear();
}

int32_t NeighbourBatches::place_of(int32_t node) {
    if (place_[node] < 0) {
        place_[node] = static_cast<int32_t>(here_.size());
        here_.push_back(node);
    }
    return place_[node];
}

void NeighbourBatches::expand(const TrainingGraph &graph, int32_t node, int most, RandomBits &random) {
    const int32_t *around = graph.neighbors.data() + graph.start[node] + 1;
    const int64_t degree = graph.degree(node);
    if (most == 0) return;
    if (most == kAll || degree <= most) {
        for (int64_t k = 0; k < degree; ++k) batch_.neighbors.push_back(place_of(around[k]));
        return;
    }
    for (const int32_t k : order_.subset(random, degree, most)) batch_.neighbors.push_back(place_of(around[k]));
}

bool NeighbourBatches::next(const TrainingGraph &graph, const std::vector<int32_t> &labels, RandomBits &random) {
    if (num_done_ == seeds_.size()) return false;
    for (const int32_t node : here_) place_[node] = -1;
    here_.clear();
    const size_t end = std::min(num_done_ + static_cast<size_t>(batch_size_), seeds_.size());
    labels_.clear();
    for (; num_done_ < end; ++num_done_) {
        place_of(seeds_[num_done_]);
        labels_.push_back(labels[seeds_[num_done_]]);
    }
    batch_.start.assign(1, 0);
    batch_.neighbors.clear();
    // Nodes are reached hop by hop, so the rows of the batch come in order.
    const auto add_rows_up_to = [&](size_t reached, int most) {
        for (size_t i = batch_.start.size() - 1; i < reached; ++i) {
            batch_.neighbors.push_back(static_cast<int32_t>(i));
            expand(graph, here_[i], most, random);
            batch_.start.push_back(static_cast<int64_t>(batch_.neighbors.size()));
        }
    };
    for (const int most : neighbors_) add_rows_up_to(here_.size(), most);
    add_rows_up_to(here_.size(), 0);
    labels_.resize(here_.size(), -1);
    batch_.nodes.clear();
    for (const int32_t node : here_) batch_.nodes.push_back(graph.nodes[node]);
    batch_.build(matrices_);
    return true;
}

}  // namespace bmpaudit
