// Beta laws of error rates, and the probability that they lie in a region R of Theorem 6: right far into the tails.
#pragma once

#include "counts.hpp"
#include "rare_rates.hpp"
#include "rate_pair.hpp"

namespace bmpaudit {

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
