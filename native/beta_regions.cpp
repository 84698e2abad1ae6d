#include "beta_regions.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

namespace bmpaudit {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kQuadraturePoints = 24;
constexpr double kNegligible = 42.0;  // nats below the peak: less than 1e-18 of it

double log1mexp(double x) {  // log(1 - e^x) for x < 0
    return x > -0.6931471805599453 ? std::log(-std::expm1(x)) : std::log1p(-std::exp(x));
}

double log_difference(double larger, double smaller) {  // log(e^larger - e^smaller)
    if (smaller == -kInfinity) return larger;
    return larger > smaller ? larger + log1mexp(smaller - larger) : -kInfinity;
}

double log_sum(double x, double y) {
    if (x < y) std::swap(x, y);
    return y == -kInfinity ? x : x + std::log1p(std::exp(y - x));
}

double log_beta(double p, double q) { return std::lgamma(p) + std::lgamma(q) - std::lgamma(p + q); }

// Nodes and weights of Gauss-Legendre quadrature on [-1, 1], by Newton's method on the Legendre polynomial.
struct GaussLegendre {
    std::array<double, kQuadraturePoints> node, weight;
    GaussLegendre() {
        constexpr int n = kQuadraturePoints;
        for (int i = 0; i < n; ++i) {
            double x = std::cos(3.141592653589793 * (i + 0.75) / (n + 0.5)), slope = 1;
            for (int round = 0; round < 20; ++round) {
                double previous = 1, value = x;
                for (int k = 2; k <= n; ++k) {
                    const double next = ((2 * k - 1) * x * value - (k - 1) * previous) / k;
                    previous = value;
                    value = next;
                }
                slope = n * (x * value - previous) / (x * x - 1);
                const double step = value / slope;
                x -= step;
                if (std::abs(step) < 1e-16) break;
            }
            node[i] = x;
            weight[i] = 2 / ((1 - x * x) * slope * slope);
        }
    }
};

// log ∫ e^{log_h} over [low, high] for a function that rises to one peak and falls (log-concave ones do).
template <typename LogFunction> double log_integral(LogFunction log_h, double low, double high) {
    static const GaussLegendre rule;
    if (!(low < high)) return -kInfinity;
    // The peak, by golden section: precise enough once it is small against the width of the peak.
    constexpr double golden = 0.6180339887498949;
    double left = low, right = high;
    double x1 = right - golden * (right - left), x2 = left + golden * (right - left);
    double h1 = log_h(x1), h2 = log_h(x2);
    for (int round = 0; round < 60; ++round) {
        if (h1 < h2) {
            left = x1;
            x1 = x2;
            h1 = h2;
            x2 = left + golden * (right - left);
            h2 = log_h(x2);
        } else {
            right = x2;
            x2 = x1;
            h2 = h1;
            x1 = right - golden * (right - left);
            h1 = log_h(x1);
        }
        if (std::abs(h1 - h2) < 0.1 && right - left < 0.5 * (high - low) && h1 > -kInfinity) {
            // Both points near the top, and the ends not far below it: the peak is between them.
            const double at_left = log_h(left), at_right = log_h(right);
            if (std::max(h1, h2) - std::min(at_left, at_right) < 1.0) break;
        }
    }
    const double peak_at = h1 > h2 ? x1 : x2, peak = std::max(h1, h2);
    if (peak == -kInfinity) return -kInfinity;
    const auto edge = [&](double inside, double outside) {
        if (log_h(outside) > peak - kNegligible) return outside;
        for (int round = 0; round < 60; ++round) {
            const double middle = 0.5 * (inside + outside), value = log_h(middle);
            if (value > peak - kNegligible) inside = middle;
            else outside = middle;
            if (value <= peak - kNegligible && value > peak - kNegligible - 6) break;
        }
        return outside;
    };
    const double from = edge(peak_at, low), to = edge(peak_at, high);
    // Two panels that meet at the peak, so that a lopsided one is resolved on both sides.
    double sum = 0;
    for (const auto &[begin, end] : {std::pair(from, peak_at), std::pair(peak_at, to)}) {
        const double middle = 0.5 * (begin + end), half = 0.5 * (end - begin);
        for (int i = 0; i < kQuadraturePoints; ++i)
            sum += half * rule.weight[i] * std::exp(log_h(middle + half * rule.node[i]) - peak);
    }
    return peak + std::log(sum);
}

}  // namespace

BetaLaw::BetaLaw(double p, double q) : p(p), q(q), log_norm(log_beta(p, q)) {}

