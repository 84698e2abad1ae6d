// What one node adds to the likelihood, fast: its error rates where they have any probability to speak of.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "core/lanes.hpp"
#include "core/log_space.hpp"
#include "core/threads.hpp"
#include "estimate/beta_law.hpp"

namespace bmpaudit {

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

// Beta laws tabulated where they live: density and distribution function of eight rates at once, to about 1e-15 absolute.

// A polynomial on each of sixteen cells, in the position from -1 to 1 within the cell.
template <int degree> struct CellPolynomials {
    static constexpr int kCells = 16;
    alignas(64) double coefficient[degree + 1][kCells];

    // The coefficients of one power in eight cells.
    Doubles of_power(int power, const Wide<int64_t> &cell) const {
        const double *row = coefficient[power];
#if defined(__AVX512F__) && !defined(__clang__)
        Doubles low, high;
        std::memcpy(&low, row, sizeof(low));
        std::memcpy(&high, row + kDoubles, sizeof(high));
        return __builtin_shuffle(low, high, cell);
#else
        Doubles values;
        for (int lane = 0; lane < kDoubles; ++lane) values[lane] = row[cell[lane]];
        return values;
#endif
    }
    Doubles at(const Wide<int64_t> &cell, const Doubles &position) const {
        Doubles value = of_power(degree, cell);
        for (int power = degree - 1; power >= 0; --power) value = value * position + of_power(power, cell);
        return value;
    }
    double at(int cell, double position) const {
        double value = coefficient[degree][cell];
        for (int power = degree - 1; power >= 0; --power) value = value * position + coefficient[power][cell];
        return value;
    }
};

// Density and distribution function of a Beta law on cells that cover all but 1e-15 of it; what lies beyond is nothing.
class BetaBulk {
  public:
    BetaBulk(double p, double q) : p_(std::min(p, q)), q_(std::max(p, q)), is_flipped_(p > q) { find_ends(); }

    RatePair low() const { return pair_of(is_flipped_ ? high_ : low_); }
    RatePair high() const { return pair_of(is_flipped_ ? low_ : high_); }
    double width() const { return high_ - low_; }
    // Must be called before anything below: most laws are never in question.
    void tabulate();
    // An upper bound of the density.
    double most_dense() const { return most_dense_; }

    // Distance from the nearer of 0 and 1 to a rate: what the law is tabulated by.
    double own_of(const RatePair &u) const { return is_flipped_ ? u.rest : u.u; }
    Doubles own_of(const Line &line, const RatePairs &v) const {
        const Doubles distance = line.distance(v);
        return line.from_top == is_flipped_ ? distance : 1.0 - distance;
    }
    RatePair pair_of(double own) const { return is_flipped_ ? RatePair{1 - own, own} : RatePair{own, 1 - own}; }
    RatePairs pairs_of(const Doubles &own) const {
        return is_flipped_ ? RatePairs{1.0 - own, own} : RatePairs{own, 1.0 - own};
    }

    // Pr(own rate < own).
    double distribution(double own) const {
        const double at = std::clamp((own - low_) * cells_per_unit_, 0.0, kLastCell);
        const int cell = static_cast<int>(at);
        return distribution_.at(cell, 2 * (at - cell) - 1);
    }
    Doubles distribution(const Doubles &own) const {
        const Place place(at(own));
        return distribution_.at(place.cell, place.position);
    }
    Doubles density(const Doubles &own) const {
        const Place place(at(own));
        return density_.at(place.cell, place.position);
    }
    // Whether strips of this width are so thin that `around` is for them.
    bool is_thin(double gap) const { return gap * cells_per_unit_ < kThin; }
    // The probability of strips about some rates: divided differences, in which nothing cancels.
    Doubles around(const Doubles &own, const Doubles &gap) const {
        const Place place(at(own));
        const Doubles half = gap * cells_per_unit_, end = place.position + half, begin = place.position - half;
        Doubles quotient = distribution_.of_power(kDegree + 1, place.cell), value = quotient;
        for (int power = kDegree; power >= 1; --power) {
            quotient = quotient * end + distribution_.of_power(power, place.cell);
            value = value * begin + quotient;
        }
        return value * (half + half);
    }
    // Pr(U < u).
    double below(const RatePair &u) const {
        const double own = distribution(own_of(u));
        return is_flipped_ ? 1 - own : own;
    }
    double flipped_sign() const { return is_flipped_ ? -1 : 1; }

