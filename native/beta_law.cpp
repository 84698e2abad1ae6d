#include "beta_law.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gauss_legendre.hpp"
#include "log_space.hpp"

namespace bmpaudit {

namespace {

constexpr double kNegligible = 32.0;  // nats below the peak: about 1e-14 of it
constexpr int kFinePoints = 24, kCoarsePoints = 12;
constexpr double kAgreement = 1e-6;  // of the two rules on a panel; the finer one errs by about its square
constexpr int kMostSplits = 30;

// What Stirling's formula for log Γ(x) leaves out, for x ≥ 10.
double stirling_rest(double x) {
    const double z = 1 / (x * x);
    return (1 / 12.0 + z * (-1 / 360.0 + z * (1 / 1260.0 + z * (-1 / 1680.0 + z * (1 / 1188.0 - z * (691 / 360360.0)))))) / x;
}

// log B(p, q) without the cancellation of large log Γ.
double log_beta(double p, double q) {
    if (p > q) std::swap(p, q);
    const double sum = p + q;
    if (q < 10) return std::lgamma(p) + std::lgamma(q) - std::lgamma(sum);
    const double of_larger = (q - 0.5) * std::log1p(-p / sum) + stirling_rest(q) - stirling_rest(sum);
    if (p < 10) return std::lgamma(p) + of_larger - p * std::log(sum) + p;
    return 0.9189385332046728 + (p - 0.5) * std::log(p / sum) - 0.5 * std::log(sum) + of_larger + stirling_rest(p);
}

// ∫ e^{log_h - peak} over a panel, split until two rules agree to a share of `whole`.
template <typename LogFunction>
double panel_integral(LogFunction &log_h, double begin, double end, double peak, double whole, int splits_left) {
    static const GaussLegendre<kFinePoints> fine;
    static const GaussLegendre<kCoarsePoints> coarse;
    const double middle = 0.5 * (begin + end), half = 0.5 * (end - begin);
    double fine_sum = 0, coarse_sum = 0;
    for (int i = 0; i < kFinePoints; ++i)
        fine_sum += half * fine.weight[i] * std::exp(log_h(middle + half * fine.node[i]) - peak);
    for (int i = 0; i < kCoarsePoints; ++i)
        coarse_sum += half * coarse.weight[i] * std::exp(log_h(middle + half * coarse.node[i]) - peak);
    // So put that what is not a number is not split.
    if (splits_left == 0 || !(std::abs(fine_sum - coarse_sum) > kAgreement * std::max(whole, fine_sum))) return fine_sum;
    whole = std::max(whole, fine_sum);
    return panel_integral(log_h, begin, middle, peak, whole, splits_left - 1) +
           panel_integral(log_h, middle, end, peak, whole, splits_left - 1);
}

// log ∫ e^{log_h} over [low, high] for a function that rises to one peak and falls (log-concave ones do); -∞ if it is
// negligible against e^known.
template <typename LogFunction> double log_integral(LogFunction log_h, double low, double high, double known = -kInfinity) {
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
    if (!(peak + std::log(high - low) > known - kNegligible)) return -kInfinity;
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
    const double left_part = panel_integral(log_h, from, peak_at, peak, 0.0, kMostSplits);
    return peak + std::log(left_part + panel_integral(log_h, peak_at, to, peak, left_part, kMostSplits));
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

double BetaLaw::log_between(double low, double high, double width) const {
    if (!(width > 0)) return -kInfinity;
    const double middle = 0.5 * (low + high), half = 0.5 * width, rest = 1 - middle;
    const double rise = ((p - 1) / middle - (q - 1) / rest) * half;
    const double bend = ((p - 1) / (middle * middle) + (q - 1) / (rest * rest)) * half * half;
    if (std::abs(rise) < 1 && bend < 0.5) {
        // A strip so thin that the two tails would cancel: the density hardly varies on it.
        static const GaussLegendre<kCoarsePoints> rule;
        const double at_middle = log_density(middle);
        double sum = 0;
        for (int i = 0; i < kCoarsePoints; ++i)
            sum += rule.weight[i] * std::exp(log_density(middle + half * rule.node[i]) - at_middle);
        return at_middle + std::log(half * sum);
    }
    double lower_low, upper_low, lower_high, upper_high;
    log_tails(low, lower_low, upper_low);
    log_tails(high, lower_high, upper_high);
    // From the tail in which both are small, so that nothing cancels.
    return lower_high < upper_low ? log_difference(lower_high, lower_low) : log_difference(upper_low, upper_high);
}

namespace {

// a and b of a region; where α and x = 1 - β change places they become 1/b and 1/a.
struct Slopes {
    double a, b, above_one, below_one;  // a - 1 and 1 - b

    static Slopes of(double log_a, double log_b) {
        return {std::exp(log_a), std::exp(log_b), std::expm1(log_a), -std::expm1(log_b)};
    }
    Slopes transposed() const {
        return {b == 0 ? kInfinity : 1 / b, 1 / a, b == 0 ? kInfinity : below_one / b, a == kInfinity ? 1 : above_one / a};
    }
    // Where the region's lower border, max(b x, 1 - a(1-x)), bends.
    double lower_kink() const { return a == kInfinity ? 1.0 : above_one / (above_one + below_one); }
    // upper(x) - lower(x), in which the two do not cancel.
    double width(double x) const {
        const double kink = lower_kink();
        if (x < kink) return x < 1 - kink ? (above_one + below_one) * x : below_one;
        return x < 1 - kink ? above_one : (above_one + below_one) * (1 - x);
    }
    double lower(double x) const { return std::max({0.0, b * x, a == kInfinity ? 0.0 : 1 - a * (1 - x)}); }
    double upper(double x) const { return std::min({1.0, 1 - b * (1 - x), a == kInfinity ? 1.0 : a * x}); }
};

// log of the integral in pieces between two bends.
template <typename LogFunction> double log_integral_between(LogFunction log_h, double bend, double other_bend) {
    const double first = std::min(bend, other_bend), second = std::max(bend, other_bend);
    double sum = log_integral(log_h, first, second);
    sum = log_sum(sum, log_integral(log_h, 0.0, first, sum));
    return log_sum(sum, log_integral(log_h, second, 1.0, sum));
}

double log_in_region(const BetaLaw &u, const BetaLaw &v, const Slopes &region) {
    const double kink = region.lower_kink();
    return log_integral_between(
        [&](double x) { return v.log_density(x) + u.log_between(region.lower(x), region.upper(x), region.width(x)); }, kink, 1 - kink);
}

// Between the lower borders of two regions.
double log_in_band(const BetaLaw &u, const BetaLaw &v, const Slopes &outer, const Slopes &inner) {
    return log_integral_between(
        [&](double x) {
            const double low = outer.lower(x), high = inner.lower(x);
            return v.log_density(x) + u.log_between(low, high, high - low);
        },
        outer.lower_kink(),
        inner.lower_kink());
}

}  // namespace

ErrorRateLaw::ErrorRateLaw(const NodeCounts &counts)
    : alpha_(counts.false_positives + 1, counts.num_out - counts.false_positives + 1),
      detected_(counts.num_in - counts.false_negatives + 1, counts.false_negatives + 1),
      is_alpha_narrower_(alpha_.standard_deviation() < detected_.standard_deviation()) {}

double ErrorRateLaw::log_inside(double log_a, double log_b) const {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    const Slopes region = Slopes::of(log_a, log_b);
    return std::min(0.0, is_alpha_narrower_ ? log_in_region(detected_, alpha_, region.transposed())
                                            : log_in_region(alpha_, detected_, region));
}

double ErrorRateLaw::log_inside_ring(double log_a, double log_b, double strength) const {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    Slopes outer = Slopes::of(log_a, log_b), inner = Slopes::of(strength * log_a, strength * log_b);
    const BetaLaw *u = &alpha_, *v = &detected_;
    if (is_alpha_narrower_) {
        outer = outer.transposed();
        inner = inner.transposed();
        std::swap(u, v);
    }
    // Below, and, seen from the other corner, above.
    return log_sum(log_in_band(*u, *v, outer, inner), log_in_band(u->flipped(), v->flipped(), outer, inner));
}

double log_region_area(double log_a, double log_b) {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    return log1mexp(-log_a) + log1mexp(log_b) - log1mexp(log_b - log_a);
}

}  // namespace bmpaudit
