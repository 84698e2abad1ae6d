// Likelihoods of many values of one ε from few: a node's is so smooth in e^{-ε} that a polynomial stands for it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "log_space.hpp"

namespace bmpaudit {

// Pairs (ε_L, ε_R) that one ε stands for, either of them or both, and Chebyshev points of e^{-ε} between the smallest and
// the largest ε. The probability of R is a polynomial in e^{-ε}, of high degree but for a node with few trials: most nodes
// are resolved by a low one. It only falls from ε = ∞ on, so that nothing can hide between the points.
class Curve {
  public:
    static constexpr int kLevels = 3, kMostNodes = 33;  // 9, 17 or all of the points
    using Sums = std::array<std::array<double, kMostNodes>, kLevels>;

    // The polynomials of all nodes together, whose number is given, are to be off by no more than kTolerance.
    Curve(const double *left, const double *right, int64_t num_points, double num_nodes_in_all)
        : tolerance_(std::clamp(kTolerance / num_nodes_in_all, kLeastTolerance, kMostTolerance)) {
        bool has_left = false, has_right = false, is_one = true;
        low_ = kInfinity;
        double high = -kInfinity;
        for (int64_t i = 0; i < num_points; ++i) {
            has_left |= left[i] != kInfinity;
            has_right |= right[i] != kInfinity;
            is_one &= left[i] == right[i];
            low_ = std::min(low_, std::min(left[i], right[i]));
            high = std::max(high, left[i] == kInfinity ? right[i] : left[i]);
        }
        is_one |= has_left != has_right;
        if (!is_one || !(low_ < high) || !std::isfinite(low_) || !std::isfinite(high)) return;
        while (num_levels_ < kLevels && num_nodes(num_levels_) <= kWorthwhile * num_points) ++num_levels_;
        length_ = -std::expm1(low_ - high);
        for (int k = 0; k < kMostNodes; ++k) {
            const double sine = std::sin(0.5 * kPi * k / (kMostNodes - 1)), epsilon = low_ - std::log1p(-length_ * sine * sine);
            left_[k] = has_left ? epsilon : kInfinity;
            right_[k] = has_right ? epsilon : kInfinity;
        }
    }

    // Whether there are enough points, all on one curve.
    bool is_worthwhile() const { return num_levels_ > 0; }
    const double *left() const { return left_.data(); }
    const double *right() const { return right_.data(); }

    // Adds a node's logarithms of factor(k), which is NaN where it is not sure, at the points of the lowest level that
    // resolves it; false if none does.
    template <typename Factor> bool add(Factor factor, double times, Sums &sums) const {
        std::array<double, kMostNodes> logs;
        for (int level = 0; level < num_levels_; ++level) {
            const int step = step_of(level);
            for (int k = 0; k < kMostNodes; k += step) {
                if (level > 0 && k % (2 * step) == 0) continue;
                logs[k] = std::log(factor(k));
                if (std::isnan(logs[k])) return false;
            }
            const double tail = largest_of_tail(logs, level);
            if (tail < tolerance_) {
                for (int j = 0; j < num_nodes(level); ++j) sums[level][j] += times * logs[j * step];
                return true;
            }
            // From one level to the next the last coefficients are squared, or there is little hope.
            if (std::pow(tail, 1 << (num_levels_ - 1 - level)) > kHope * tolerance_) return false;
        }
        return false;
    }

    // Adds what the polynomials through these sums are at some values of ε.
    void interpolate(const Sums &sums, const double *left, const double *right, int64_t num_points, double *result) const {
        for (int level = 0; level < num_levels_; ++level) {
            const int degree = num_nodes(level) - 1;
            if (std::all_of(sums[level].begin(), sums[level].end(), [](double sum) { return sum == 0; })) continue;
            std::array<double, kMostNodes> series;
            for (int m = 0; m <= degree; ++m) series[m] = coefficient(sums[level].data(), 1, degree, m);
            for (int64_t i = 0; i < num_points; ++i) {
                const double share = -std::expm1(low_ - std::min(left[i], right[i])) / length_;
                const double angle = 2 * std::asin(std::sqrt(std::min(1.0, share)));
                for (int m = 0; m <= degree; ++m) result[i] += series[m] * std::cos(m * angle);
            }
        }
    }

  private:
    static constexpr double kPi = 3.141592653589793;
    static constexpr double kWorthwhile = 0.7;  // of the points that are asked for
    static constexpr double kTolerance = 1e-8, kHope = 10;
    static constexpr double kLeastTolerance = 1e-12, kMostTolerance = 1e-10;  // of the last coefficients of a series
    static constexpr int kTail = 3;

    static constexpr int step_of(int level) { return 4 >> level; }
    static constexpr int num_nodes(int level) { return (kMostNodes - 1) / step_of(level) + 1; }

    // One coefficient of the Chebyshev series through values at cos(π j/degree).
    static double coefficient(const double *values, int step, int degree, int m) {
        static const std::array<double, 4 * (kMostNodes - 1)> cosines = [] {
            std::array<double, 4 * (kMostNodes - 1)> table{};
            for (size_t k = 0; k < table.size(); ++k) table[k] = std::cos(kPi * static_cast<double>(k) / (kMostNodes - 1));
            return table;
        }();
        const int each = (kMostNodes - 1) / degree;
        double sum = 0;
        for (int j = 0; j <= degree; ++j) {
            const double half = j == 0 || j == degree ? 0.5 : 1;
            sum += half * values[j * step] * cosines[(m * j % (2 * degree)) * each];
        }
        return sum * (m == 0 || m == degree ? 1.0 : 2.0) / degree;
    }
    static double largest_of_tail(const std::array<double, kMostNodes> &logs, int level) {
        const int degree = num_nodes(level) - 1;
        double largest = 0;
        for (int m = degree - kTail + 1; m <= degree; ++m)
            largest = std::max(largest, std::abs(coefficient(logs.data(), step_of(level), degree, m)));
        return largest;
    }

    const double tolerance_;
    double low_ = 0, length_ = 0;
    int num_levels_ = 0;
    std::array<double, kMostNodes> left_{}, right_{};
};

}  // namespace bmpaudit
