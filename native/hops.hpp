// Several steps along the edges.
#pragma once

#include "lanes.hpp"
#include "sparse_product.hpp"

namespace bmpaudit {

// result = z_K of z_0 = start, z_{k+1} = (1 - alpha) · matrix · z_k + alpha · start, for K = `hops` of at least 1. With the
// transposed matrix, the same takes the gradient of the result to that of the start.
void propagate_hops(const SparseProduct &matrix, int hops, float alpha, const Matrix &start, Matrix &result, Matrix &scratch);

}  // namespace bmpaudit
