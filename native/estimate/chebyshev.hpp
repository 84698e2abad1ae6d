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

// Likelihoods on a whole grid of (ε_L, ε_R) from few pairs: polynomials in e^{-ε_L} and e^{-ε_R} stand for most nodes.

class Surface {
  public:
    static constexpr int kLevels = EpsilonAxis::kLevels, kMostNodes = EpsilonAxis::kMostNodes;

    // Sums at the points of every pair of levels.
    class Sums {
      public:
        std::vector<double> &of(int level_left, int level_right) { return values_[kLevels * level_left + level_right]; }
        void add(const Sums &other) {
            for (size_t pair = 0; pair < values_.size(); ++pair) {
                if (other.values_[pair].empty()) continue;
                values_[pair].resize(kMostNodes * kMostNodes);
                for (size_t i = 0; i < values_[pair].size(); ++i) values_[pair][i] += other.values_[pair][i];
            }
        }

      private:
        std::array<std::vector<double>, kLevels * kLevels> values_;  // empty where no node is resolved
    };

    Surface(const double *left, int64_t num_left, const double *right, int64_t num_right, double num_nodes)
        : tolerance_(series_tolerance(kTolerance, num_nodes)), left_(axis_of(left, num_left)), right_(axis_of(right, num_right)) {}

    bool is_worthwhile() const { return left_.num_levels() > 0 && right_.num_levels() > 0; }
    const EpsilonAxis &left() const { return left_; }
    const EpsilonAxis &right() const { return right_; }
    // Whether so many integrals are more than polynomials take at least.
    static bool is_worth(int64_t num_integrals) { return num_integrals * kWorthwhile >= num_points(0, 0); }

    // As Curve::add, for factor(k, l); `num_integrals` is what it takes without polynomials. The levels are chosen by the
    // two sides of the grid where the region is smallest, and a node least smooth.
    template <typename Factor> bool add(Factor factor, int64_t num_integrals, double times, Sums &sums) const {
        const double most_points = kWorthwhile * static_cast<double>(num_integrals);
        if (!(num_points(0, 0) <= most_points)) return false;
        Logs<Factor> logs(factor);
        if (!logs.fill(kMostNodes, EpsilonAxis::step_of(0)) || !logs.fill(EpsilonAxis::step_of(0), kMostNodes)) return false;
        int left = level_for(EpsilonAxis::tail(logs.along_left(0), kMostNodes, 0));
        int right = level_for(EpsilonAxis::tail(logs.along_right(0), 1, 0));
        while (left < kLevels && right < kLevels && num_points(left, right) <= most_points) {
            const int step_left = EpsilonAxis::step_of(left), step_right = EpsilonAxis::step_of(right);
            if (!logs.fill(step_left, step_right)) return false;
            double tail_left = 0, tail_right = 0;
            for (int l = 0; l < kMostNodes; l += step_right)
                tail_left = std::max(tail_left, EpsilonAxis::tail(logs.along_left(l), kMostNodes, left));
            for (int k = 0; k < kMostNodes; k += step_left)
                tail_right = std::max(tail_right, EpsilonAxis::tail(logs.along_right(k), 1, right));
            if (tail_left < tolerance_ && tail_right < tolerance_) {
                std::vector<double> &sum = sums.of(left, right);
                sum.resize(kMostNodes * kMostNodes);
                for (int k = 0; k < kMostNodes; k += step_left)
                    for (int l = 0; l < kMostNodes; l += step_right) sum[k * kMostNodes + l] += times * logs.along_right(k)[l];
                return true;
            }
            left += !(tail_left < tolerance_);
            right += !(tail_right < tolerance_);
        }
        return false;
    }

