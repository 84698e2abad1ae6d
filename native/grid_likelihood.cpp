#include <algorithm>
#include <tuple>
#include <vector>

#include "likelihood.hpp"
#include "node_sums.hpp"

namespace bmpaudit {

namespace {

constexpr double kNothing = 1e-15;  // of a probability next to 1
constexpr double kNotSmall = 0.05;  // a probability that is a sum of others and above this has lost no digits

// The points of a surface, on either side.
struct SurfaceSides {
    std::vector<double> epsilon_left, epsilon_right;
    EpsilonSide left, right;

    explicit SurfaceSides(const Surface &surface)
        : epsilon_left(values(surface.left())), epsilon_right(values(surface.right())),
          left(epsilon_left.data(), Surface::kMostNodes), right(epsilon_right.data(), Surface::kMostNodes) {}

  private:
    static std::vector<double> values(const EpsilonAxis &axis) {
        std::vector<double> epsilon(Surface::kMostNodes);
        for (int k = 0; k < Surface::kMostNodes; ++k) epsilon[k] = axis.epsilon(k);
        return epsilon;
    }
};

// One node on the values of one axis: what that side alone leaves inside, and how much its two corners hold.
struct AxisOfNode {
    std::vector<RatePair> side;
    std::vector<bool> is_all_inside;
    std::vector<double> inside, lower_corner, upper_corner;
    int64_t num_in_question = 0;  // values up to the last that leaves anything outside

    explicit AxisOfNode(int64_t size) : side(size), is_all_inside(size), inside(size), lower_corner(size), upper_corner(size) {}

    template <typename Side, typename IsAll, typename Inside, typename Corner>
    void fill(Side side_of, IsAll is_all, Inside inside_of, Corner corner_of) {
        num_in_question = 0;
        for (size_t i = 0; i < side.size(); ++i) {
            side[i] = side_of(i);
            is_all_inside[i] = is_all(side[i]);
            if (is_all_inside[i]) continue;
            num_in_question = static_cast<int64_t>(i) + 1;
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

    void fill(const Node &node, const NodeRates &rates, const EpsilonSide &left, const EpsilonSide &right) {
        left_.fill([&](int64_t i) { return left.of_node(i, node.log_odds, 1 / node.odds); },
                   [&](const RatePair &a_inverse) { return rates.is_all_inside_left(a_inverse); },
                   [&](const RatePair &a_inverse) { return rates.inside({a_inverse, kZero}); },
                   [&](const RatePair &a_inverse) { return rates.corner_left(a_inverse); });
        right_.fill([&](int64_t j) { return right.of_node(j, -node.log_odds, node.odds); },
                    [&](const RatePair &b) { return rates.is_all_inside_right(b); },
                    [&](const RatePair &b) { return rates.inside({kZero, b}); },
                    [&](const RatePair &b) { return rates.corner_right(b); });
    }
    const AxisOfNode &left() const { return left_; }
    const AxisOfNode &right() const { return right_; }
    Sides region(int64_t i, int64_t j) const { return {left_.side[i], right_.side[j]}; }
    double inside(int64_t i, int64_t j, const NodeRates &rates) const {
        if (left_.is_all_inside[i]) return right_.is_all_inside[j] ? 1 : right_.inside[j];
        if (right_.is_all_inside[j]) return left_.inside[i];
        return is_apart(i, j) ? apart(i, j) : rates.inside(region(i, j));
    }
    // How many pairs have to be integrated together.
    int64_t num_integrals() const {
        int64_t number = 0;
        for (int64_t i = 0; i < left_.num_in_question; ++i)
            for (int64_t j = 0; j < right_.num_in_question && !left_.is_all_inside[i]; ++j)
                number += !right_.is_all_inside[j] && !is_apart(i, j);
        return number;
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
    const Surface surface(epsilon_left, num_left, epsilon_right, num_right, counts.num_counted());
    const bool has_surface = strength == 0 && surface.is_worthwhile() && Surface::is_worth(size);
    const SurfaceSides surface_sides(surface);
    SumsOfParts sums(counts, strength);
    const auto add = [&](int32_t k, const Node &node, const NodeRates &rates, Collector &collector, Worker &worker) {
        NodeGrid grid(num_left, num_right);
        if (strength == 0) grid.fill(node, rates, left, right);
        if (has_surface) {
            const auto factor = [&](int64_t i, int64_t j) {
                return sure_factor(rates, node.region(surface_sides.left, i, surface_sides.right, j));
            };
            worker.checkpoint();
            if (surface.add(factor, grid.num_integrals(), node.times, collector.on_surface())) return;
        }
        for (int64_t i = 0; i < num_left; ++i) {
            worker.checkpoint();
            for (int64_t j = 0; j < num_right; ++j) {
                const int64_t point = i * num_right + j;
                const Sides region = strength > 0 ? node.region(left, i, right, j) : grid.region(i, j);
                if (!region.has_area()) collector.add_impossible(point);
                else if (strength > 0) collector.add(k, point, rates.factor(region, strength), node.times);
                else collector.add(k, point, rates.checked(grid.inside(i, j, rates), region), node.times);
            }
        }
    };
    if (!sums.collect(size, num_threads, poll, add)) return;
    if (has_surface) sums.add_surface(surface, epsilon_left, num_left, epsilon_right, num_right);
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
