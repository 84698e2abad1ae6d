// Likelihoods on a whole grid of (ε_L, ε_R) from few pairs: polynomials in e^{-ε_L} and e^{-ε_R} stand for most nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "epsilon_axis.hpp"

namespace bmpaudit {

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
