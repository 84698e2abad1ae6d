// Beta laws tabulated where they live, and the probability of lying below a line: to about 1e-15 absolute, fast.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gauss_legendre.hpp"

namespace bmpaudit {

// A rate and its complement, each to full relative accuracy.
struct RatePair {
    double u, rest;
};

inline bool before(const RatePair &x, const RatePair &y) { return x.u < 0.5 ? x.u < y.u : x.rest > y.rest; }
inline const RatePair &earlier(const RatePair &x, const RatePair &y) { return before(x, y) ? x : y; }
inline const RatePair &later(const RatePair &x, const RatePair &y) { return before(x, y) ? y : x; }

inline constexpr RatePair kZero{0, 1}, kOne{1, 0};

// A rising line through (0, 0) or through (1, 1), within the unit square.
struct Line {
    double slope;
    bool from_top;

    RatePair at(const RatePair &x) const {
        const double distance = std::min(1.0, slope * (from_top ? x.rest : x.u));
        return from_top ? RatePair{1 - distance, distance} : RatePair{distance, 1 - distance};
    }
    Line inverse() const { return {1 / slope, from_top}; }
};

// The distribution function of a Beta law as a Taylor polynomial on each of many cells that cover all but 1e-16 of it.
class BetaBulk {
  public:
    BetaBulk(double p, double q) : p_(std::min(p, q)), q_(std::max(p, q)), is_flipped_(p > q) { find_ends(); }

    RatePair low() const { return pair_of(is_flipped_ ? high_ : low_); }
    RatePair high() const { return pair_of(is_flipped_ ? low_ : high_); }
    double width() const { return high_ - low_; }

    // Pr(U < u).
    double below(const RatePair &u) const {
        const double own = own_of(u);
        const double value = own <= low_ ? 0 : own >= high_ ? 1 : distribution(own);
        return is_flipped_ ? 1 - value : value;
    }

    // E[g(U); begin < U < end] for a g that is no steeper than the law's distribution function.
    template <typename Function> double expectation(Function g, const RatePair &begin, const RatePair &end) const {
        double from = own_of(begin), to = own_of(end);
        if (from > to) std::swap(from, to);
        const double share = (to - from) / width();
        if (share <= 0.2) return quadrature<16>(g, from, to);
        if (share <= 0.5) return quadrature<28>(g, from, to);
        return quadrature<44>(g, from, to);
    }

  private:
    static constexpr int kCells = 64, kDegree = 12;
    static constexpr double kDepth = 36;  // nats below the highest density
    struct Cell {
        double coefficient[kDegree + 1];  // of powers of the position in the cell, -1 to 1
    };

    double own_of(const RatePair &u) const { return is_flipped_ ? u.rest : u.u; }
    RatePair pair_of(double own) const { return is_flipped_ ? RatePair{1 - own, own} : RatePair{own, 1 - own}; }

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

    // Taylor coefficients of the density f about the middle of each cell from u(1-u) f' = (p-1 - (p+q-2)u) f; then the
    // cells' scales, from the mode outwards, so that neighbours meet. No exponential, and no constant that could be off.
    void tabulate() const {
        const double half = 0.5 * width() / kCells, total = p_ + q_ - 2;
        double series[kDegree][kCells], left[kCells] = {}, right[kCells] = {}, mass[kCells] = {}, to_left[kCells] = {};
        for (int j = 0; j < kCells; ++j) {
            const double middle = low_ + (2 * j + 1) * half, step = half / (middle * (1 - middle));
            const double drift = p_ - 1 - total * middle, tilt = 1 - 2 * middle;
            series[0][j] = 1;
            series[1][j] = step * drift;
            for (int k = 1; k + 1 < kDegree; ++k)
                series[k + 1][j] =
                    step * ((drift - k * tilt) * series[k][j] + half * (k - 1 - total) * series[k - 1][j]) / (k + 1);
        }
        for (int k = 0; k < kDegree; ++k) {
            const double sign = k % 2 ? -1 : 1;
            for (int j = 0; j < kCells; ++j) {
                left[j] += sign * series[k][j];
                right[j] += series[k][j];
                mass[j] += (1 + sign) / (k + 1) * series[k][j];
                to_left[j] += sign / (k + 1) * series[k][j];
            }
        }
        double scale[kCells];
        const double mode = total > 0 ? (p_ - 1) / total : 0;
        const int highest = std::clamp(static_cast<int>((mode - low_) / (2 * half)), 0, kCells - 1);
        scale[highest] = 1;
        for (int j = highest + 1; j < kCells; ++j) scale[j] = scale[j - 1] * right[j - 1] / left[j];
        for (int j = highest - 1; j >= 0; --j) scale[j] = scale[j + 1] * left[j + 1] / right[j];
        double whole = 0, reached = 0;
        for (int j = 0; j < kCells; ++j) whole += scale[j] * mass[j];
        for (int j = 0; j < kCells; ++j) {
            const double share = scale[j] / whole;
            cells_[j].coefficient[0] = reached + share * to_left[j];
            for (int k = 0; k < kDegree; ++k) cells_[j].coefficient[k + 1] = share * series[k][j] / (k + 1);
            reached += share * mass[j];
        }
        cells_per_unit_ = kCells / width();
        is_tabulated_ = true;
    }

