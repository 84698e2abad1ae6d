// Sums over nodes of what each adds to the log-likelihood, on several threads, the same on any number of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "beta_law.hpp"
#include "curve.hpp"
#include "likelihood.hpp"
#include "log_products.hpp"
#include "node_factor.hpp"
#include "rays.hpp"
#include "surface.hpp"
#include "threads.hpp"

namespace bmpaudit {

inline constexpr int64_t kMostParts = 64;
inline constexpr int64_t kPointsAtOnce = 64;  // between two looks at whether to stop

// One of the nodes, with its odds for either side.
struct Node {
    NodeCounts counts;
    double log_odds, odds, times;

    explicit Node(const CountsTable &table, int64_t k, double times = 1)
        : counts(table.nodes[k]), log_odds(table.log_prior_odds[k]), odds(std::exp(log_odds)), times(times) {}

    Sides region(const EpsilonSide &left, int64_t i, const EpsilonSide &right, int64_t j) const {
        return {left.of_node(i, log_odds, 1 / odds), right.of_node(j, -log_odds, odds)};
    }
};

// log Pr(R) - log |R|, or of the ring, slowly and far into the tails.
inline double log_exact_factor(const Node &node, double epsilon_left, double epsilon_right, double strength) {
    const ErrorRateLaw law(node.counts);
    const double log_a = shifted(node.log_odds, epsilon_left), log_b = -shifted(-node.log_odds, epsilon_right);
    if (strength == 0) return law.log_inside(log_a, log_b) - log_region_area(log_a, log_b);
    return law.log_inside_ring(log_a, log_b, strength) - log_ring_area(log_a, log_b, strength);
}

// A node's factor, or NaN if it has none or is not sure.
inline double sure_factor(const NodeRates &rates, const Sides &region) {
    if (!region.has_area()) return std::numeric_limits<double>::quiet_NaN();
    const Factor factor = rates.factor(region, 0);
    return factor.is_sure ? factor.value() : std::numeric_limits<double>::quiet_NaN();
}

// Collects the nodes of one part.
class Collector {
  public:
    explicit Collector(int64_t num_points) : factors_(num_points), doubtful_(num_points) {}

    void add(int32_t node, int64_t point, const Factor &factor, double times) {
        if (factor.is_sure) {
            factors_.multiply(point, factor.value(), times);
        } else {
            const auto log_bound = static_cast<float>(std::log(factor.value()));
            factors_.add(point, times * log_bound);
            doubtful_[point].push_back({node, log_bound});
        }
    }
    void add_impossible(int64_t point) { factors_.add(point, -kInfinity); }
    LogProducts &factors() { return factors_; }
    Curve::Sums &on_curve() { return on_curve_; }
    Surface::Sums &on_surface() { return on_surface_; }
    std::vector<Rays::Sums> &on_rays() { return on_rays_; }
    Rays::Sums &on_ray(int64_t direction, int64_t num_directions) {
        on_rays_.resize(num_directions);
        return on_rays_[direction];
    }
    PartialSums finished() { return {factors_.finished(), std::move(doubtful_)}; }

  private:
    LogProducts factors_;
    Curve::Sums on_curve_{};
    Surface::Sums on_surface_;
    std::vector<Rays::Sums> on_rays_;  // empty, or of each direction
    std::vector<std::vector<Doubtful>> doubtful_;
};

// The sums over nodes at each point, part by part, and the values they come to.
class SumsOfParts {
  public:
    SumsOfParts(const WeightedCounts &counts, double strength)
        : counts_(counts), strength_(strength), parts_(std::min(kMostParts, counts.table.num_nodes)),
          on_curve_(parts_.size()), on_surface_(parts_.size()), on_rays_(parts_.size()) {}