  private:
    static constexpr int kCells = CellPolynomials<1>::kCells, kDegree = 15, kTerms = 23;
    static constexpr double kLastCell = 0x1.fffffffffffffp3;  // the last number below kCells
    static constexpr double kDepth = 36;  // nats below the highest density
    static constexpr double kThin = 0.05;  // half cells by which a polynomial may be followed beyond its cell

    struct Place {
        Wide<int64_t> cell;
        Doubles position;

        // Rounds by a sum with a number so large that no digits are left behind the point.
        explicit Place(const Doubles &at) {
            constexpr double large = 0x1.8p52;
            const Doubles shifted = at - 0.5 + large;
            std::memcpy(&cell, &shifted, sizeof(cell));
            cell &= kCells - 1;
            position = 2.0 * (at - (shifted - large)) - 1.0;
        }
    };
    Doubles at(const Doubles &own) const {
        const Doubles at = (own - low_) * cells_per_unit_, least = select(at > 0.0, at, Doubles{});
        return select(least < kLastCell, least, Doubles{} + kLastCell);
    }

    void find_ends();

    double p_, q_;  // of the nearer corner's rate: u, or 1-u if flipped
    bool is_flipped_;
    double low_, high_, cells_per_unit_ = 0, most_dense_ = 0;
    CellPolynomials<kDegree> density_;
    CellPolynomials<kDegree + 1> distribution_;
};

// One side of a region: 1/a or b, and its complement; 0 where it is not imposed, 1 or more where nothing is left.
inline RatePair side(double minus_log) { return {std::exp(-minus_log), -std::expm1(-minus_log)}; }

// |R|.
inline double area_of(const RatePair &a_inverse, const RatePair &b) {
    return a_inverse.rest * b.rest / (a_inverse.rest + a_inverse.u * b.rest);
}

// What one node adds to the likelihood, fast where that is safe: Pr((α, β) ∈ R)/|R| from tabulated laws of the error rates.

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
    explicit NodeRates(const NodeCounts &counts)
        : alpha_(counts.false_positives + 1, counts.num_out - counts.false_positives + 1),
          detected_(counts.num_in - counts.false_negatives + 1, counts.false_negatives + 1) {
        const RatePair low = alpha_.low(), high = alpha_.high(), x_low = detected_.low(), x_high = detected_.high();
        largest_b_ = std::min(low.u / x_high.u, high.rest / x_low.rest);
        largest_a_inverse_ = std::min(x_low.u / high.u, x_high.rest / low.rest);
    }

    // Whether a side of the region leaves nothing outside.
    bool is_all_inside_left(const RatePair &a_inverse) const { return a_inverse.u <= largest_a_inverse_; }
    bool is_all_inside_right(const RatePair &b) const { return b.u <= largest_b_; }

    double inside(const Sides &region) {
        if (is_all_inside_left(region.a_inverse) && is_all_inside_right(region.b)) return 1;
        return inside_in_question(region);
    }

    Factor factor(const Sides &region, double strength) {
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
    void tabulate() {
        alpha_.tabulate();
        detected_.tabulate();
    }

  private:
    static constexpr double kSure = 1e-5, kSureRing = 1e-4, kDoubt = 1e-10;

    // By quadrature.
    double inside_in_question(const Sides &region);

    BetaBulk alpha_, detected_;
    double largest_b_, largest_a_inverse_;
};

// Quantiles of the ε that a node's error rates imply, under the flat Beta posteriors of these rates.

// For each node and probability in (0, 1), the quantiles of e_R - log η (right) and of e_L + log η (left),
// both arrays of num_nodes × num_probabilities. Neither depends on η. The same on any number of threads.
void leakage_quantiles(const NodeCounts *nodes, int64_t num_nodes, const double *probabilities, int64_t num_probabilities,
                       int num_threads, const Poll &poll, double *right, double *left);

}  // namespace bmpaudit
