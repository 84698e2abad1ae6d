#include "likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "beta_law.hpp"
#include "error_rate_bulk.hpp"
#include "log_space.hpp"

namespace bmpaudit {

namespace {

constexpr double kSure = 1e-4;  // a probability above it has ten digits when it is 1 minus sums that are right to 1e-14
constexpr double kDoubt = 1e-10;  // far more than such a sum is off
constexpr double kNothing = 1e-15;  // of a probability next to 1
constexpr int64_t kBlock = 8;  // factors multiplied before a logarithm is taken: none is beyond e^{±80}
constexpr int64_t kMostParts = 64;
constexpr int64_t kPointsAtOnce = 64;  // between two looks at whether to stop

// log η ± ε, where an infinite ε wins over an infinite prior.
double shifted(double log_odds, double epsilon) { return std::isinf(epsilon) ? epsilon : log_odds + epsilon; }

// Nodes with the same counts and prior are one node that counts several times.
struct DistinctNode {
    NodeCounts counts;
    double log_odds, times;

    double log_a(double epsilon_left) const { return shifted(log_odds, epsilon_left); }
    double minus_log_b(double epsilon_right) const { return shifted(-log_odds, epsilon_right); }
};

std::vector<DistinctNode> distinct_nodes(const CountsTable &table) {
    struct Key {
        NodeCounts counts;
        double log_odds;
    };
    std::vector<Key> keys(table.num_nodes);
    std::vector<DistinctNode> nodes;
    std::unordered_map<std::string_view, size_t> known;
    known.reserve(table.num_nodes);
    for (int64_t k = 0; k < table.num_nodes; ++k) {
        keys[k] = {table.nodes[k], table.log_prior_odds[k]};
        const auto [at, is_new] = known.try_emplace({reinterpret_cast<const char *>(&keys[k]), sizeof(Key)}, nodes.size());
        if (is_new) nodes.push_back({keys[k].counts, keys[k].log_odds, 1});
        else ++nodes[at->second].times;
    }
    return nodes;
}

// Sums over nodes of logarithms of factors, one for each of many points.
class LogProducts {
  public:
    void reset(int64_t num_points) {
        sum_.assign(num_points, 0.0);
        product_.assign(num_points, 1.0);
        pending_ = 0;
    }
    void multiply(int64_t point, double factor, double times) {
        if (times == 1) product_[point] *= factor;
        else sum_[point] += times * std::log(factor);
    }
    double *products() { return product_.data(); }
    void add(int64_t point, double logarithm) { sum_[point] += logarithm; }
    void end_node() {
        if (++pending_ == kBlock) settle();
    }
    const std::vector<double> &settled() {
        settle();
        return sum_;
    }

  private:
    void settle() {
        if (pending_ == 0) return;
        for (size_t point = 0; point < sum_.size(); ++point) {
            if (product_[point] == 1) continue;
            sum_[point] += std::log(product_[point]);
            product_[point] = 1;
        }
        pending_ = 0;
    }

    std::vector<double> sum_, product_;
    int64_t pending_ = 0;
};

// A node whose probability is too small to be known by tables at some point, and the bound that stands for it there.
struct Doubtful {
    int32_t node;
    float log_bound;
};

// What some of the nodes add to the log-likelihood at each point.
struct PartialSums {
    std::vector<double> sum;
    std::vector<std::vector<Doubtful>> doubtful;
};

// Collects the nodes of one part.
class Collector {
  public:
    Collector(const std::vector<DistinctNode> &nodes, int64_t num_points) : nodes_(nodes), doubtful_(num_points) {
        factors_.reset(num_points);
    }
    void add(int32_t node, int64_t point, double inside, double area) {
        const double times = nodes_[node].times;
        if (inside > kSure) {
            factors_.multiply(point, inside / area, times);
        } else {
            const auto log_bound = static_cast<float>(std::log((std::max(0.0, inside) + kDoubt) / area));
            factors_.add(point, times * log_bound);
            doubtful_[point].push_back({node, log_bound});
        }
    }
    void add_impossible(int64_t point) { factors_.add(point, -kInfinity); }
    LogProducts &factors() { return factors_; }
    PartialSums finished() { return {factors_.settled(), std::move(doubtful_)}; }

