// Beta laws tabulated where they live: density and distribution function of eight rates at once, to about 1e-15 absolute.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "double_lanes.hpp"
#include "rate_pair.hpp"

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
    BetaBulk(double p, double q) { become(p, q); }

    // Another law in the same place.
    void become(double p, double q) {
        p_ = std::min(p, q);
        q_ = std::max(p, q);
        is_flipped_ = p > q;
        cells_per_unit_ = most_dense_ = 0;
        find_ends();
    }

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

    // Where the density has fallen by kDepth. Newton's method on a concave function stays outside, where it begins: at
    // the bounds that the Hellinger distance (KL ≥ -2 log cos of the angle) and either factor alone give.
    void find_ends() {
        const double rising = p_ - 1, falling = q_ - 1, total = rising + falling, mode = total > 0 ? rising / total : 0;
        low_ = 0;
        high_ = 1;
        if (falling > 0 && rising == 0) high_ = -std::expm1(-kDepth / falling);
        if (!(rising > 0)) return;
        const double log_mode = std::log(mode), log_rest = std::log1p(-mode);
        const double angle = std::asin(std::sqrt(mode)), reach = std::acos(std::exp(-0.5 * kDepth / total));
        const double sine = std::sin(std::max(0.0, angle - reach)), cosine = std::cos(std::min(1.5707963, angle + reach));
        const auto end = [&](double first, double log_first, double second, double log_second, double bound) {
            double v = std::max(log_first - (kDepth - second * log_second) / first, std::log(bound));
            for (int round = 0; round < 4; ++round) {
                const double other = -std::expm1(v);
                const double height = first * (v - log_first) + second * (std::log(other) - log_second) + kDepth;
                v -= height / (first - second * (1 - other) / other);
            }
            return std::exp(v);
        };
        low_ = end(rising, log_mode, falling, log_rest, sine * sine);
        high_ = 1 - end(falling, log_rest, rising, log_mode, cosine * cosine);
    }

    double p_, q_;  // of the nearer corner's rate: u, or 1-u if flipped
    bool is_flipped_;
    double low_, high_, cells_per_unit_, most_dense_;
    CellPolynomials<kDegree> density_;
    CellPolynomials<kDegree + 1> distribution_;
};

}  // namespace bmpaudit
