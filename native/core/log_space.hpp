// Numbers given by their logarithms: sums, differences and integrals.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace bmpaudit {

// Sums and differences of numbers given by their logarithms.

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline double log1mexp(double x) {  // log(1 - e^x) for x < 0
    return x > -0.6931471805599453 ? std::log(-std::expm1(x)) : std::log1p(-std::exp(x));
}

inline double log_difference(double larger, double smaller) {  // log(e^larger - e^smaller)
    if (smaller == -kInfinity) return larger;
    return larger > smaller ? larger + log1mexp(smaller - larger) : -kInfinity;
}

inline double log_sum(double x, double y) {
    if (x < y) std::swap(x, y);
    return y == -kInfinity ? x : x + std::log1p(std::exp(y - x));
}

// Gauss-Legendre quadrature.

// Nodes and weights of Gauss-Legendre quadrature on [-1, 1], by Newton's method on the Legendre polynomial.
template <int n> struct GaussLegendre {
    std::array<double, n> node, weight;
    GaussLegendre() {
        for (int i = 0; i < n; ++i) {
            double x = std::cos(3.141592653589793 * (i + 0.75) / (n + 0.5)), slope = 1;
            for (int round = 0; round < 20; ++round) {
                double previous = 1, value = x;
                for (int k = 2; k <= n; ++k) previous = std::exchange(value, ((2 * k - 1) * x * value - (k - 1) * previous) / k);
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

// Integrals of functions that are given by their logarithm and rise to one peak: bounded work, whatever the function.

// ∫ e^{log_h - peak} over a panel, split until two rules agree.
template <typename LogFunction> class PanelIntegral {
  public:
    PanelIntegral(LogFunction &log_h, double peak) : log_h_(log_h), peak_(peak) {}

    // `whole` is what the panels before this one came to.
    double operator()(double begin, double end, double whole) {
        static const GaussLegendre<kFinePoints> fine;
        static const GaussLegendre<kCoarsePoints> coarse;
        const double fine_sum = sum(fine, begin, end), coarse_sum = sum(coarse, begin, end);
        whole = std::max(whole, fine_sum);
        // So put that what is not a number is not split.
        if (panels_left_ == 0 || !(std::abs(fine_sum - coarse_sum) > kAgreement * whole)) return fine_sum;
        --panels_left_;
        const double middle = 0.5 * (begin + end), first = (*this)(begin, middle, whole);
        return first + (*this)(middle, end, whole);
    }

  private:
    static constexpr int kFinePoints = 24, kCoarsePoints = 12;
    static constexpr double kAgreement = 1e-6;  // of the two rules on a panel; the finer one errs by about its square
    static constexpr int kMostSplits = 100;  // a smooth peak takes a handful; rounding errors could ask for any number

    template <int n> double sum(const GaussLegendre<n> &rule, double begin, double end) {
        const double middle = 0.5 * (begin + end), half = 0.5 * (end - begin);
        double total = 0;
        for (int i = 0; i < n; ++i) total += half * rule.weight[i] * std::exp(log_h_(middle + half * rule.node[i]) - peak_);
        return total;
    }

    LogFunction &log_h_;
    const double peak_;
    int panels_left_ = kMostSplits;
};

// log ∫ e^{log_h} over [low, high] for a function that rises to one peak and falls (log-concave ones do); -∞ if it is
// negligible against e^known.
template <typename LogFunction> double log_integral(LogFunction log_h, double low, double high, double known = -kInfinity) {
    constexpr double negligible = 32.0;  // nats below the peak: about 1e-14 of it
    constexpr int most_rounds = 80;
    if (!(low < high)) return -kInfinity;
    // The peak, by golden section: precise enough once it is small against the width of the peak.
    constexpr double golden = 0.6180339887498949;
    double left = low, right = high;
    double x1 = right - golden * (right - left), x2 = left + golden * (right - left);
    double h1 = log_h(x1), h2 = log_h(x2);
    for (int round = 0; round < most_rounds; ++round) {
        if (h1 < h2 || h2 == -kInfinity) {  // what vanishes does so at the lower end
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
    if (!(peak + std::log(high - low) > known - negligible)) return -kInfinity;
    const auto edge = [&](double inside, double outside) {
        if (log_h(outside) > peak - negligible) return outside;
        for (int round = 0; round < most_rounds; ++round) {
            const double middle = 0.5 * (inside + outside), value = log_h(middle);
            if (value > peak - negligible) inside = middle;
            else outside = middle;
            if (value <= peak - negligible && value > peak - negligible - 6) break;
        }
        return outside;
    };
    const double from = edge(peak_at, low), to = edge(peak_at, high);
    PanelIntegral<LogFunction> integral(log_h, peak);
    // Two panels that meet at the peak, so that a lopsided one is resolved on both sides.
    const double left_part = integral(from, peak_at, 0.0);
    return peak + std::log(left_part + integral(peak_at, to, left_part));
}

}  // namespace bmpaudit
