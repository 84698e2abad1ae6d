// Beta laws of error rates, and the probability that they lie in a region R of Theorem 6: right far into the tails.
#pragma once

#include "counts.hpp"

namespace bmpaudit {

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
    // log Pr(low < U < high), where width = high - low may be known to more digits than the two.
    double log_between(double low, double high, double width) const;

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

}  // namespace bmpaudit
