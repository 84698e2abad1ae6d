#include "estimate/node_rates.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace bmpaudit {

namespace {

// What a power of s comes to on [-1, 1] if nothing beyond the degree is left of its Chebyshev series: coefficients of
// lower powers, for the powers degree + 1, degree + 2, ... Where a Taylor series needs many terms, far fewer will do.
template <int degree, int num_powers> struct LoweredPowers {
    double coefficient[num_powers][degree + 1] = {};

    LoweredPowers() {
        // 2^degree s^{degree+1} - T_{degree+1} has no power beyond the degree.
        std::array<double, degree + 2> previous{1}, chebyshev{0, 1};
        for (int n = 1; n <= degree; ++n) {
            std::array<double, degree + 2> next{};
            for (int k = 0; k <= degree; ++k) next[k + 1] = 2 * chebyshev[k];
            for (int k = 0; k <= degree + 1; ++k) next[k] -= previous[k];
            previous = chebyshev;
            chebyshev = next;
        }
        for (int k = 0; k <= degree; ++k) coefficient[0][k] = -chebyshev[k] / chebyshev[degree + 1];
        for (int n = 1; n < num_powers; ++n)
            for (int k = 0; k <= degree; ++k)
                coefficient[n][k] = (k > 0 ? coefficient[n - 1][k - 1] : 0) + coefficient[n - 1][degree] * coefficient[0][k];
    }
};

}  // namespace