    // Adds what the polynomials through these sums are on the grid.
    void interpolate(Sums &sums, const double *left, int64_t num_left, const double *right, int64_t num_right,
                     double *result) const {
        for (int level_left = 0; level_left < left_.num_levels(); ++level_left)
            for (int level_right = 0; level_right < right_.num_levels(); ++level_right) {
                const std::vector<double> &sum = sums.of(level_left, level_right);
                if (sum.empty()) continue;
                const int size_left = EpsilonAxis::num_nodes(level_left), size_right = EpsilonAxis::num_nodes(level_right);
                const int step_left = EpsilonAxis::step_of(level_left), step_right = EpsilonAxis::step_of(level_right);
                // Series in e^{-ε_R} for each point of e^{-ε_L}, then series of their coefficients.
                std::vector<double> by_right(size_left * size_right), series(size_left * size_right);
                for (int k = 0; k < size_left; ++k)
                    for (int n = 0; n < size_right; ++n)
                        by_right[k * size_right + n] =
                            EpsilonAxis::coefficient(&sum[k * step_left * kMostNodes], step_right, level_right, n);
                for (int m = 0; m < size_left; ++m)
                    for (int n = 0; n < size_right; ++n)
                        series[m * size_right + n] = EpsilonAxis::coefficient(&by_right[n], size_right, level_left, m);
                std::vector<double> basis_right(num_right * size_right);
                for (int64_t j = 0; j < num_right; ++j) right_.basis(right[j], level_right, &basis_right[j * size_right]);
                std::vector<double> basis_left(size_left), across(size_right);
                for (int64_t i = 0; i < num_left; ++i) {
                    left_.basis(left[i], level_left, basis_left.data());
                    std::fill(across.begin(), across.end(), 0.0);
                    for (int m = 0; m < size_left; ++m)
                        for (int n = 0; n < size_right; ++n) across[n] += basis_left[m] * series[m * size_right + n];
                    for (int64_t j = 0; j < num_right; ++j)
                        for (int n = 0; n < size_right; ++n)
                            result[i * num_right + j] += across[n] * basis_right[j * size_right + n];
                }
            }
    }

  private:
    // A node's logarithms at the points that were asked for.
    template <typename Factor> class Logs {
      public:
        explicit Logs(Factor &factor) : factor_(factor) {}

        // False if one is not sure.
        bool fill(int step_left, int step_right) {
            for (int k = 0; k < kMostNodes; k += step_left)
                for (int l = 0; l < kMostNodes; l += step_right) {
                    const int at = k * kMostNodes + l;
                    if (is_known_[at]) continue;
                    logs_[at] = std::log(factor_(k, l));
                    if (std::isnan(logs_[at])) return false;
                    is_known_[at] = true;
                }
            return true;
        }
        // At every point of one axis, where the other one's point has this number.
        const double *along_left(int l) const { return &logs_[l]; }
        const double *along_right(int k) const { return &logs_[k * kMostNodes]; }

      private:
        Factor &factor_;
        std::array<double, kMostNodes * kMostNodes> logs_;
        std::array<bool, kMostNodes * kMostNodes> is_known_{};
    };

    // The level at which the last coefficients should be small enough: kLevels if none.
    int level_for(double tail_of_lowest) const {
        int level = 0;
        while (level < kLevels && !EpsilonAxis::is_hopeful(tail_of_lowest, level, tolerance_)) ++level;
        return level;
    }

    static constexpr double kTolerance = 1e-7;  // joint posteriors are resolved to 5e-6
    static constexpr double kWorthwhile = 0.55;  // of the integrals that it takes otherwise

    static constexpr int64_t num_points(int level_left, int level_right) {
        return static_cast<int64_t>(EpsilonAxis::num_nodes(level_left)) * EpsilonAxis::num_nodes(level_right);
    }
    static EpsilonAxis axis_of(const double *values, int64_t size) {
        if (size == 0) return {0, 0, 0};
        return {*std::min_element(values, values + size), *std::max_element(values, values + size),
                static_cast<double>(EpsilonAxis::kMostNodes)};
    }

    const double tolerance_;
    const EpsilonAxis left_, right_;
};

}  // namespace bmpaudit