BetaLaw BetaLaw::flipped() const { return BetaLaw(q, p, log_norm); }

double BetaLaw::standard_deviation() const { return std::sqrt(p * q / (p + q + 1)) / (p + q); }

double BetaLaw::log_density(double u) const {
    const double rising = p == 1 ? 0 : (p - 1) * std::log(u), falling = q == 1 ? 0 : (q - 1) * std::log1p(-u);
    return rising + falling - log_norm;
}

void BetaLaw::log_tails(double u, double &lower, double &upper) const {
    if (u <= 0) {
        lower = -kInfinity;
        upper = 0;
        return;
    }
    if (u >= 1) {
        lower = 0;
        upper = -kInfinity;
        return;
    }
    // The continued fraction of the incomplete beta function (Lentz's method) converges fast below the mean.
    const bool is_low = u < (p + 1) / (p + q + 2);
    const double first = is_low ? p : q, second = is_low ? q : p, x = is_low ? u : 1 - u;
    double c = 1, d = 1 - (first + second) * x / (first + 1);
    constexpr double tiny = 1e-300;
    if (std::abs(d) < tiny) d = tiny;
    d = 1 / d;
    double fraction = d;
    for (int m = 1; m < 10000; ++m) {
        const double even = m * (second - m) * x / ((first + 2 * m - 1) * (first + 2 * m));
        d = 1 + even * d;
        if (std::abs(d) < tiny) d = tiny;
        c = 1 + even / c;
        if (std::abs(c) < tiny) c = tiny;
        d = 1 / d;
        fraction *= d * c;
        const double odd = -(first + m) * (first + second + m) * x / ((first + 2 * m) * (first + 2 * m + 1));
        d = 1 + odd * d;
        if (std::abs(d) < tiny) d = tiny;
        c = 1 + odd / c;
        if (std::abs(c) < tiny) c = tiny;
        d = 1 / d;
        const double change = d * c;
        fraction *= change;
        if (std::abs(change - 1) < 1e-15) break;
    }
    const double log_x = is_low ? std::log(u) : std::log1p(-u), log_rest = is_low ? std::log1p(-u) : std::log(u);
    const double tail = std::min(0.0, first * log_x + second * log_rest - log_norm - std::log(first) + std::log(fraction));
    lower = is_low ? tail : log1mexp(tail);
    upper = is_low ? log1mexp(tail) : tail;
}

double BetaLaw::log_between(double low, double high) const {
    if (!(low < high)) return -kInfinity;
    double lower_low, upper_low, lower_high, upper_high;
    log_tails(low, lower_low, upper_low);
    log_tails(high, lower_high, upper_high);
    // From the tail in which both are small, so that nothing cancels.
    return lower_high < upper_low ? log_difference(lower_high, lower_low) : log_difference(upper_low, upper_high);
}

double log_ratio_below(const BetaLaw &u, const BetaLaw &v, double c) {
    if (c <= 0) return -kInfinity;
    // Pr(U < cV) ≤ Pr(U < y) + Pr(V > y/c) for any y. Between the bulks of U and cV this settles the many cases where the
    // event is out of the question.
    const double spread_u = u.standard_deviation(), spread_v = c * v.standard_deviation();
    const double y = (u.mean() * spread_v + c * v.mean() * spread_u) / (spread_u + spread_v);
    if (u.mean() > c * v.mean()) {
        double below, above, unused;
        u.log_tails(y, below, unused);
        v.log_tails(y / c, unused, above);
        if (std::max(below, above) < -kNegligible) return -kInfinity;
    }
    // Over the narrower of U and cV: the distribution function of the other is smooth on its scale.
    if (spread_u < spread_v)
        return std::min(0.0, log_integral([&](double x) {
            double lower, upper;
            v.log_tails(x / c, lower, upper);
            return u.log_density(x) + upper;
        }, 0.0, c));
    return std::min(0.0, log_integral([&](double x) {
        double lower, upper;
        u.log_tails(c * x, lower, upper);
        return v.log_density(x) + lower;
    }, 0.0, 1.0));
}

ErrorRateLaw::ErrorRateLaw(const NodeCounts &counts)
    : alpha_(counts.false_positives + 1, counts.num_out - counts.false_positives + 1),
      detected_(counts.num_in - counts.false_negatives + 1, counts.false_negatives + 1) {}

double ErrorRateLaw::outside_right(double log_b) const {
    if (log_b == -kInfinity) return 0;
    const double b = std::exp(log_b);
    return std::min(1.0, std::exp(log_ratio_below(alpha_, detected_, b)) +
                             std::exp(log_ratio_below(alpha_.flipped(), detected_.flipped(), b)));
}

