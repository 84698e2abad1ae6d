// Quantiles of the ε that a node's error rates imply, under the flat Beta posteriors of these rates.
#pragma once

#include <cstdint>

#include "counts.hpp"
#include "threads.hpp"

namespace bmpaudit {

// For each node and probability in (0, 1), the quantiles of e_R - log η (right) and of e_L + log η (left),
// both arrays of num_nodes × num_probabilities. Neither depends on η. The same on any number of threads.
void leakage_quantiles(const NodeCounts *nodes, int64_t num_nodes, const double *probabilities, int64_t num_probabilities,
                       int num_threads, const Poll &poll, double *right, double *left);

}  // namespace bmpaudit
