#include "dropped_edges.hpp"

#include <cmath>

namespace bmpaudit {

void DroppedEdges::begin(const TrainingGraph &sample) {
    const CompressedRows rows = sample.rows_without_loops();
    CompressedRows transposed;
    transposed.transpose_of(rows, sample.size());
    edge_.assign(rows.num_entries(), 0);
    num_edges_ = 0;
    for (int32_t i = 0; i < sample.size(); ++i)
        for (int64_t e = rows.start[i]; e < rows.start[i + 1]; ++e)
            // Rows are ascending and the matrix symmetric, so the origin of an entry is the other direction of its edge.
            edge_[e] = rows.columns[e] > i ? num_edges_++ : edge_[transposed.origin[e]];
    left_.nodes = sample.nodes;
}

const TrainingGraph &DroppedEdges::draw(const TrainingGraph &sample, RandomBits &random) {
    is_dropped_.assign(num_edges_ + 1, 0);
    const auto count = static_cast<int64_t>(std::nearbyint(share_ * num_edges_));
    for (const int32_t edge : order_.subset(random, num_edges_, count)) is_dropped_[edge] = 1;
    left_.start.assign(1, 0);
    left_.neighbors.clear();
    const int32_t *edge = edge_.data();
    for (int32_t i = 0; i < sample.size(); ++i) {
        left_.neighbors.push_back(i);
        for (int64_t e = sample.start[i] + 1; e < sample.start[i + 1]; ++e)
            if (!is_dropped_[*edge++]) left_.neighbors.push_back(sample.neighbors[e]);
        left_.start.push_back(static_cast<int64_t>(left_.neighbors.size()));
    }
    left_.build(matrices_);
    return left_;
}

}  // namespace bmpaudit