double ErrorRateLaw::outside_left(double log_a) const {
    if (log_a == kInfinity) return 0;
    const double c = std::exp(-log_a);
    return std::min(1.0, std::exp(log_ratio_below(detected_, alpha_, c)) +
                             std::exp(log_ratio_below(detected_.flipped(), alpha_.flipped(), c)));
}

double ErrorRateLaw::outside_both(double log_a, double log_b) const {
    if (log_a == kInfinity || log_b == -kInfinity) return 0;
    const double c = std::exp(-log_a), b = std::exp(log_b);
    // Below both lower lines, α < min(b x, 1 - (1-x)/c), and, seen from the other corner, above both upper lines.
    const auto corner = [&](const BetaLaw &u, const BetaLaw &v) {
        const double kink = (1 - c) / (1 - b * c);
        const auto steep = [&](double x) {
            double lower, upper;
            u.log_tails(1 - (1 - x) / c, lower, upper);
            return v.log_density(x) + lower;
        };
        const auto flat = [&](double x) {
            double lower, upper;
            u.log_tails(b * x, lower, upper);
            return v.log_density(x) + lower;
        };
        return std::exp(log_integral(steep, 1 - c, kink)) + std::exp(log_integral(flat, kink, 1.0));
    };
    return corner(alpha_, detected_) + corner(alpha_.flipped(), detected_.flipped());
}

double ErrorRateLaw::log_between_lines(double a, double b) const {
    // α between max(b x, 1 - a(1-x)) and min(a x, 1 - b(1-x)); the lines cross at the two inner corners.
    const double upper_kink = a == kInfinity ? 0 : (1 - b) / (a - b);
    const double lower_kink = 1 - upper_kink;
    const auto log_h = [&](double x) {
        const double low = a == kInfinity || x < lower_kink ? b * x : 1 - a * (1 - x);
        const double high = a == kInfinity || x > upper_kink ? 1 - b * (1 - x) : a * x;
        return detected_.log_density(x) + alpha_.log_between(std::max(low, 0.0), std::min(high, 1.0));
    };
    const double first = std::min(upper_kink, lower_kink), second = std::max(upper_kink, lower_kink);
    return log_sum(log_sum(log_integral(log_h, 0.0, first), log_integral(log_h, first, second)),
                   log_integral(log_h, second, 1.0));
}

double ErrorRateLaw::log_inside(double log_a, double log_b) const {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    return log_inside(log_a, log_b, outside_left(log_a), outside_right(log_b));
}

double ErrorRateLaw::log_inside(double log_a, double log_b, double left, double right) const {
    if (log_a == kInfinity && log_b == -kInfinity) return 0;
    double outside = right + left;
    if (std::min(left, right) > 1e-16) outside -= outside_both(log_a, log_b);
    if (outside < 0.9) return std::log1p(-outside);
    return std::min(0.0, log_between_lines(std::exp(log_a), std::exp(log_b)));
}

double ErrorRateLaw::log_inside_ring(double log_a, double log_b, double strength) const {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    const double a = std::exp(log_a), b = std::exp(log_b);
    const double inner_a = std::exp(strength * log_a), inner_b = std::exp(strength * log_b);
    // Below: between the outer and the inner lower line; above: the same from the other corner. The lower line of (a, b)
    // is max(b x, 1 - a(1-x)), with its kink at (a-1)/(a-b).
    const auto kink_of = [](double a_, double b_) { return a_ == kInfinity ? 1.0 : (a_ - 1) / (a_ - b_); };
    const auto line = [](double a_, double b_, double kink, double x) {
        return x < kink || a_ == kInfinity ? b_ * x : 1 - a_ * (1 - x);
    };
    const double outer_kink = kink_of(a, b), inner_kink = kink_of(inner_a, inner_b);
    const auto band = [&](const BetaLaw &u, const BetaLaw &v) {
        const auto log_h = [&](double x) {
            return v.log_density(x) + u.log_between(std::max(0.0, line(a, b, outer_kink, x)),
                                                    std::min(1.0, line(inner_a, inner_b, inner_kink, x)));
        };
        const double first = std::min(outer_kink, inner_kink), second = std::max(outer_kink, inner_kink);
        return log_sum(log_sum(log_integral(log_h, 0.0, first), log_integral(log_h, first, second)),
                       log_integral(log_h, second, 1.0));
    };
    return log_sum(band(alpha_, detected_), band(alpha_.flipped(), detected_.flipped()));
}

