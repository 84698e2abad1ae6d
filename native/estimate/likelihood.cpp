#include "estimate/likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "core/threads.hpp"
#include "estimate/beta_law.hpp"
#include "estimate/node_rates.hpp"

namespace bmpaudit {

namespace {

// Sums of logarithms over nodes, with bounds in the place of what is not known exactly.

// A node whose probability is too small to be known by tables at some point, and the bound that stands for it there.
struct Doubtful {
    int32_t node;
    float log_bound;
};

// Sums over nodes of what each adds to the log-likelihood, on several threads, the same on any number of them.

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
    const double log_a = shifted(node.log_odds, epsilon_left), log_b = -shifted(-node.log_odds, epsilon_right);
    if (strength == 0) return log_inside(node.counts, log_a, log_b) - log_region_area(log_a, log_b);
    return log_inside_ring(node.counts, log_a, log_b, strength) - log_ring_area(log_a, log_b, strength);
}

// What some of the nodes add to the log-likelihood at each point.
struct PartialSums {
    std::vector<double> sum;
    std::vector<std::vector<Doubtful>> doubtful;

    explicit PartialSums(int64_t num_points = 0) : sum(num_points, 0.0), doubtful(num_points) {}

    void add(int32_t node, int64_t point, const Factor &factor, double times) {
        const double logarithm = std::log(factor.value());
        if (factor.is_sure) {
            sum[point] += times * logarithm;
        } else {
            const auto log_bound = static_cast<float>(logarithm);
            sum[point] += times * log_bound;
            doubtful[point].push_back({node, log_bound});
        }
    }
    void add_impossible(int64_t point) { sum[point] = -kInfinity; }
};

// The sums over nodes at each point, part by part, and the values they come to.
class SumsOfParts {
  public:
    SumsOfParts(const WeightedCounts &counts, double strength)
        : counts_(counts), strength_(strength), parts_(std::min(kMostParts, counts.table.num_nodes)) {}

    // Calls add(k, node, rates, part, worker) for each node k; false if the work was stopped.
    template <typename Add> bool collect(int64_t num_points, int num_threads, const Poll &poll, Add add) {
        const auto num_parts = static_cast<int64_t>(parts_.size()), num_nodes = counts_.table.num_nodes;
        return run_tasks(num_parts, num_threads, poll, [&](int64_t number, Worker &worker) {
            PartialSums part(num_points);
            for (int64_t k = num_nodes * number / num_parts; k < num_nodes * (number + 1) / num_parts; ++k) {
                const Node node(counts_.table, k, counts_.times[k]);
                NodeRates rates(node.counts);
                add(static_cast<int32_t>(k), node, rates, part, worker);
                worker.report(1);
            }
            parts_[number] = std::move(part);
        });
    }

    double upper_bound(int64_t point) const {
        double bound = 0;
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
    const WeightedCounts counts_;
    const double strength_;
    std::vector<PartialSums> parts_;
};

// Calls set(point, worker) for each point.
template <typename Set> void for_each_point(int64_t num_points, int num_threads, const Poll &poll, Set set) {
    run_tasks((num_points + kPointsAtOnce - 1) / kPointsAtOnce, num_threads, poll, [&](int64_t block, Worker &worker) {
        const int64_t end = std::min(num_points, (block + 1) * kPointsAtOnce);
        for (int64_t point = block * kPointsAtOnce; point < end; ++point) set(point, worker);
    });
}

}  // namespace

int64_t likelihood_bytes_each_point(int64_t num_nodes) {
    return std::min(kMostParts, num_nodes) * static_cast<int64_t>(sizeof(double) + sizeof(std::vector<Doubtful>));
}

void log_likelihood(const WeightedCounts &counts, const double *epsilon_left, const double *epsilon_right,
                    int64_t num_points, const double *cutoff, double strength, int num_threads, const Poll &poll,
                    double *result) {
    const EpsilonSide left(epsilon_left, num_points), right(epsilon_right, num_points);
    SumsOfParts sums(counts, strength);
    const auto add = [&](int32_t k, const Node &node, NodeRates &rates, PartialSums &part, Worker &worker) {
        for (int64_t point = 0; point < num_points; ++point) {
            if (point % kPointsAtOnce == 0) worker.checkpoint();
            const Sides region = node.region(left, point, right, point);
            if (region.has_area()) part.add(k, point, rates.factor(region, strength), node.times);
            else part.add_impossible(point);
        }
    };
    if (!sums.collect(num_points, num_threads, poll, add)) return;
    const Poll done = [&](int64_t) { return poll(counts.table.num_nodes); };
    for_each_point(num_points, num_threads, done, [&](int64_t point, Worker &worker) {
        result[point] = sums.value(point, epsilon_left[point], epsilon_right[point], cutoff[point], worker);
    });
}

void node_log_likelihood(const CountsTable &counts, const double *epsilon_left, const double *epsilon_right,
                         int64_t num_points, double strength, int num_threads, const Poll &poll, double *result) {
    const EpsilonSide left(epsilon_left, num_points), right(epsilon_right, num_points);
    const int64_t num_nodes = counts.num_nodes, num_parts = std::min(kMostParts, num_nodes);
    run_tasks(num_parts, num_threads, poll, [&](int64_t number, Worker &worker) {
        for (int64_t k = num_nodes * number / num_parts; k < num_nodes * (number + 1) / num_parts; ++k) {
            const Node node(counts, k);
            NodeRates rates(node.counts);
            for (int64_t point = 0; point < num_points; ++point) {
                worker.checkpoint();
                const Sides region = node.region(left, point, right, point);
                double &value = result[k * num_points + point] = -kInfinity;
                if (!region.has_area()) continue;
                const Factor factor = rates.factor(region, strength);
                value = factor.is_sure ? std::log(factor.value())
                                       : log_exact_factor(node, epsilon_left[point], epsilon_right[point], strength);
            }
            worker.report(1);
        }
    });
}

namespace {

constexpr double kNothing = 1e-15;  // of a probability next to 1
constexpr double kNotSmall = 0.05;  // a probability that is a sum of others and above this has lost no digits

// One node on the values of one axis: what that side alone leaves inside, and how much its two corners hold.
struct AxisOfNode {
    std::vector<RatePair> side;
    std::vector<bool> is_all_inside;
    std::vector<double> inside, lower_corner, upper_corner;

