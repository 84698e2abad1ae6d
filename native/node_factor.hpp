// What one node adds to the likelihood, fast where that is safe: Pr((α, β) ∈ R)/|R| from tabulated laws of the error rates.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "beta_law.hpp"
#include "counts.hpp"
#include "error_rate_bulk.hpp"
#include "law_store.hpp"
#include "log_space.hpp"

namespace bmpaudit {

// log η ± ε, where an infinite ε wins over an infinite prior.
inline double shifted(double log_odds, double epsilon) { return std::isinf(epsilon) ? epsilon : log_odds + epsilon; }

// Values of ε on one side, and e^{-ε}.
struct EpsilonSide {
    const double *epsilon;
    std::vector<double> exponential;

    EpsilonSide(const double *epsilon, int64_t size) : epsilon(epsilon), exponential(size) {
        for (int64_t i = 0; i < size; ++i) exponential[i] = std::exp(-epsilon[i]);
    }
    int64_t size() const { return static_cast<int64_t>(exponential.size()); }

    // 1/a or b of a node for the i-th value: log_odds and odds are log η and η for ε_L, their opposites for ε_R. No area is
    // left where it is not below 1.
    RatePair of_node(int64_t i, double log_odds, double inverse_odds) const {
        const double minus_log = shifted(log_odds, epsilon[i]);
        if (!(minus_log > 0)) return kOne;
        if (std::isinf(minus_log)) return kZero;
        const double u = exponential[i] * inverse_odds;
        return u < 0.5 ? RatePair{u, 1 - u} : side(minus_log);
    }
};

// A region R by the sides 1/a and b.
struct Sides {
    RatePair a_inverse, b;

    bool has_area() const { return a_inverse.rest > 0 && b.rest > 0; }
    double area() const { return area_of(a_inverse, b); }
    // log a and -log b.
    double log_a() const { return minus_log(a_inverse); }
    double minus_log_b() const { return minus_log(b); }
    // R_s, which has a^s and b^s.
    Sides inner(double strength) const { return {side(strength * log_a()), side(strength * minus_log_b())}; }

  private:
    static double minus_log(const RatePair &x) { return x.u < 0.5 ? -std::log(x.u) : -std::log1p(-x.rest); }
};

// The probability of a region, or of a ring between two, divided by its area.
struct Factor {
    double inside, area;
    bool is_sure;  // if not, `inside` says no more than that the probability is at most this
    double value() const { return inside / area; }
};

// A node's error rates α and x = 1 - β where they have any probability to speak of.
class NodeRates {
  public:
    NodeRates(const NodeCounts &counts, LawStores &laws)
        : alpha_(laws.alpha.of(counts.false_positives, counts.num_out)),
          detected_(laws.detected.of(counts.num_in - counts.false_negatives, counts.num_in)) {
        const RatePair low = alpha_.low(), high = alpha_.high(), x_low = detected_.low(), x_high = detected_.high();
        largest_b_ = std::min(low.u / x_high.u, high.rest / x_low.rest);
        largest_a_inverse_ = std::min(x_low.u / high.u, x_high.rest / low.rest);
    }

    // Whether a side of the region leaves nothing outside.
    bool is_all_inside_left(const RatePair &a_inverse) const { return a_inverse.u <= largest_a_inverse_; }
    bool is_all_inside_right(const RatePair &b) const { return b.u <= largest_b_; }

    double inside(const Sides &region) const {
        if (is_all_inside_left(region.a_inverse) && is_all_inside_right(region.b)) return 1;
        tabulate();
        // Over the narrower of the two: fewer panels.
        return detected_.width() <= alpha_.width()
                   ? RatesInRegion(alpha_, detected_, region.a_inverse, region.b).probability()
                   : RatesInRegion(detected_, alpha_, region.b, region.a_inverse).probability();
    }

    Factor factor(const Sides &region, double strength) const {
        const Factor whole = checked(inside(region), region);
        if (strength == 0) return whole;
        const Sides inner = region.inner(strength);
        const double ring = whole.inside - inside(inner);
        const double area = std::exp(log_ring_area(region.log_a(), -region.minus_log_b(), strength));
        return ring > kSureRing ? Factor{ring, area, true} : Factor{std::max(0.0, ring) + kDoubt, area, false};
    }

    // Whether the probability is large enough to be known to ten digits: against the errors of the sums or, where the
    // region is thin, against what the laws leave out. Where one rate is beyond its law's ends, it has next to no density
    // on the stretch that the other leaves to it, and that is nowhere longer than between two parallel sides.
    Factor checked(double inside, const Sides &region) const {
        const double area = region.area();
        if (inside > kSure) return {inside, area, true};
        const RatePair &a_inverse = region.a_inverse, &b = region.b;
        const double upright = std::min(b.rest, a_inverse.rest / a_inverse.u) * alpha_.most_dense();
        const double level = std::min(a_inverse.rest, b.rest / b.u) * detected_.most_dense();
        const double most = std::min({1.0, area * alpha_.most_dense() * detected_.most_dense(), upright + level});
        if (inside > kSure * most) return {inside, area, true};
        return {std::max(0.0, inside) + kDoubt * most, area, false};
    }

    // Of both rates lying where R's two lower lines, or its two upper ones, may both leave something out: no more than the
    // product of what either side's corner holds.
    std::pair<double, double> corner_left(const RatePair &a_inverse) const {
        const double below = detected_.below({a_inverse.rest, a_inverse.u});
        return {1 - below, detected_.below(a_inverse)};
    }
    std::pair<double, double> corner_right(const RatePair &b) const {
        return {alpha_.below(b), 1 - alpha_.below({b.rest, b.u})};
    }
    void tabulate() const {
        alpha_.tabulate();
        detected_.tabulate();
    }

  private:
    static constexpr double kSure = 1e-5, kSureRing = 1e-4, kDoubt = 1e-10;

    BetaBulk &alpha_, &detected_;
    double largest_b_, largest_a_inverse_;
};

}  // namespace bmpaudit