// Where the density has fallen by kDepth. Newton's method on a concave function stays outside, where it begins: at
// the bounds that the Hellinger distance (KL ≥ -2 log cos of the angle) and either factor alone give.
void BetaBulk::find_ends() {
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

// Taylor coefficients of the density f about the middle of each cell from u(1-u) f' = (p-1 - (p+q-2)u) f; then the cells'
// scales, from the mode outwards, so that neighbours meet. No exponential, and no constant that could be off. Not inlined,
// so that it is rounded alike wherever it is called.
[[gnu::noinline]] void BetaBulk::tabulate() {
    if (cells_per_unit_ > 0) return;
    static const LoweredPowers<kDegree, kTerms - kDegree - 1> lowered;
    const double half = 0.5 * width() / kCells, total = p_ + q_ - 2;
    double series[kTerms][kCells], drift[kCells], tilt[kCells], step[kCells];
    for (int j = 0; j < kCells; ++j) {
        const double middle = low_ + (2 * j + 1) * half;
        step[j] = half / (middle * (1 - middle));
        drift[j] = p_ - 1 - total * middle;
        tilt[j] = 1 - 2 * middle;
        series[0][j] = 1;
        series[1][j] = step[j] * drift[j];
    }
    for (int k = 1; k + 1 < kTerms; ++k) {
        const double share = 1.0 / (k + 1), before_last = half * (k - 1 - total);
        for (int j = 0; j < kCells; ++j)
            series[k + 1][j] =
                share * step[j] * ((drift[j] - k * tilt[j]) * series[k][j] + before_last * series[k - 1][j]);
    }
    double left[kCells] = {}, right[kCells] = {}, mass[kCells] = {}, to_left[kCells] = {};
    for (int k = 0; k < kTerms; ++k) {
        const double sign = k % 2 ? -1 : 1, share = 1.0 / (k + 1);
        for (int j = 0; j < kCells; ++j) {
            left[j] += sign * series[k][j];
            right[j] += series[k][j];
            mass[j] += (1 + sign) * share * series[k][j];
            to_left[j] += sign * share * series[k][j];
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
        scale[j] /= whole;
        distribution_.coefficient[0][j] = reached + scale[j] * to_left[j];
        reached += scale[j] * mass[j];
    }
    for (int k = 0; k <= kDegree; ++k) {
        for (int n = (kDegree + 1 + k) % 2; n < kTerms - kDegree - 1; n += 2)  // a power is lowered to those of its parity
            for (int j = 0; j < kCells; ++j) series[k][j] += lowered.coefficient[n][k] * series[kDegree + 1 + n][j];
        for (int j = 0; j < kCells; ++j) {
            density_.coefficient[k][j] = scale[j] / half * series[k][j];
            distribution_.coefficient[k + 1][j] = scale[j] / (k + 1) * series[k][j];
        }
    }
    cells_per_unit_ = kCells / width();
    most_dense_ = 4 * scale[highest] / half;
}

namespace {

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

}  // namespace

double NodeRates::inside_in_question(const Sides &region) {
    tabulate();
    // Over the narrower of the two: fewer panels.
    return detected_.width() <= alpha_.width()
               ? RatesInRegion(alpha_, detected_, region.a_inverse, region.b).probability()
               : RatesInRegion(detected_, alpha_, region.b, region.a_inverse).probability();
}

namespace {

constexpr double kTolerance = 1e-8;  // of the log-odds of a probability
constexpr int64_t kNodesAtOnce = 32;

double log_odds(double p) { return std::log(p) - std::log1p(-p); }

// Inverts a distribution function on (0, ∞) by the secant method on the log-odds of the probability against log t, nearly
// straight for small t and in the tail, kept within what is known to lie on either side. Remembers all it has seen.
template <typename Distribution> class Inverse {
  public:
    Inverse(Distribution distribution, double guess) : distribution_(distribution) {
        look_at(std::log(guess));
        look_at(std::log(guess) + 0.5);
    }

    double operator()(double p) {
        const double wanted = log_odds(p);
        for (int round = 0; round < kMostRounds; ++round) {
            Seen low{-kInfinity, -kInfinity}, high{kInfinity, kInfinity}, nearest = seen_[0], second = seen_[1];
            for (const Seen &seen : seen_) {
                if (seen.log_odds < wanted && seen.log_t > low.log_t) low = seen;
                if (seen.log_odds >= wanted && seen.log_t < high.log_t) high = seen;
                const auto distance = [&](const Seen &other) { return std::abs(other.log_odds - wanted); };
                if (distance(seen) < distance(nearest)) {
                    second = nearest;
                    nearest = seen;
                } else if (distance(seen) < distance(second) && seen.log_t != nearest.log_t) {
                    second = seen;
                }
            }
            if (std::abs(nearest.log_odds - wanted) < kTolerance) return std::exp(nearest.log_t);
            const double slope = (second.log_odds - nearest.log_odds) / (second.log_t - nearest.log_t);
            double next = nearest.log_t + std::clamp((wanted - nearest.log_odds) / slope, -2.0, 2.0);
            if (!(next > low.log_t && next < high.log_t))
                next = high.log_t == kInfinity ? low.log_t + 1
                       : low.log_t == -kInfinity ? high.log_t - 1
                                                 : 0.5 * (low.log_t + high.log_t);
            if (high.log_t - low.log_t < 1e-13) return std::exp(next);
            look_at(next);
        }
        return std::exp(seen_.back().log_t);
    }

  private:
    static constexpr int kMostRounds = 200;
    struct Seen {
        double log_t, log_odds;
    };
    void look_at(double log_t) {
        seen_.push_back({log_t, log_odds(std::clamp(distribution_(std::exp(log_t)), 1e-300, 1 - 1e-16))});
    }

    Distribution distribution_;
    std::vector<Seen> seen_;
};

// About where max{log(top/bottom), log((1-top)/(1-bottom))} lies: as if the rates were their means, or about their spread
// if that is more.
double guess_of(double top, double top_trials, double bottom, double bottom_trials) {
    const double there = std::max(std::log(top / bottom), std::log((1 - top) / (1 - bottom)));
    const auto spread = [](double mean, double trials) { return std::sqrt(mean * (1 - mean) / (trials + 3)); };
    return std::max(there, 0.5 * (spread(top, top_trials) + spread(bottom, bottom_trials)) / std::min(0.5, bottom));
}

}  // namespace

void leakage_quantiles(const NodeCounts *nodes, int64_t num_nodes, const double *probabilities, int64_t num_probabilities,
                       int num_threads, const Poll &poll, double *right, double *left) {
    const int64_t num_tasks = (num_nodes + kNodesAtOnce - 1) / kNodesAtOnce;
    run_tasks(num_tasks, num_threads, poll, [&](int64_t task, Worker &worker) {
        for (int64_t k = task * kNodesAtOnce; k < std::min(num_nodes, (task + 1) * kNodesAtOnce); ++k) {
            const NodeCounts &node = nodes[k];
            NodeRates rates(node);
            const double alpha = (node.false_positives + 1) / (node.num_out + 2);
            const double detected = (node.num_in - node.false_negatives + 1) / (node.num_in + 2);
            const auto fill = [&](auto distribution, double guess, double *result) {
                Inverse inverse(
                    [&](double t) {
                        worker.checkpoint();
                        return distribution(t);
                    },
                    guess);
                for (int64_t i = 0; i < num_probabilities; ++i) result[i] = inverse(probabilities[i]);
            };
            // Pr(e_R - log η ≤ t) is the probability of the region of ε_R = t, ε_L = ∞ and η = 1.
            fill([&](double t) { return rates.inside({kZero, side(t)}); },
                 guess_of(detected, node.num_in, alpha, node.num_out), right + k * num_probabilities);
            fill([&](double t) { return rates.inside({side(t), kZero}); },
                 guess_of(alpha, node.num_out, detected, node.num_in), left + k * num_probabilities);
        }
    });
}

}  // namespace bmpaudit