    explicit AxisOfNode(int64_t size) : side(size), is_all_inside(size), inside(size), lower_corner(size), upper_corner(size) {}

    template <typename Side, typename IsAll, typename Inside, typename Corner>
    void fill(Side side_of, IsAll is_all, Inside inside_of, Corner corner_of) {
        for (size_t i = 0; i < side.size(); ++i) {
            side[i] = side_of(i);
            is_all_inside[i] = is_all(side[i]);
            if (is_all_inside[i]) continue;
            if (!(side[i].rest > 0)) continue;
            inside[i] = inside_of(side[i]);
            std::tie(lower_corner[i], upper_corner[i]) = corner_of(side[i]);
        }
    }
};

// One node on a whole grid: the two sides are integrated once for each of their values, and together only where both leave
// something outside that is not simply the sum of the two.
class NodeGrid {
  public:
    NodeGrid(int64_t num_left, int64_t num_right) : left_(num_left), right_(num_right) {}

    void fill(const Node &node, NodeRates &rates, const EpsilonSide &left, const EpsilonSide &right) {
        left_.fill([&](int64_t i) { return left.of_node(i, node.log_odds, 1 / node.odds); },
                   [&](const RatePair &a_inverse) { return rates.is_all_inside_left(a_inverse); },
                   [&](const RatePair &a_inverse) { return rates.inside({a_inverse, kZero}); },
                   [&](const RatePair &a_inverse) { return rates.corner_left(a_inverse); });
        right_.fill([&](int64_t j) { return right.of_node(j, -node.log_odds, node.odds); },
                    [&](const RatePair &b) { return rates.is_all_inside_right(b); },
                    [&](const RatePair &b) { return rates.inside({kZero, b}); },
                    [&](const RatePair &b) { return rates.corner_right(b); });
    }
    Sides region(int64_t i, int64_t j) const { return {left_.side[i], right_.side[j]}; }
    double inside(int64_t i, int64_t j, NodeRates &rates) const {
        if (left_.is_all_inside[i]) return right_.is_all_inside[j] ? 1 : right_.inside[j];
        if (right_.is_all_inside[j]) return left_.inside[i];
        return is_apart(i, j) ? apart(i, j) : rates.inside(region(i, j));
    }

  private:
    double apart(int64_t i, int64_t j) const { return left_.inside[i] + right_.inside[j] - 1; }
    bool is_apart(int64_t i, int64_t j) const {
        const double most_in_both = left_.lower_corner[i] * right_.lower_corner[j] + left_.upper_corner[i] * right_.upper_corner[j];
        return apart(i, j) > kNotSmall && most_in_both < kNothing;
    }

    AxisOfNode left_, right_;
};

}  // namespace

void grid_log_likelihood(const WeightedCounts &counts, const double *epsilon_left, int64_t num_left,
                         const double *epsilon_right, int64_t num_right, double depth, double strength, int num_threads,
                         const Poll &poll, double *result) {
    const EpsilonSide left(epsilon_left, num_left), right(epsilon_right, num_right);
    const int64_t size = num_left * num_right;
    SumsOfParts sums(counts, strength);
    const auto add = [&](int32_t k, const Node &node, NodeRates &rates, PartialSums &part, Worker &worker) {
        NodeGrid grid(num_left, num_right);
        if (strength == 0) grid.fill(node, rates, left, right);
        for (int64_t i = 0; i < num_left; ++i) {
            worker.checkpoint();
            for (int64_t j = 0; j < num_right; ++j) {
                const int64_t point = i * num_right + j;
                const Sides region = strength > 0 ? node.region(left, i, right, j) : grid.region(i, j);
                if (!region.has_area()) part.add_impossible(point);
                else if (strength > 0) part.add(k, point, rates.factor(region, strength), node.times);
                else part.add(k, point, rates.checked(grid.inside(i, j, rates), region), node.times);
            }
        }
    };
    if (!sums.collect(size, num_threads, poll, add)) return;
    const Poll done = [&](int64_t) { return poll(counts.table.num_nodes); };
    const auto value = [&](int64_t point, double cutoff, Worker &worker) {
        return sums.value(point, epsilon_left[point / num_right], epsilon_right[point % num_right], cutoff, worker);
    };
    // One high value that is known tells what is too low to matter.
    double cutoff = -kInfinity;
    if (depth < kInfinity && size > 0) {
        int64_t highest = 0;
        for (int64_t point = 1; point < size; ++point)
            if (sums.upper_bound(point) > sums.upper_bound(highest)) highest = point;
        const auto find_cutoff = [&](int64_t, Worker &worker) { cutoff = value(highest, -kInfinity, worker) - depth; };
        if (!run_tasks(1, 1, done, find_cutoff)) return;
    }
    for_each_point(size, num_threads, done,
                   [&](int64_t point, Worker &worker) { result[point] = value(point, cutoff, worker); });
}

}  // namespace bmpaudit