  private:
    const std::vector<DistinctNode> &nodes_;
    LogProducts factors_;
    std::vector<std::vector<Doubtful>> doubtful_;
};

// log Pr(R) - log |R|, or of the ring, slowly and far into the tails.
double log_exact_factor(const DistinctNode &node, double epsilon_left, double epsilon_right, double strength) {
    const ErrorRateLaw law(node.counts);
    const double log_a = node.log_a(epsilon_left), log_b = -node.minus_log_b(epsilon_right);
    const double outer = log_region_area(log_a, log_b);
    if (strength == 0) return law.log_inside(log_a, log_b) - outer;
    return law.log_inside_ring(log_a, log_b, strength) -
           log_difference(outer, log_region_area(strength * log_a, strength * log_b));
}

double upper_bound(const std::vector<PartialSums> &parts, int64_t point) {
    double bound = 0;
    for (const PartialSums &part : parts) bound += part.sum[point];
    return bound;
}

// Puts exact values in the place of bounds, until it is plain that the sum stays below the cutoff: then -∞.
double settled_value(const std::vector<DistinctNode> &nodes, const std::vector<PartialSums> &parts, int64_t point,
                     double epsilon_left, double epsilon_right, double strength, double cutoff, Worker &worker) {
    double bound = upper_bound(parts, point);
    for (const PartialSums &part : parts)
        for (const Doubtful &doubtful : part.doubtful[point]) {
            if (!(bound >= cutoff)) return -kInfinity;
            worker.checkpoint();
            const DistinctNode &node = nodes[doubtful.node];
            bound += node.times * (log_exact_factor(node, epsilon_left, epsilon_right, strength) - doubtful.log_bound);
        }
    return bound >= cutoff ? bound : -kInfinity;
}

// Calls set(point, worker) for each point.
template <typename Set> void for_each_point(int64_t num_points, int num_threads, const Poll &poll, Set set) {
    run_tasks((num_points + kPointsAtOnce - 1) / kPointsAtOnce, num_threads, poll, [&](int64_t block, Worker &worker) {
        const int64_t end = std::min(num_points, (block + 1) * kPointsAtOnce);
        for (int64_t point = block * kPointsAtOnce; point < end; ++point) set(point, worker);
    });
}

}  // namespace

int64_t likelihood_bytes_each_point(int64_t num_nodes) {
    return std::min(kMostParts, num_nodes) * static_cast<int64_t>(3 * sizeof(double) + sizeof(std::vector<Doubtful>));
}

void log_likelihood(const CountsTable &counts, const double *epsilon_left, const double *epsilon_right, int64_t num_points,
                    const double *cutoff, double strength, int num_threads, const Poll &poll, double *result) {
    const std::vector<DistinctNode> nodes = distinct_nodes(counts);
    const int64_t num_nodes = static_cast<int64_t>(nodes.size()), num_parts = std::min(kMostParts, num_nodes);
    std::vector<PartialSums> parts(num_parts);
    const auto collect = [&](int64_t number, Worker &worker) {
        Collector collector(nodes, num_points);
        for (int64_t k = num_nodes * number / num_parts; k < num_nodes * (number + 1) / num_parts; ++k) {
            const ErrorRateBulk bulk(nodes[k].counts);
            for (int64_t point = 0; point < num_points; ++point) {
                if (point % kPointsAtOnce == 0) worker.checkpoint();
                const double log_a = nodes[k].log_a(epsilon_left[point]);
                const double minus_log_b = nodes[k].minus_log_b(epsilon_right[point]);
                if (!(log_a > 0 && minus_log_b > 0)) {
                    collector.add_impossible(point);
                    continue;
                }
                const RatePair a_inverse = side(log_a), b = side(minus_log_b);
                double inside = 1 - bulk.outside(a_inverse, b), area = area_of(a_inverse, b).u;
                if (strength > 0) {
                    const RatePair inner_a = side(strength * log_a), inner_b = side(strength * minus_log_b);
                    inside -= 1 - bulk.outside(inner_a, inner_b);
                    area = ring_area(area_of(a_inverse, b), area_of(inner_a, inner_b));
                }
                collector.add(static_cast<int32_t>(k), point, inside, area);
            }
            collector.factors().end_node();
        }
        parts[number] = collector.finished();
    };
    if (!run_tasks(num_parts, num_threads, poll, collect)) return;
    for_each_point(num_points, num_threads, poll, [&](int64_t point, Worker &worker) {
        result[point] = settled_value(nodes, parts, point, epsilon_left[point], epsilon_right[point], strength, cutoff[point],
                                      worker);
    });
}

namespace {

// Probabilities of lying outside either side of a node's region, for each value of an axis.
struct AxisTails {
    std::vector<RatePair> slope;
    std::vector<double> below, above;
    int64_t num_outside = 0;  // values up to the last that leaves any probability outside

    template <typename Below, typename Above>
    void fill(int64_t size, const std::vector<double> &minus_log, double strength, Below below_of, Above above_of) {
        slope.resize(size);
        below.assign(size, 0.0);
        above.assign(size, 0.0);
        num_outside = 0;
        for (int64_t i = 0; i < size; ++i) {
            if (!(minus_log[i] > 0)) {
                num_outside = i + 1;
                continue;
            }
            slope[i] = side(strength * minus_log[i]);
            below[i] = below_of(slope[i]);
            above[i] = above_of(slope[i]);
            if (below[i] > kNothing || above[i] > kNothing) num_outside = i + 1;
        }
    }
};

// One node on the whole grid: the two sides are integrated once for each of their values, and together only where both
// leave something outside.
class NodeGrid {
  public:
    NodeGrid(const ErrorRateBulk &bulk, const std::vector<double> &log_a, const std::vector<double> &minus_log_b,
             double strength)
        : bulk_(bulk) {
        left_.fill(
            log_a.size(), log_a, strength, [&](const RatePair &s) { return bulk.below_left(s); },
            [&](const RatePair &s) { return bulk.above_left(s); });
        right_.fill(
            minus_log_b.size(), minus_log_b, strength, [&](const RatePair &s) { return bulk.below_right(s); },
            [&](const RatePair &s) { return bulk.above_right(s); });
    }