    // Calls add(k, node, rates, collector, worker) for each node k; false if the work was stopped.
    template <typename Add> bool collect(int64_t num_points, int num_threads, const Poll &poll, Add add) {
        const auto num_parts = static_cast<int64_t>(parts_.size()), num_nodes = counts_.table.num_nodes;
        BorrowedLaws laws(num_workers(num_parts, num_threads));
        return run_tasks(num_parts, num_threads, poll, [&](int64_t number, Worker &worker) {
            LawStores &stores = laws.of(worker.number());
            Collector collector(num_points);
            for (int64_t k = num_nodes * number / num_parts; k < num_nodes * (number + 1) / num_parts; ++k) {
                const Node node(counts_.table, k, counts_.times[k]);
                add(static_cast<int32_t>(k), node, NodeRates(node.counts, stores), collector, worker);
                collector.factors().end_node();
                worker.report(1);
            }
            on_curve_[number] = collector.on_curve();
            on_surface_[number] = std::move(collector.on_surface());
            on_rays_[number] = std::move(collector.on_rays());
            parts_[number] = collector.finished();
        });
    }

    // Puts in what polynomials along a curve stand for.
    void add_curve(const Curve &curve, const double *epsilon_left, const double *epsilon_right, int64_t num_points) {
        Curve::Sums sums{};
        for (const Curve::Sums &part : on_curve_) add_to(sums, part);
        resolved_.assign(num_points, 0.0);
        curve.interpolate(sums, epsilon_left, epsilon_right, num_points, resolved_.data());
    }

    // The same for a grid.
    void add_surface(const Surface &surface, const double *epsilon_left, int64_t num_left, const double *epsilon_right,
                     int64_t num_right) {
        Surface::Sums sums;
        for (const Surface::Sums &part : on_surface_) sums.add(part);
        resolved_.assign(num_left * num_right, 0.0);
        surface.interpolate(sums, epsilon_left, num_left, epsilon_right, num_right, resolved_.data());
    }

    // And for rays: point i · num_directions + j is that of distance i and direction j.
    void add_rays(const Rays &rays, const double *distances, int64_t num_distances, int64_t num_directions) {
        resolved_.assign(num_distances * num_directions, 0.0);
        for (int64_t j = 0; j < num_directions; ++j) {
            Rays::Sums sums{};
            for (const std::vector<Rays::Sums> &part : on_rays_)
                if (!part.empty()) add_to(sums, part[j]);
            rays.interpolate(sums, distances, num_distances,
                             [&](int64_t i, double value) { resolved_[i * num_directions + j] += value; });
        }
    }

    double upper_bound(int64_t point) const {
        double bound = resolved_.empty() ? 0 : resolved_[point];
        for (const PartialSums &part : parts_) bound += part.sum[point];
        return bound;
    }

    // Puts exact values in the place of bounds, until it is plain that the sum stays below the cutoff: then -∞.
    double value(int64_t point, double epsilon_left, double epsilon_right, double cutoff, Worker &worker) const {
        double bound = upper_bound(point);
        for (const PartialSums &part : parts_)
            for (const Doubtful &doubtful : part.doubtful[point]) {
                if (!(bound >= cutoff)) return -kInfinity;
                worker.checkpoint();
                const Node node(counts_.table, doubtful.node, counts_.times[doubtful.node]);
                bound += node.times * (log_exact_factor(node, epsilon_left, epsilon_right, strength_) - doubtful.log_bound);
            }
        return bound >= cutoff ? bound : -kInfinity;
    }

  private:
    static void add_to(ChebyshevAxis::Sums &sums, const ChebyshevAxis::Sums &part) {
        for (size_t level = 0; level < sums.size(); ++level)
            for (size_t k = 0; k < sums[level].size(); ++k) sums[level][k] += part[level][k];
    }

    const WeightedCounts counts_;
    const double strength_;
    std::vector<PartialSums> parts_;
    std::vector<Curve::Sums> on_curve_;  // of each part
    std::vector<Surface::Sums> on_surface_;
    std::vector<std::vector<Rays::Sums>> on_rays_;
    std::vector<double> resolved_;
};

// Calls set(point, worker) for each point.
template <typename Set> void for_each_point(int64_t num_points, int num_threads, const Poll &poll, Set set) {
    run_tasks((num_points + kPointsAtOnce - 1) / kPointsAtOnce, num_threads, poll, [&](int64_t block, Worker &worker) {
        const int64_t end = std::min(num_points, (block + 1) * kPointsAtOnce);
        for (int64_t point = block * kPointsAtOnce; point < end; ++point) set(point, worker);
    });
}

}  // namespace bmpaudit
