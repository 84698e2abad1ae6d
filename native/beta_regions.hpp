// Probabilities that independent Beta error rates lie in a region R of Theorem 6: the heart of the exact estimator.
#pragma once

#include <cstdint>

#include "threads.hpp"

namespace bmpaudit {

// A node's counts: false positives of num_out trials, false negatives of num_in trials.
struct NodeCounts {
    double num_out, num_in, false_positives, false_negatives;
};

// A Beta distribution of a rate u, and of 1 - u, with its log normalising constant.
struct BetaLaw {
    double p, q, log_norm;  // density u^{p-1} (1-u)^{q-1} e^{-log_norm}

    BetaLaw(double p, double q);
    BetaLaw flipped() const;
    double mean() const { return p / (p + q); }
    double standard_deviation() const;
    double log_density(double u) const;
    // Logarithms of Pr(U < u) and Pr(U > u), to full relative accuracy in both tails.
    void log_tails(double u, double &lower, double &upper) const;
    double log_between(double low, double high) const;

  private:
    BetaLaw(double p, double q, double log_norm) : p(p), q(q), log_norm(log_norm) {}
};

// The law of a node's error rates under flat priors, in logarithms: right also far below the smallest double.
class ErrorRateLaw {
  public:
    explicit ErrorRateLaw(const NodeCounts &counts);

    // With a = η e^{ε_L} and b = η e^{-ε_R}: log Pr((α, β) ∈ R). log_a = ∞ or log_b = -∞ where a side is not imposed; -∞
    // where R has no area.
    double log_inside(double log_a, double log_b) const;
    // log Pr((α, β) ∈ R minus R_s), where R_s has log_a·s and log_b·s.
    double log_inside_ring(double log_a, double log_b, double strength) const;

  private:
    BetaLaw alpha_;
    BetaLaw detected_;  // x = 1 - β
    bool is_alpha_narrower_;  // integrals run over the narrower of the two: the other's distribution is smooth on its scale
};

// log |R| for log_a > 0 > log_b, and -∞ otherwise.
double log_region_area(double log_a, double log_b);

// The log-likelihood of (ε_L, ε_R) without binomial coefficients: Σ_k log Pr((α_k, β_k) ∈ R_k) - log |R_k|, for each of
// num_points pairs; with strength > 0, of the ring R minus R_s in place of R. A point whose value is below its `cutoff`
// may come out as -∞. The same on any number of threads.
struct CountsTable {
    const NodeCounts *nodes;
    const double *log_prior_odds;
    int64_t num_nodes;
};
void log_likelihood(const CountsTable &counts, const double *epsilon_left, const double *epsilon_right, int64_t num_points,
                    const double *cutoff, double strength, int num_threads, const Poll &poll, double *result);

// The same on all pairs of a grid, num_left x num_right: the two sides are integrated once for each of their values, and
// together only where both leave something outside. A value further than `depth` below the highest may come out as -∞.
void grid_log_likelihood(const CountsTable &counts, const double *epsilon_left, int64_t num_left,
                         const double *epsilon_right, int64_t num_right, double depth, double strength, int num_threads,
                         const Poll &poll, double *result);

// Memory that either of the two takes for each point, at least.
int64_t likelihood_bytes_each_point(int64_t num_nodes);

}  // namespace bmpaudit