    double outside(int64_t i, int64_t j) const {
        const RatePair &a_inverse = left_.slope[i], &b = right_.slope[j];
        const double below = std::min(left_.below[i], right_.below[j]) < kNothing ||
                                     bulk_.most_below_each(a_inverse, b) < kNothing
                                 ? left_.below[i] + right_.below[j]
                                 : bulk_.below_both(a_inverse, b);
        const double above = std::min(left_.above[i], right_.above[j]) < kNothing ||
                                     bulk_.most_above_each(a_inverse, b) < kNothing
                                 ? left_.above[i] + right_.above[j]
                                 : bulk_.above_both(a_inverse, b);
        return below + above;
    }
    double outside_left(int64_t i) const { return left_.below[i] + left_.above[i]; }
    const RatePair &a_inverse(int64_t i) const { return left_.slope[i]; }
    const RatePair &b(int64_t j) const { return right_.slope[j]; }
    // Columns from here on leave nothing outside their own side.
    int64_t num_right() const { return right_.num_outside; }

  private:
    const ErrorRateBulk &bulk_;
    AxisTails left_, right_;
};

}  // namespace

void grid_log_likelihood(const CountsTable &counts, const double *epsilon_left, int64_t num_left,
                         const double *epsilon_right, int64_t num_right, double depth, double strength, int num_threads,
                         const Poll &poll, double *result) {
    const std::vector<DistinctNode> nodes = distinct_nodes(counts);
    const int64_t num_nodes = static_cast<int64_t>(nodes.size()), num_parts = std::min(kMostParts, num_nodes);
    const int64_t size = num_left * num_right;
    std::vector<PartialSums> parts(num_parts);
    const auto collect = [&](int64_t number, Worker &worker) {
        Collector collector(nodes, size);
        std::vector<double> log_a(num_left), minus_log_b(num_right);
        for (int64_t k = num_nodes * number / num_parts; k < num_nodes * (number + 1) / num_parts; ++k) {
            const DistinctNode &node = nodes[k];
            for (int64_t i = 0; i < num_left; ++i) log_a[i] = node.log_a(epsilon_left[i]);
            for (int64_t j = 0; j < num_right; ++j) minus_log_b[j] = node.minus_log_b(epsilon_right[j]);
            const ErrorRateBulk bulk(node.counts);
            const NodeGrid outer(bulk, log_a, minus_log_b, 1.0);
            std::optional<NodeGrid> inner;
            if (strength > 0) inner.emplace(bulk, log_a, minus_log_b, strength);
            for (int64_t i = 0; i < num_left; ++i) {
                const RatePair a_inverse = outer.a_inverse(i);
                worker.checkpoint();
                const double inside_left = 1 - outer.outside_left(i);
                const bool is_plain = !inner && node.times == 1 && log_a[i] > 0 && inside_left > kSure;
                const int64_t first_plain = is_plain ? outer.num_right() : num_right;
                for (int64_t j = 0; j < first_plain; ++j) {
                    const int64_t point = i * num_right + j;
                    if (!(log_a[i] > 0 && minus_log_b[j] > 0)) {
                        collector.add_impossible(point);
                        continue;
                    }
                    double inside = 1 - outer.outside(i, j), area = area_of(a_inverse, outer.b(j)).u;
                    if (inner) {
                        inside -= 1 - inner->outside(i, j);
                        area = ring_area(area_of(a_inverse, outer.b(j)), area_of(inner->a_inverse(i), inner->b(j)));
                    }
                    collector.add(static_cast<int32_t>(k), point, inside, area);
                }
                double *products = collector.factors().products() + i * num_right;
                for (int64_t j = first_plain; j < num_right; ++j) {
                    const RatePair &b = outer.b(j);
                    products[j] *= inside_left * (a_inverse.rest + a_inverse.u * b.rest) / (a_inverse.rest * b.rest);
                }
            }
            collector.factors().end_node();
        }
        parts[number] = collector.finished();
    };
    if (!run_tasks(num_parts, num_threads, poll, collect)) return;
    const auto value = [&](int64_t point, double cutoff, Worker &worker) {
        return settled_value(nodes, parts, point, epsilon_left[point / num_right], epsilon_right[point % num_right], strength,
                             cutoff, worker);
    };
    // One high value that is known tells what is too low to matter.
    double cutoff = -kInfinity;
    if (depth < kInfinity && size > 0) {
        int64_t highest = 0;
        for (int64_t point = 1; point < size; ++point)
            if (upper_bound(parts, point) > upper_bound(parts, highest)) highest = point;
        const auto find_cutoff = [&](int64_t, Worker &worker) { cutoff = value(highest, -kInfinity, worker) - depth; };
        if (!run_tasks(1, 1, poll, find_cutoff)) return;
    }
    for_each_point(size, num_threads, poll,
                   [&](int64_t point, Worker &worker) { result[point] = value(point, cutoff, worker); });
}

}  // namespace bmpaudit
