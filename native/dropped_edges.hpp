// DropEdge (Rong et al. 2020): a share of a sample's edges is left out, drawn anew each time.
#pragma once

#include <cstdint>
#include <vector>

#include "graph_view.hpp"
#include "random.hpp"
#include "word_order.hpp"

namespace bmpaudit {

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

}  // namespace bmpaudit
