// A node's error rates where they have any probability to speak of, and the probability of lying outside a region R of
// Theorem 6: right to about 1e-14 absolute, fast.
#pragma once

#include <cmath>

#include "beta_bulk.hpp"
#include "counts.hpp"

namespace bmpaudit {

// One side of a region: 1/a or b, and its complement; 0 where it is not imposed, 1 or more where nothing is left.
inline RatePair side(double minus_log) { return {std::exp(-minus_log), -std::expm1(-minus_log)}; }

// |R| and 1 - |R|.
inline RatePair area_of(const RatePair &a_inverse, const RatePair &b) {
    const double scale = 1 / (a_inverse.rest + a_inverse.u * b.rest);
    return {a_inverse.rest * b.rest * scale, (a_inverse.u * b.rest + b.u * a_inverse.rest) * scale};
}

inline double ring_area(const RatePair &outer, const RatePair &inner) {
    return inner.u < 0.5 ? outer.u - inner.u : inner.rest - outer.rest;
}

// A node's error rates where they have any probability to speak of.
class ErrorRateBulk {
  public:
    explicit ErrorRateBulk(const NodeCounts &counts)
        : alpha_(counts.false_positives + 1, counts.num_out - counts.false_positives + 1),
          detected_(counts.num_in - counts.false_negatives + 1, counts.false_negatives + 1) {}

    // Pr(below the line of b, α < b x) and Pr(above the other, 1-α < b(1-x)).
    double below_right(const RatePair &b) const { return is_imposed(b) ? below({b.u, false}, kZero, kOne) : 0; }
    double above_right(const RatePair &b) const { return is_imposed(b) ? above({b.u, true}, kZero, kOne) : 0; }
    // The same for the lines of a: 1-x < (1-α)/a and x < α/a.
    double below_left(const RatePair &a_inverse) const {
        return is_imposed(a_inverse) ? below({1 / a_inverse.u, true}, {a_inverse.rest, a_inverse.u}, kOne) : 0;
    }
    double above_left(const RatePair &a_inverse) const {
        return is_imposed(a_inverse) ? above({1 / a_inverse.u, false}, kZero, a_inverse) : 0;
    }
    // Below the region, whose lower border bends where its two lines cross, and above it.
    double below_both(const RatePair &a_inverse, const RatePair &b) const {
        if (!is_imposed(a_inverse)) return below_right(b);
        if (!is_imposed(b)) return below_left(a_inverse);
        const RatePair kink = lower_kink(a_inverse, b);
        return below({b.u, false}, kZero, kink) + below({1 / a_inverse.u, true}, kink, kOne);
    }
    double above_both(const RatePair &a_inverse, const RatePair &b) const {
        if (!is_imposed(a_inverse)) return above_right(b);
        if (!is_imposed(b)) return above_left(a_inverse);
        const RatePair lower = lower_kink(a_inverse, b), kink{lower.rest, lower.u};
        return above({1 / a_inverse.u, false}, kZero, kink) + above({b.u, true}, kink, kOne);
    }
    double outside(const RatePair &a_inverse, const RatePair &b) const {
        return below_both(a_inverse, b) + above_both(a_inverse, b);
    }
    // Bounds of the probability of lying below both lower lines, or above both upper ones: rectangles on either side of
    // the point where they cross.
    double most_below_each(const RatePair &a_inverse, const RatePair &b) const {
        const RatePair kink = lower_kink(a_inverse, b);
        const double left_of = detected_.below(kink);
        return alpha_.below(Line{b.u, false}.at(kink)) * left_of + alpha_.below(b) * (1 - left_of);
    }
    double most_above_each(const RatePair &a_inverse, const RatePair &b) const {
        const RatePair lower = lower_kink(a_inverse, b), kink{lower.rest, lower.u};
        const double left_of = detected_.below(kink);
        return (1 - alpha_.below({b.rest, b.u})) * left_of + (1 - alpha_.below(Line{b.u, true}.at(kink))) * (1 - left_of);
    }

  private:
    static bool is_imposed(const RatePair &slope) { return slope.u > 1e-300; }
    static RatePair lower_kink(const RatePair &a_inverse, const RatePair &b) {
        const double scale = 1 / (a_inverse.rest + a_inverse.u * b.rest);
        return {a_inverse.rest * scale, a_inverse.u * b.rest * scale};
    }
    double below(const Line &line, const RatePair &begin, const RatePair &end) const {
        return below_line(alpha_, detected_, line, begin, end);
    }
    double above(const Line &line, const RatePair &begin, const RatePair &end) const {
        return detected_.below(end) - detected_.below(begin) - below(line, begin, end);
    }

    BetaBulk alpha_, detected_;
};

}  // namespace bmpaudit
