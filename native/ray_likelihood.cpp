#include <vector>

#include "likelihood.hpp"
#include "node_sums.hpp"
#include "rays.hpp"

namespace bmpaudit {

namespace {

// ε of one side on all rays: at(i, j) is that of the i-th distance in the j-th direction.
class RaySide {
  public:
    RaySide(double low, const double *distances, int64_t num_distances, const double *directions, int64_t num_directions)
        : num_directions_(num_directions), epsilon_(values(low, distances, num_distances, directions, num_directions)),
          side_(epsilon_.data(), static_cast<int64_t>(epsilon_.size())) {}

    const double *data() const { return epsilon_.data(); }
    const EpsilonSide &side() const { return side_; }
    int64_t at(int64_t i, int64_t j) const { return i * num_directions_ + j; }

  private:
    static std::vector<double> values(double low, const double *distances, int64_t num_distances, const double *directions,
                                      int64_t num_directions) {
        std::vector<double> epsilon(num_distances * num_directions);
        for (int64_t i = 0; i < num_distances; ++i)
            for (int64_t j = 0; j < num_directions; ++j) epsilon[i * num_directions + j] = low + distances[i] * directions[j];
        return epsilon;
    }

    int64_t num_directions_;
    std::vector<double> epsilon_;
    EpsilonSide side_;
};

std::vector<double> distances_of(const Rays &rays) {
    std::vector<double> distances(Rays::kMostNodes);
    for (int k = 0; k < Rays::kMostNodes; ++k) distances[k] = rays.distance(k);
    return distances;
}

}  // namespace

void ray_log_likelihood(const WeightedCounts &counts, const RayGrid &grid, int num_threads, const Poll &poll,
                        double *result) {
    const int64_t num_distances = grid.num_distances, num_directions = grid.num_directions;
    const int64_t size = num_distances * num_directions;
    const RaySide left(grid.low_left, grid.distances, num_distances, grid.left, num_directions);
    const RaySide right(grid.low_right, grid.distances, num_distances, grid.right, num_directions);
    const Rays rays(grid.distances, num_distances, counts.num_counted());
    const bool has_rays = rays.is_worthwhile();
    const std::vector<double> nodes = has_rays ? distances_of(rays) : std::vector<double>();
    const auto num_nodes = static_cast<int64_t>(nodes.size());
    const RaySide node_left(grid.low_left, nodes.data(), num_nodes, grid.left, num_directions);
    const RaySide node_right(grid.low_right, nodes.data(), num_nodes, grid.right, num_directions);
    SumsOfParts sums(counts, 0);
    const auto add = [&](int32_t k, const Node &node, const NodeRates &rates, Collector &collector, Worker &worker) {
        for (int64_t j = 0; j < num_directions; ++j) {
            worker.checkpoint();
            const auto on_ray = [&](int64_t i) {
                return sure_factor(rates, node.region(node_left.side(), node_left.at(i, j), node_right.side(), node_right.at(i, j)));
            };
            if (has_rays && rays.add(on_ray, node.times, collector.on_ray(j, num_directions))) continue;
            for (int64_t i = 0; i < num_distances; ++i) {
                const int64_t point = left.at(i, j);
                const Sides region = node.region(left.side(), point, right.side(), point);
                if (region.has_area()) collector.add(k, point, rates.factor(region, 0), node.times);
                else collector.add_impossible(point);
            }
        }
    };
    if (!sums.collect(size, num_threads, poll, add)) return;
    if (has_rays) sums.add_rays(rays, grid.distances, num_distances, num_directions);
    const Poll done = [&](int64_t) { return poll(counts.table.num_nodes); };
    for_each_point(size, num_threads, done, [&](int64_t point, Worker &worker) {
        result[point] = sums.value(point, left.data()[point], right.data()[point], -kInfinity, worker);
    });
}

}  // namespace bmpaudit
