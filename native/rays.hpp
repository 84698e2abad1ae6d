// Likelihoods along rays from the floor from few points: polynomials in the distance stand for most nodes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "epsilon_axis.hpp"

namespace bmpaudit {

// Between distances from the floor.
class DistanceAxis : public ChebyshevAxis {
  public:
    // Without any level unless one has at most `most_nodes` points.
    DistanceAxis(const double *distances, int64_t size, double most_nodes) {
        if (size == 0) return;
        high_ = *std::max_element(distances, distances + size);
        low_ = std::max(kNearest * high_, *std::min_element(distances, distances + size));
        if (std::isfinite(high_) && low_ < high_) allow(most_nodes);
    }

    double distance(int k) const { return low_ + (high_ - low_) * share(k); }
    // The polynomials of Chebyshev, those of a level; they go on below the lowest point, where `distance` may be.
    void basis(double distance, int level, double *result) const {
        const double at = 1 - 2 * (distance - low_) / (high_ - low_);
        result[0] = 1;
        result[1] = at;
        for (int m = 2; m < num_nodes(level); ++m) result[m] = 2 * at * result[m - 1] - result[m - 2];
    }

  private:
    // Of the largest distance: nearer to the floor R is so thin that rounding shows, and nothing changes any more.
    static constexpr double kNearest = 1e-4;

    double low_ = 0, high_ = 0;
};

// All pairs of a direction and a distance. At one direction, R keeps its shape and only grows thicker: its likelihood is
// smooth, right from the floor on, where that of ε_L and ε_R is not.
class Rays {
  public:
    static constexpr int kMostNodes = DistanceAxis::kMostNodes;
    using Sums = DistanceAxis::Sums;

    Rays(const double *distances, int64_t num_distances, double num_nodes)
        : tolerance_(series_tolerance(kTolerance, num_nodes)),
          axis_(distances, num_distances, kWorthwhile * static_cast<double>(num_distances)) {}

    bool is_worthwhile() const { return axis_.num_levels() > 0; }
    double distance(int k) const { return axis_.distance(k); }

    // As ChebyshevAxis::add, of one direction.
    template <typename Factor> bool add(Factor factor, double times, Sums &sums) const {
        return axis_.add(factor, times, tolerance_, sums);
    }

    // Adds what the polynomials through the sums of one direction are: add(i, value) for each of the distances.
    template <typename Add>
    void interpolate(const Sums &sums, const double *distances, int64_t num_distances, Add add) const {
        const auto basis = [&](int64_t i, int level, double *values) { axis_.basis(distances[i], level, values); };
        axis_.interpolate(sums, num_distances, basis, add);
    }

  private:
    static constexpr double kTolerance = 1e-7;  // joint posteriors are resolved to 5e-6
    static constexpr double kWorthwhile = 0.7;  // of the distances that are asked for

    const double tolerance_;
    const DistanceAxis axis_;
};

}  // namespace bmpaudit
