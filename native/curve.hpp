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
    using Sums = EpsilonAxis::Sums;

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

    // As ChebyshevAxis::add.
    template <typename Factor> bool add(Factor factor, double times, Sums &sums) const {
        return axis_.add(factor, times, tolerance_, sums);
    }

    // Adds what the polynomials through these sums are at some values of ε.
    void interpolate(const Sums &sums, const double *left, const double *right, int64_t num_points, double *result) const {
        const auto basis = [&](int64_t i, int level, double *values) {
            axis_.basis(std::min(left[i], right[i]), level, values);
        };
        axis_.interpolate(sums, num_points, basis, [&](int64_t i, double value) { result[i] += value; });
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
