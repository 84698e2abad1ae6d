// Errors of the attack on each node, Beta laws of its error rates, and the probability that they lie in a region R of
// Theorem 6: right far into the tails.
#pragma once

#include <cstdint>

#include "core/lanes.hpp"

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

// A rate with its complement, so that neither loses digits next to 0 or 1.

// A rate and its complement, each to full relative accuracy.
struct RatePair {
    double u, rest;

    RatePair flipped() const { return {rest, u}; }
};

inline bool before(const RatePair &x, const RatePair &y) { return x.u < 0.5 ? x.u < y.u : x.rest > y.rest; }
inline const RatePair &earlier(const RatePair &x, const RatePair &y) { return before(x, y) ? x : y; }
inline const RatePair &later(const RatePair &x, const RatePair &y) { return before(x, y) ? y : x; }

inline constexpr RatePair kZero{0, 1}, kOne{1, 0};

struct RatePairs {
    Doubles u, rest;
};

// A rising line through (0, 0) or through (1, 1), within the unit square.
struct Line {
    double slope;
    bool from_top;

    RatePair at(const RatePair &x) const {
        const double distance = std::min(1.0, slope * (from_top ? x.rest : x.u));
        return from_top ? RatePair{1 - distance, distance} : RatePair{distance, 1 - distance};
    }
    Doubles distance(const RatePairs &x) const {
        const Doubles distance = slope * (from_top ? x.rest : x.u);
        return select(distance < 1.0, distance, Doubles{} + 1.0);
    }
    Line inverse() const { return {1 / slope, from_top}; }
};

struct BetaPowers;

// A Beta distribution of a rate u, density u^{p-1} (1-u)^{q-1} / B(p, q) with p, q ≥ 1.
class BetaLaw {
  public:
    BetaLaw(double p, double q);

    // The law of 1 - u.
    BetaLaw flipped() const { return BetaLaw(q_, p_); }
    double standard_deviation() const;
    double num_trials() const { return p_ + q_ - 2; }
    // The density by powers: its logarithm errs by a few units in the last place of num_trials().
    BetaPowers powers() const;
    // From the mode, by what neither factor cancels: right to many digits however large p and q are.
    double log_density(const RatePair &u) const;
    // Logarithms of Pr(U < u) and Pr(U > u), to full relative accuracy in both tails.
    void log_tails(const RatePair &u, double &lower, double &upper) const;
    // log Pr(low < U < high), where width = high - low may be known to more digits than the two.
    double log_between(const RatePair &low, const RatePair &high, double width) const;

  private:
    // log Pr(U < u) for u at most about the mean.
    double log_lower_tail(const RatePair &u) const;
    double fraction(const RatePair &u) const;
    double outward_sum(const RatePair &u) const;

    double p_, q_;
    RatePair mode_;
    double log_highest_;  // log-density at the mode
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
    bool is_alpha_narrower_;
    BetaLaw across_, along_;  // of α and x = 1 - β: along the narrower, on whose scale the other's distribution is smooth
};

// log |R| for log_a > 0 > log_b, and -∞ otherwise.
double log_region_area(double log_a, double log_b);

// log of |R| minus |R_s|, without the cancellation of the two.
double log_ring_area(double log_a, double log_b, double strength);

}  // namespace bmpaudit
