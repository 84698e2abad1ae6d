// Errors of the attack on each node, Beta laws of its error rates, and the probability that they lie in a region R of
// Theorem 6: right far into the tails.
#pragma once

#include <cstdint>

namespace bmpaudit {

// A node's counts: false positives of num_out trials, false negatives of num_in trials.
struct NodeCounts {
    double num_out, num_in, false_positives, false_negatives;
};

struct CountsTable {
    const NodeCounts *nodes;
    const double *log_prior_odds;
    int64_t num_nodes;
};

// A rate and its complement, each to full relative accuracy next to 0 and 1.
struct RatePair {
    double u, rest;

    RatePair flipped() const { return {rest, u}; }
};

inline bool before(const RatePair &x, const RatePair &y) { return x.u < 0.5 ? x.u < y.u : x.rest > y.rest; }
inline const RatePair &earlier(const RatePair &x, const RatePair &y) { return before(x, y) ? x : y; }
inline const RatePair &later(const RatePair &x, const RatePair &y) { return before(x, y) ? y : x; }

inline constexpr RatePair kZero{0, 1}, kOne{1, 0};

// The law of a node's error rates under flat priors, in logarithms: right also far below the smallest double. With
// a = η e^{ε_L} and b = η e^{-ε_R}: log Pr((α, β) ∈ R). log_a = ∞ or log_b = -∞ where a side is not imposed; -∞ where R has
// no area.
double log_inside(const NodeCounts &counts, double log_a, double log_b);

// log Pr((α, β) ∈ R minus R_s), where R_s has log_a·s and log_b·s.
double log_inside_ring(const NodeCounts &counts, double log_a, double log_b, double strength);

// log |R| for log_a > 0 > log_b, and -∞ otherwise.
double log_region_area(double log_a, double log_b);

// log of |R| minus |R_s|, without the cancellation of the two.
double log_ring_area(double log_a, double log_b, double strength);

}  // namespace bmpaudit
