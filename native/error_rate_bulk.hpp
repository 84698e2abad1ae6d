// A node's error rates where they have any probability to speak of, and the probability of a region R of Theorem 6, fast.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "beta_bulk.hpp"
#include "gauss_legendre.hpp"

namespace bmpaudit {

// One side of a region: 1/a or b, and its complement; 0 where it is not imposed, 1 or more where nothing is left.
inline RatePair side(double minus_log) { return {std::exp(-minus_log), -std::expm1(-minus_log)}; }

// |R|.
inline double area_of(const RatePair &a_inverse, const RatePair &b) {
    return a_inverse.rest * b.rest / (a_inverse.rest + a_inverse.u * b.rest);
}

// Two independent rates, U = α and V = x = 1 - β or the other way round, and the probability that they lie in R: U between
// max(b V, 1 - a(1-V)) and min(a V, 1 - b(1-V)). Their laws must be tabulated.
class RatesInRegion {
  public:
    RatesInRegion(const BetaBulk &u, const BetaBulk &v, const RatePair &a_inverse, const RatePair &b)
        : u_(u), v_(v), a_inverse_(a_inverse), b_(b) {}

    // To about 1e-15 absolute, and for thin regions to about 1e-13 of itself but for what the laws leave out.
    double probability() const {
        const double both = a_inverse_.rest + a_inverse_.u * b_.rest;  // (a - b)/a
        // Where the two lower lines cross, and, seen from the other corner, the two upper ones.
        const RatePair lower_kink{a_inverse_.rest / both, a_inverse_.u * b_.rest / both};
        const RatePair upper_kink{lower_kink.rest, lower_kink.u};
        const Line from_origin{b_.u, false}, from_top{b_.u, true};
        const Line steep_from_origin{1 / a_inverse_.u, false}, steep_from_top{1 / a_inverse_.u, true};
        const double wedge = both / a_inverse_.u;
        double sum = strip(from_origin, steep_from_origin, {0, wedge, 0}, kZero, earlier(lower_kink, upper_kink));
        sum += strip(steep_from_top, from_top, {0, 0, wedge}, later(lower_kink, upper_kink), kOne);
        if (before(lower_kink, upper_kink))
            return sum + strip(steep_from_top, steep_from_origin, {a_inverse_.rest / a_inverse_.u, 0, 0}, lower_kink, upper_kink);
        return sum + strip(from_origin, from_top, {b_.rest, 0, 0}, upper_kink, lower_kink);
    }

  private:
    // The distance between two lines, which would cancel if taken from them: a constant, or a multiple of V or of 1 - V.
    struct Gap {
        double constant, from_origin, from_top;
        template <typename Pair> auto at(const Pair &v) const { return from_origin * v.u + from_top * v.rest + constant; }
    };

    // Pr(begin < V < end, lower(V) < U < upper(V)).
    double strip(const Line &lower, const Line &upper, const Gap &gap, RatePair begin, RatePair end) const {
        begin = later(begin, v_.low());
        end = earlier(end, v_.high());
        if (!before(begin, end)) return 0;
        begin = later(begin, upper.inverse().at(u_.low()));
        end = earlier(end, lower.inverse().at(u_.high()));
        if (!before(begin, end)) return 0;
        // U may be below the lower line only from here on, and above the upper one only up to there.
        const auto clamped = [&](const RatePair &at) { return later(begin, earlier(at, end)); };
        const RatePair lower_from = clamped(lower.inverse().at(u_.low()));
        const RatePair upper_to = clamped(upper.inverse().at(u_.high()));
        const RatePair &first = earlier(lower_from, upper_to), &second = later(lower_from, upper_to);
        const double side = u_.flipped_sign();
        // A distribution function by the own rate falls from 1 where the law is flipped.
        const auto below = [&](const Line &line, const RatePairs &v) { return side * u_.distribution(u_.own_of(line, v)); };
        double sum = integral(begin, first, upper, [&](const RatePairs &v) { return below(upper, v) + (side < 0 ? 1.0 : 0.0); });
        sum += integral(second, end, lower, [&](const RatePairs &v) { return (side < 0 ? 0.0 : 1.0) - below(lower, v); });
        if (!before(first, second)) return sum;
        if (before(upper_to, lower_from))
            return sum + std::abs(v_.distribution(v_.own_of(second)) - v_.distribution(v_.own_of(first)));
        const Line &steeper = lower.slope > upper.slope ? lower : upper;
        if (u_.is_thin(std::max(gap.at(first), gap.at(second))))
            return sum + integral(first, second, steeper, [&](const RatePairs &v) {
                return u_.around(0.5 * (u_.own_of(lower, v) + u_.own_of(upper, v)), gap.at(v));
            });
        return sum + integral(first, second, steeper, [&](const RatePairs &v) { return below(upper, v) - below(lower, v); });
    }

    // E[g(V); begin < V < end] by as many points as it takes for the parts of the two laws that the panel spans.
    template <typename Function>
    double integral(const RatePair &begin, const RatePair &end, const Line &line, Function g) const {
        if (!before(begin, end)) return 0;
        const double part_v = (v_.own_of(end) - v_.own_of(begin)) / v_.width();
        const double part_u = (u_.own_of(line.at(end)) - u_.own_of(line.at(begin))) / u_.width();
        const double square = part_v * part_v + part_u * part_u;
        if (square <= 0.06 * 0.06) return quadrature<8>(begin, end, g);
        if (square <= 0.25 * 0.25) return quadrature<16>(begin, end, g);
        if (square <= 0.45 * 0.45) return quadrature<24>(begin, end, g);
        if (square <= 0.6 * 0.6) return quadrature<32>(begin, end, g);
        if (square <= 0.9 * 0.9) return quadrature<40>(begin, end, g);
        return quadrature<48>(begin, end, g);
    }

    template <int n, typename Function> double quadrature(const RatePair &begin, const RatePair &end, Function g) const {
        static const GaussLegendre<n> rule;
        const double from = v_.own_of(begin), half = 0.5 * (v_.own_of(end) - from), middle = from + half;
        Doubles sum{};
        for (int i = 0; i < n; i += kDoubles) {
            Doubles node, weight;
            std::memcpy(&node, &rule.node[i], sizeof(node));
            std::memcpy(&weight, &rule.weight[i], sizeof(weight));
            const Doubles own = half * node + middle;
            sum += weight * v_.density(own) * g(v_.pairs_of(own));
        }
        double total = 0;
        for (int lane = 0; lane < kDoubles; ++lane) total += sum[lane];
        return std::abs(half) * total;
    }

    const BetaBulk &u_, &v_;
    const RatePair &a_inverse_, &b_;
};

}  // namespace bmpaudit
