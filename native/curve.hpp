// Likelihoods of many values of one ε from few: polynomials in e^{-ε} stand for most nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "epsilon_axis.hpp"

namespace bmpaudit {

// Pairs (ε_L, ε_R) that one ε stands for, either of them or both. The probability of R is a polynomial in e^{-ε}, of high
// degree but for a node with few trials: most nodes are resolved by a low one. It only falls from ε = ∞ on, so that
// nothing can hide between the points.
class Curve {
  public:
    static constexpr int kMostNodes = EpsilonAxis::kMostNodes;
    using Sums = std::array<std::array<double, kMostNodes>, EpsilonAxis::kLevels>;

    Curve(const double *left, const double *right, int64_t num_points, double num_nodes)
        : tolerance_(series_tolerance(kTolerance, num_nodes)), axis_(axis_of(left, right, num_points)) {
        for (int k = 0; k < kMostNodes; ++k) {
            left_[k] = num_points > 0 && left[0] == kInfinity ? kInfinity : axis_.epsilon(k);
            right_[k] = num_points > 0 && right[0] == kInfinity ? kInfinity : axis_.epsilon(k);
        }
    }

    // Whether there are enough points, all on one curve.
    bool is_worthwhile() const { return axis_.num_levels() > 0; }
    const double *left() const { return left_.data(); }
    const double *right() const { return right_.data(); }

    // Adds a node's logarithms of factor(k), which is NaN where it is not sure, at the points of the lowest level that
    // resolves it; false if none does.
    template <typename Factor> bool add(Factor factor, double times, Sums &sums) const {
        std::array<double, kMostNodes> logs;
        for (int level = 0; level < axis_.num_levels(); ++level) {
            const int step = EpsilonAxis::step_of(level);
            for (int k = 0; k < kMostNodes; k += step) {
                if (level > 0 && k % (2 * step) == 0) continue;
                logs[k] = std::log(factor(k));
                if (std::isnan(logs[k])) return false;
            }
            const double tail = EpsilonAxis::tail(logs.data(), 1, level);
            if (tail < tolerance_) {
                for (int j = 0; j < EpsilonAxis::num_nodes(level); ++j) sums[level][j] += times * logs[j * step];
                return true;
            }
            if (!EpsilonAxis::is_hopeful(tail, axis_.num_levels() - 1 - level, tolerance_)) return false;
        }
        return false;
    }

    // Adds what the polynomials through these sums are at some values of ε.
    void interpolate(const Sums &sums, const double *left, const double *right, int64_t num_points, double *result) const {
        std::array<double, kMostNodes> series, basis;
        for (int level = 0; level < axis_.num_levels(); ++level) {
            if (std::all_of(sums[level].begin(), sums[level].end(), [](double sum) { return sum == 0; })) continue;
            const int size = EpsilonAxis::num_nodes(level);
            for (int m = 0; m < size; ++m) series[m] = EpsilonAxis::coefficient(sums[level].data(), 1, level, m);
            for (int64_t i = 0; i < num_points; ++i) {
                axis_.basis(std::min(left[i], right[i]), level, basis.data());
                for (int m = 0; m < size; ++m) result[i] += series[m] * basis[m];
            }
        }
    }

  private:
    static constexpr double kTolerance = 1e-8;
    static constexpr double kWorthwhile = 0.7;  // of the points that are asked for

    static EpsilonAxis axis_of(const double *left, const double *right, int64_t num_points) {
        bool has_left = false, has_right = false, is_same = true;
        double low = kInfinity, high = -kInfinity;
        for (int64_t i = 0; i < num_points; ++i) {
            has_left |= left[i] != kInfinity;
            has_right |= right[i] != kInfinity;
            is_same &= left[i] == right[i];
            low = std::min({low, left[i], right[i]});
            high = std::max(high, left[i] == kInfinity ? right[i] : left[i]);
        }
        return {low, high, is_same || has_left != has_right ? kWorthwhile * static_cast<double>(num_points) : 0.0};
    }

    const double tolerance_;
    const EpsilonAxis axis_;
    std::array<double, kMostNodes> left_, right_;
};

}  // namespace bmpaudit
