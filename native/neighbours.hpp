// Means over the neighbours of each node.
#pragma once

#include <cstdint>

#include "samplers.hpp"
#include "threads.hpp"

namespace bmpaudit {

// Fills `means` (row, node) with the mean of `values` (row, node) over the neighbours of the node; 0 without neighbours.
// Sums are in double precision, in the order of the neighbours. The same on any number of threads.
void neighbour_means(const Adjacency &graph, const float *values, int64_t num_rows, int num_threads, const Poll &poll,
                     float *means);

}  // namespace bmpaudit
