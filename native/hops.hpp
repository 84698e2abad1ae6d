// Several steps along the edges, by the matrix of a GCN.
#pragma once

#include "graph_view.hpp"
#include "lanes.hpp"

namespace bmpaudit {

// result = z_K of z_0 = start, z_{k+1} = (1 - alpha) · normalised · z_k + alpha · start, for K = `hops` of at least 1. As the
// matrix is symmetric, the same takes the gradient of the result to that of the start.
void propagate_hops(const TrainingGraph &graph, int hops, float alpha, const Matrix &start, Matrix &result, Matrix &scratch);

}  // namespace bmpaudit
