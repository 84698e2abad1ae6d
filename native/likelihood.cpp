#include "likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "node_sums.hpp"

namespace bmpaudit {

int64_t likelihood_bytes_each_point(int64_t num_nodes) {
    return std::min(kMostParts, num_nodes) * static_cast<int64_t>(3 * sizeof(double) + sizeof(std::vector<Doubtful>));
}

void log_likelihood(const WeightedCounts &counts, const double *epsilon_left, const double *epsilon_right,
                    int64_t num_points, const double *cutoff, double strength, int num_threads, const Poll &poll,
                    double *result) {
    const EpsilonSide left(epsilon_left, num_points), right(epsilon_right, num_points);
    const Curve curve(epsilon_left, epsilon_right, num_points, counts.num_counted());
    const EpsilonSide curve_left(curve.left(), Curve::kMostNodes), curve_right(curve.right(), Curve::kMostNodes);
    const bool has_curve = strength == 0 && curve.is_worthwhile();
    SumsOfParts sums(counts, strength);
    const auto add = [&](int32_t k, const Node &node, const NodeRates &rates, Collector &collector, Worker &worker) {
        const auto on_curve = [&](int64_t i) { return sure_factor(rates, node.region(curve_left, i, curve_right, i)); };
        if (has_curve && curve.add(on_curve, node.times, collector.on_curve())) return;
        for (int64_t point = 0; point < num_points; ++point) {
            if (point % kPointsAtOnce == 0) worker.checkpoint();
            const Sides region = node.region(left, point, right, point);
            if (region.has_area()) collector.add(k, point, rates.factor(region, strength), node.times);
            else collector.add_impossible(point);
        }
    };
    if (!sums.collect(num_points, num_threads, poll, add)) return;
    if (has_curve) sums.add_curve(curve, epsilon_left, epsilon_right, num_points);
    const Poll done = [&](int64_t) { return poll(counts.table.num_nodes); };
    for_each_point(num_points, num_threads, done, [&](int64_t point, Worker &worker) {
        result[point] = sums.value(point, epsilon_left[point], epsilon_right[point], cutoff[point], worker);
    });
}

void node_log_likelihood(const CountsTable &counts, const double *epsilon_left, const double *epsilon_right,
                         int64_t num_points, double strength, int num_threads, const Poll &poll, double *result) {
    const EpsilonSide left(epsilon_left, num_points), right(epsilon_right, num_points);
    const int64_t num_nodes = counts.num_nodes, num_parts = std::min(kMostParts, num_nodes);
    BorrowedLaws laws(num_workers(num_parts, num_threads));
    run_tasks(num_parts, num_threads, poll, [&](int64_t number, Worker &worker) {
        LawStores &stores = laws.of(worker.number());
        for (int64_t k = num_nodes * number / num_parts; k < num_nodes * (number + 1) / num_parts; ++k) {
            const Node node(counts, k);
            const NodeRates rates(node.counts, stores);
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

}  // namespace bmpaudit
