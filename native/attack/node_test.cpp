#include "attack/node_test.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace bmpaudit {

namespace {

constexpr int kNodes = 64;  // that a task takes at a time

// The models' ranks of one node's statistic, doubled and centred: whole numbers that sum to 0, equal for equal statistics.
class Ranks {
  public:
    explicit Ranks(int64_t num_models) : order_(num_models) {}

    // Writes them to every kNodes-th place, and returns the sum of their squares.
    double fill(const float *statistics, int64_t stride, int32_t *ranks) {
        const auto num_models = static_cast<int64_t>(order_.size());
        const auto at = [&](int64_t model) { return statistics[model * stride]; };
        std::iota(order_.begin(), order_.end(), 0);
        std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return at(a) < at(b); });
        double squares = 0;
        for (int64_t first = 0, last; first < num_models; first = last) {
            for (last = first + 1; last < num_models && at(order_[last]) == at(order_[first]); ++last) {}
            const auto rank = static_cast<int32_t>(first + last - num_models);
            for (int64_t i = first; i < last; ++i) ranks[order_[i] * kNodes] = rank;
            squares += static_cast<double>(last - first) * rank * rank;
        }
        return squares;
    }

  private:
    std::vector<int32_t> order_;
};

// The sums of the members' ranks of kNodes nodes at once.
void sum_ranks(const int32_t *ranks, const uint8_t *member, const int64_t *order, int64_t num_models, int32_t *sums) {
    int32_t total[kNodes] = {};
    for (int64_t model = 0; model < num_models; ++model) {
        const int32_t *rank = ranks + model * kNodes;
        const uint8_t *flag = member + order[model] * kNodes;
        for (int k = 0; k < kNodes; ++k) total[k] += rank[k] & -static_cast<int32_t>(flag[k]);
    }
    std::copy(total, total + kNodes, sums);
}

}  // namespace

void test_nodes(const Arrangements &models, int num_threads, const Poll &poll, double *z, int64_t *num_reached,
                const Totals &totals) {
    const int64_t num_models = models.num_models, num_nodes = models.num_nodes, num_arrangements = models.num_arrangements;
    const int64_t num_tasks = (num_nodes + kNodes - 1) / kNodes, num_queries = models.num_queries;
    std::vector<double> parts(num_tasks * num_arrangements * 3);
    const bool is_done = run_tasks(num_tasks, num_threads, poll, [&](int64_t task, Worker &worker) {
        const int64_t first = task * kNodes;
        const int count = static_cast<int>(std::min<int64_t>(kNodes, num_nodes - first));
        std::vector<uint8_t> member(num_models * kNodes);
        std::vector<int64_t> num_in(kNodes);
        for (int64_t model = 0; model < num_models; ++model)
            for (int k = 0; k < count; ++k)
                num_in[k] += member[model * kNodes + k] = models.member[model * num_nodes + first + k];

        std::vector<int32_t> ranks(num_queries * num_models * kNodes);
        std::vector<double> unit(num_queries * kNodes);  // one over the standard deviation
        Ranks of_node(num_models);
        for (int64_t query = 0; query < num_queries; ++query)
            for (int k = 0; k < count; ++k) {
                const float *statistics = models.statistics + query * num_models * num_nodes + first + k;
                const double squares = of_node.fill(statistics, num_nodes, &ranks[query * num_models * kNodes + k]);
                const double pairs = static_cast<double>(num_in[k]) * static_cast<double>(num_models - num_in[k]);
                const double variance = pairs * squares / (static_cast<double>(num_models) * static_cast<double>(num_models - 1));
                unit[query * kNodes + k] = variance > 0 ? 1 / std::sqrt(variance) : 0;
            }

        double truth[kNodes] = {};
        int32_t sums[kNodes];
        for (int64_t arrangement = 0; arrangement < num_arrangements; ++arrangement) {
            worker.checkpoint();
            double statistic[kNodes] = {}, *part = &parts[(task * num_arrangements + arrangement) * 3];
            for (int64_t query = 0; query < num_queries; ++query) {
                sum_ranks(&ranks[query * num_models * kNodes], member.data(), models.order + arrangement * num_models, num_models,
                          sums);
                for (int k = 0; k < count; ++k) {
                    const double value = sums[k] * unit[query * kNodes + k];
                    if (arrangement == 0) z[query * num_nodes + first + k] = value;
                    statistic[k] = std::max(statistic[k], std::abs(value));
                    part[1] += value;
                    part[2] += value * value;
                }
            }
            for (int k = 0; k < count; ++k) {
                if (arrangement == 0) truth[k] = statistic[k];
                else num_reached[first + k] += statistic[k] >= truth[k];
                part[0] = std::max(part[0], statistic[k]);
            }
        }
    });
    if (!is_done) return;
    for (int64_t task = 0; task < num_tasks; ++task)
        for (int64_t arrangement = 0; arrangement < num_arrangements; ++arrangement) {
            const double *part = &parts[(task * num_arrangements + arrangement) * 3];
            totals.largest[arrangement] = std::max(totals.largest[arrangement], part[0]);
            totals.sum[arrangement] += part[1];
            totals.squares[arrangement] += part[2];
        }
}

}  // namespace bmpaudit