double log_region_area(double log_a, double log_b) {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    return log1mexp(-log_a) + log1mexp(log_b) - log1mexp(log_b - log_a);
}

namespace {

// log η ± ε, where an infinite ε wins over an infinite prior.
double shifted(double log_odds, double epsilon) { return std::isinf(epsilon) ? epsilon : log_odds + epsilon; }

// log |R|, or of the ring.
double log_area(double log_a, double log_b, double strength) {
    const double outer = log_region_area(log_a, log_b);
    return strength == 0 ? outer : log_difference(outer, log_region_area(strength * log_a, strength * log_b));
}

double point_log_likelihood(const CountsTable &counts, double left, double right, double cutoff, double strength) {
    // Probabilities are at most 1: without them the sum is an upper bound, which each node's probability brings down.
    double bound = 0;
    for (int64_t k = 0; k < counts.num_nodes; ++k) {
        const double log_a = shifted(counts.log_prior_odds[k], left), log_b = -shifted(-counts.log_prior_odds[k], right);
        if (!(log_a > 0 && log_b < 0)) return -kInfinity;
        bound -= log_area(log_a, log_b, strength);
    }
    for (int64_t k = 0; k < counts.num_nodes && bound >= cutoff; ++k) {
        const double log_a = shifted(counts.log_prior_odds[k], left), log_b = -shifted(-counts.log_prior_odds[k], right);
        const ErrorRateLaw law(counts.nodes[k]);
        bound += strength == 0 ? law.log_inside(log_a, log_b) : law.log_inside_ring(log_a, log_b, strength);
    }
    return bound >= cutoff ? bound : -kInfinity;
}

}  // namespace

void log_likelihood(const CountsTable &counts, const double *epsilon_left, const double *epsilon_right, int64_t num_points,
                    const double *cutoff, double strength, int num_threads, double *result) {
    std::atomic<int64_t> next{0};
    const auto work = [&] {
        for (int64_t point = next++; point < num_points; point = next++)
            result[point] = point_log_likelihood(counts, epsilon_left[point], epsilon_right[point], cutoff[point], strength);
    };
    std::vector<std::thread> threads;
    for (int t = 1; t < num_threads; ++t) threads.emplace_back(work);
    work();
    for (auto &thread : threads) thread.join();
}

void grid_log_likelihood(const CountsTable &counts, const double *epsilon_left, int64_t num_left,
                         const double *epsilon_right, int64_t num_right, int num_threads, double *result) {
    constexpr int64_t block_size = 32;
    const int64_t num_blocks = (counts.num_nodes + block_size - 1) / block_size, size = num_left * num_right;
    std::vector<std::vector<double>> sums(num_blocks);
    std::atomic<int64_t> next{0};
    const auto work = [&] {
        std::vector<double> outside_left(num_left), outside_right(num_right);
        for (int64_t block = next++; block < num_blocks; block = next++) {
            std::vector<double> &sum = sums[block];
            sum.assign(size, 0.0);
            for (int64_t k = block * block_size; k < std::min((block + 1) * block_size, counts.num_nodes); ++k) {
                const ErrorRateLaw law(counts.nodes[k]);
                const double log_odds = counts.log_prior_odds[k];
                for (int64_t i = 0; i < num_left; ++i) {
                    const double log_a = shifted(log_odds, epsilon_left[i]);
                    outside_left[i] = log_a > 0 ? law.outside_left(log_a) : 1.0;
                }
                for (int64_t j = 0; j < num_right; ++j) {
                    const double log_b = -shifted(-log_odds, epsilon_right[j]);
                    outside_right[j] = log_b < 0 ? law.outside_right(log_b) : 1.0;
                }
                for (int64_t i = 0; i < num_left; ++i) {
                    const double log_a = shifted(log_odds, epsilon_left[i]);
                    for (int64_t j = 0; j < num_right; ++j) {
                        const double log_b = -shifted(-log_odds, epsilon_right[j]);
                        sum[i * num_right + j] +=
                            log_a > 0 && log_b < 0 ? law.log_inside(log_a, log_b, outside_left[i], outside_right[j]) -
                                                         log_region_area(log_a, log_b)
                                                   : -kInfinity;
                    }
                }
            }
        }
    };
    std::vector<std::thread> threads;
    for (int t = 1; t < num_threads; ++t) threads.emplace_back(work);
    work();
    for (auto &thread : threads) thread.join();
    std::fill(result, result + size, 0.0);
    for (const auto &sum : sums)
        for (int64_t point = 0; point < size; ++point) result[point] += sum[point];
}

}  // namespace bmpaudit
