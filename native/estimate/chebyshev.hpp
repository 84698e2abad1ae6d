// Chebyshev points and polynomials through them: in e^{-ε}, a node's likelihood is smooth.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/log_space.hpp"

namespace bmpaudit {

// Points between the two ends of an axis, on three levels: 9, 17 or all 33 of them, and the series through values at them.
class ChebyshevAxis {
  public:
    static constexpr int kLevels = 3, kMostNodes = 33;
    using Sums = std::array<std::array<double, kMostNodes>, kLevels>;

    static constexpr int step_of(int level) { return 4 >> level; }
    static constexpr int num_nodes(int level) { return (kMostNodes - 1) / step_of(level) + 1; }

    // Where the k-th of all points is, as a share of the axis.
    static double share(int k) {
        const double sine = std::sin(0.5 * kPi * k / (kMostNodes - 1));
        return sine * sine;
    }
    // How large the last coefficients of the series are whose values at the points of a level are values[k * stride], k
    // the number of a point among all.
    static double tail(const double *values, int stride, int level) {
        const int degree = num_nodes(level) - 1;
        double largest = 0;
        for (int m = degree - kTail + 1; m <= degree; ++m)
            largest = std::max(largest, std::abs(coefficient(values, stride * step_of(level), level, m)));
        return largest;
    }
    // Whether a higher level may do: from one to the next the last coefficients are squared, or there is little hope.
    static bool is_hopeful(double tail, int num_levels_higher, double tolerance) {
        return std::pow(tail, 1 << num_levels_higher) <= kHope * tolerance;
    }
    // One coefficient of the series with these values at the points of a level.
    static double coefficient(const double *values, int stride, int level, int m) {
        static const std::array<double, 2 * (kMostNodes - 1)> cosines = [] {
            std::array<double, 2 * (kMostNodes - 1)> table{};
            for (size_t k = 0; k < table.size(); ++k) table[k] = std::cos(kPi * static_cast<double>(k) / (kMostNodes - 1));
            return table;
        }();
        const int degree = num_nodes(level) - 1, step = step_of(level);
        double sum = 0;
        for (int j = 0; j <= degree; ++j)
            sum += (j == 0 || j == degree ? 0.5 : 1.0) * values[j * stride] * cosines[m * j % (2 * degree) * step];
        return sum * (m == 0 || m == degree ? 1.0 : 2.0) / degree;
    }

    int num_levels() const { return num_levels_; }

    // Adds a node's logarithms of factor(k), which is NaN where it is not sure, at the points of the lowest level that
    // resolves it; false if none does.
    template <typename Factor> bool add(Factor factor, double times, double tolerance, Sums &sums) const {
        std::array<double, kMostNodes> logs;
        for (int level = 0; level < num_levels_; ++level) {
            const int step = step_of(level);
            for (int k = 0; k < kMostNodes; k += step) {
                if (level > 0 && k % (2 * step) == 0) continue;
                logs[k] = std::log(factor(k));
                if (std::isnan(logs[k])) return false;
            }
            const double last = tail(logs.data(), 1, level);
            if (last < tolerance) {
                for (int j = 0; j < num_nodes(level); ++j) sums[level][j] += times * logs[j * step];
                return true;
            }
            if (!is_hopeful(last, num_levels_ - 1 - level, tolerance)) return false;
        }
        return false;
    }

    // Adds what the polynomials through these sums are: basis(i, level, values) gives those of Chebyshev at the i-th of some
    // places, and add(i, value) takes theirs.
    template <typename Basis, typename Add>
    void interpolate(const Sums &sums, int64_t num_places, Basis basis_at, Add add) const {
        std::array<double, kMostNodes> series, basis;
        for (int level = 0; level < num_levels_; ++level) {
            if (std::all_of(sums[level].begin(), sums[level].end(), [](double sum) { return sum == 0; })) continue;
            const int size = num_nodes(level);
            for (int m = 0; m < size; ++m) series[m] = coefficient(sums[level].data(), 1, level, m);
            for (int64_t i = 0; i < num_places; ++i) {
                basis_at(i, level, basis.data());
                double value = 0;
                for (int m = 0; m < size; ++m) value += series[m] * basis[m];
                add(i, value);
            }
        }
    }

  protected:
    // Levels of at most `most_nodes` points.
    void allow(double most_nodes) {
        while (num_levels_ < kLevels && num_nodes(num_levels_) <= most_nodes) ++num_levels_;
    }

  private:
    static constexpr double kPi = 3.141592653589793;
    static constexpr int kTail = 3;
    static constexpr double kHope = 1;

    int num_levels_ = 0;
};

// Between the smallest and the largest of some values of ε, in e^{-ε}.
class EpsilonAxis : public ChebyshevAxis {
  public:
    // Of finite values; without any level unless one has at most `most_nodes` points.
    EpsilonAxis(double low, double high, double most_nodes) : low_(low), length_(-std::expm1(low - high)) {
        if (!std::isfinite(low) || !std::isfinite(high) || !(low < high)) return;
        allow(most_nodes);
        for (int k = 0; k < kMostNodes; ++k) epsilon_[k] = low - std::log1p(-length_ * share(k));
    }

    double epsilon(int k) const { return epsilon_[k]; }
    // The polynomials of Chebyshev, those of a level, at some ε.
    void basis(double epsilon, int level, double *result) const {
        const double share = -std::expm1(low_ - epsilon) / length_, angle = 2 * std::asin(std::sqrt(std::min(1.0, share)));
        for (int m = 0; m < num_nodes(level); ++m) result[m] = std::cos(m * angle);
    }

  private:
    double low_, length_;
    std::array<double, kMostNodes> epsilon_{};
};

// How large the last coefficients of a node's series may be, so that the polynomials of all nodes together are off by no
// more than `in_all`; rounding sets an end to that.
inline double series_tolerance(double in_all, double num_nodes) {
    return std::clamp(in_all / num_nodes, 1e-4 * in_all, 1e-2 * in_all);
}

// Likelihoods of many values of one ε from few: polynomials in e^{-ε} stand for most nodes.

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
