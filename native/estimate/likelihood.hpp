// The likelihood of ε with the error rates integrated out: the heart of the exact estimator.
#pragma once

#include <cstdint>

#include "core/threads.hpp"
#include "estimate/beta_law.hpp"

namespace bmpaudit {

// Nodes, each of which stands for `times` nodes of the same counts and prior.
struct WeightedCounts {
    CountsTable table;
    const double *times;
};

// The log-likelihood of (ε_L, ε_R) without binomial coefficients: Σ_k log Pr((α_k, β_k) ∈ R_k) - log |R_k|, for each of
// num_points pairs; with strength > 0, of the ring R minus R_s in place of R. A point whose value is below its `cutoff`
// may come out as -∞. The same on any number of threads. The poll is told the number of nodes done.
void log_likelihood(const WeightedCounts &counts, const double *epsilon_left, const double *epsilon_right,
                    int64_t num_points, const double *cutoff, double strength, int num_threads, const Poll &poll,
                    double *result);

// The terms of that sum, times left out: result is num_nodes x num_points.
void node_log_likelihood(const CountsTable &counts, const double *epsilon_left, const double *epsilon_right,
                         int64_t num_points, double strength, int num_threads, const Poll &poll, double *result);

// The log-likelihood on all pairs of a grid, num_left x num_right. A value further than `depth` below the highest may come
// out as -∞.
void grid_log_likelihood(const WeightedCounts &counts, const double *epsilon_left, int64_t num_left,
                         const double *epsilon_right, int64_t num_right, double depth, double strength, int num_threads,
                         const Poll &poll, double *result);

// Memory that either sum takes for each point, at least.
int64_t likelihood_bytes_each_point(int64_t num_nodes);

}  // namespace bmpaudit