    const Cell &cell_of(double own, double &position) const {
        if (!is_tabulated_) tabulate();
        const double at = (own - low_) * cells_per_unit_;
        const int j = std::clamp(static_cast<int>(at), 0, kCells - 1);
        position = 2 * (at - j) - 1;
        return cells_[j];
    }

    double distribution(double own) const {
        double s;
        const Cell &cell = cell_of(own, s);
        double value = cell.coefficient[kDegree];
        for (int k = kDegree - 1; k >= 0; --k) value = value * s + cell.coefficient[k];
        return value;
    }

    double density(double own) const {
        double s;
        const Cell &cell = cell_of(own, s);
        double value = kDegree * cell.coefficient[kDegree];
        for (int k = kDegree - 1; k >= 1; --k) value = value * s + k * cell.coefficient[k];
        return value * 2 * cells_per_unit_;
    }

    template <int n, typename Function> double quadrature(Function g, double from, double to) const {
        static const GaussLegendre<n> rule;
        const double middle = 0.5 * (from + to), half = 0.5 * (to - from);
        double sum = 0;
        for (int i = 0; i < n; ++i) {
            const double own = middle + half * rule.node[i];
            sum += rule.weight[i] * density(own) * g(pair_of(own));
        }
        return sum * half;
    }

    double p_, q_;  // of the nearer corner's rate: u, or 1-u if flipped
    bool is_flipped_;
    double low_, high_;
    mutable bool is_tabulated_ = false;
    mutable double cells_per_unit_ = 0;
    mutable std::array<Cell, kCells> cells_;  // made when first asked for: most laws are never in question
};

namespace detail {

// Pr(begin < V < end, U < line(V)) as an integral over V, which must be the narrower one and be tabulated from begin to end.
inline double below_line_over(const BetaBulk &u, const BetaBulk &v, const Line &line, const RatePair &begin,
                              const RatePair &end) {
    const Line back = line.inverse();
    const RatePair some = back.at(u.low()), all = back.at(u.high());
    const RatePair from = later(begin, some), to = earlier(end, all), settled = later(begin, all);
    double sum = before(settled, end) ? v.below(end) - v.below(settled) : 0;
    if (before(from, to)) sum += v.expectation([&](const RatePair &x) { return u.below(line.at(x)); }, from, to);
    return sum;
}

}  // namespace detail

// Pr(begin < V < end, U < line(V)) for independent U and V.
inline double below_line(const BetaBulk &u, const BetaBulk &v, const Line &line, RatePair begin, RatePair end) {
    begin = later(begin, v.low());
    end = earlier(end, v.high());
    if (!before(begin, end)) return 0;
    const RatePair least = line.at(begin), most = line.at(end);
    if (!before(u.low(), most)) return 0;
    if (!before(least, u.high())) return v.below(end) - v.below(begin);
    // Over the narrower of the two, as seen across the line: the distribution function of the other is smooth on its scale.
    if (line.slope * v.width() <= u.width()) return detail::below_line_over(u, v, line, begin, end);
    const double below_least = u.below(least), all = v.below(end);
    return below_least * (all - v.below(begin)) + (u.below(most) - below_least) * all -
           detail::below_line_over(v, u, line.inverse(), later(least, u.low()), earlier(most, u.high()));
}

}  // namespace bmpaudit
