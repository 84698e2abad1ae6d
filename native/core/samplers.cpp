#include "core/samplers.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <utility>

namespace bmpaudit {

namespace {

constexpr int64_t kStepsBetweenCheckpoints = 1 << 14;
constexpr int64_t kMostParts = 64;

}  // namespace

GroupedSubset::GroupedSubset(const int32_t *group, int32_t num_nodes, std::vector<int32_t> take)
    : Sampler(num_nodes), order_(num_nodes), start_(take.size() + 1, 0), take_(std::move(take)) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return group[a] < group[b]; });
    for (int32_t node = 0; node < num_nodes; ++node) ++start_[group[node] + 1];
    std::partial_sum(start_.begin(), start_.end(), start_.begin());
}

void GroupedSubset::draw(RandomBits &random, uint8_t *member, Worker &) const {
    std::vector<int32_t> order = order_;
    for (size_t g = 0; g < take_.size(); ++g) {
        int32_t *nodes = order.data() + start_[g];
        const int32_t size = start_[g + 1] - start_[g];
        for (int32_t t = 0; t < take_[g]; ++t) {
            std::swap(nodes[t], nodes[t + random.below(size - t)]);
            member[nodes[t]] = 1;
        }
    }
}

void IndependentCoins::draw(RandomBits &random, uint8_t *member, Worker &) const {
    for (int32_t node = 0; node < num_nodes(); ++node) member[node] = random.unit() < probability_;
}

WeightedSubset::WeightedSubset(std::vector<double> weights, int32_t take)
    : Sampler(static_cast<int32_t>(weights.size())), weights_(std::move(weights)), take_(take) {}

void WeightedSubset::draw(RandomBits &random, uint8_t *member, Worker &) const {
    // Exponential races (Efraimidis and Spirakis 2006): the nodes whose clocks ring first are distributed as if drawn
    // one after another in proportion to weight.
    std::vector<std::pair<double, int32_t>> clocks(weights_.size());
    for (int32_t node = 0; node < num_nodes(); ++node)
        clocks[node] = {-std::log(1.0 - random.unit()) / weights_[node], node};
    std::nth_element(clocks.begin(), clocks.begin() + take_ - 1, clocks.end());
    for (int32_t t = 0; t < take_; ++t) member[clocks[t].second] = 1;
}

Snowball::Snowball(Adjacency graph, int32_t target, int32_t fan_out, bool restart, bool any_order)
    : Sampler(graph.num_nodes()), graph_(std::move(graph)), target_(target), fan_out_(fan_out), restart_(restart),
      any_order_(any_order), max_degree_(0) {
    for (int32_t node = 0; node < num_nodes(); ++node) max_degree_ = std::max(max_degree_, graph_.degree(node));
}

template <typename Use>
void Snowball::walk(RandomBits &random, uint8_t *member, Worker &worker, Use use) const {
    std::vector<int32_t> queue(target_ + 1);  // every sampled node, the waiting ones last, and a place to spare
    int32_t size = 0;
    // Whether a node is in already is anybody's guess: no branch, so that none is mispredicted.
    const auto add = [&](int32_t node) {
        queue[size] = node;
        size += 1 - member[node];
        member[node] = 1;
    };
    // Kept as the identity between nodes: the few swaps of a partial shuffle are undone, so a hub costs no more than
    // its fan-out.
    std::vector<int32_t> slots(max_degree_);
    std::iota(slots.begin(), slots.end(), 0);
    std::vector<int32_t> picks(std::min(fan_out_, max_degree_));

    int32_t taken = 0;
    add(static_cast<int32_t>(random.below(num_nodes())));
    while (size < target_) {
        if (taken == size) {
            if (!restart_) return;
            int32_t seed = static_cast<int32_t>(random.below(num_nodes()));
            while (member[seed]) seed = static_cast<int32_t>(random.below(num_nodes()));
            add(seed);
            continue;
        }
        if (taken % kStepsBetweenCheckpoints == 0) worker.checkpoint();
        if (any_order_) std::swap(queue[taken], queue[taken + random.below(size - taken)]);
        const int32_t node = queue[taken++];
        const int32_t degree = graph_.degree(node);
        const int32_t *neighbors = graph_.neighbors(node);
        const int32_t draws = std::min(fan_out_, degree);
        random.shuffle_picks(degree, draws, picks.data());
        for (int32_t t = 0; t < draws; ++t) {
            std::swap(slots[t], slots[picks[t]]);
            const int32_t neighbor = neighbors[slots[t]];
            if (size < target_) add(neighbor);
            if (member[neighbor]) use(node, neighbor);
        }
        for (int32_t t = draws - 1; t >= 0; --t) std::swap(slots[t], slots[picks[t]]);
    }
}

void Snowball::draw(RandomBits &random, uint8_t *member, Worker &worker) const {
    walk(random, member, worker, [](int32_t, int32_t) {});
}

std::vector<std::pair<int32_t, int32_t>> Snowball::walked_edges(RandomBits &random, uint8_t *member, Worker &worker) const {
    std::vector<std::pair<int32_t, int32_t>> edges;
    walk(random, member, worker, [&](int32_t node, int32_t neighbor) { edges.emplace_back(node, neighbor); });
    return edges;
}

void RandomWalks::draw(RandomBits &random, uint8_t *member, Worker &worker) const {
    int64_t steps_left = kStepsBetweenCheckpoints;
    const auto visit = [&](int32_t node) {
        member[node] = 1;
        if (--steps_left > 0) return;
        worker.checkpoint();
        steps_left = kStepsBetweenCheckpoints;
    };
    for (int32_t root = 0; root < num_roots_; ++root) {
        int32_t node = static_cast<int32_t>(random.below(num_nodes()));
        visit(node);
        for (int32_t step = 0; step < walk_length_ && graph_.degree(node) > 0; ++step) {
            node = graph_.neighbors(node)[random.below(graph_.degree(node))];
            visit(node);
        }
    }
}

void draw_memberships(const Sampler &sampler, StreamRange streams, int num_threads, const Poll &poll, uint8_t *member) {
    const int64_t num_parts = std::min(streams.count, kMostParts);
    run_tasks(num_parts, num_threads, poll, [&](int64_t part, Worker &worker) {
        for (int64_t j = streams.count * part / num_parts; j < streams.count * (part + 1) / num_parts; ++j) {
            worker.checkpoint();
            PhiloxBits random(streams.seed, streams.purpose, streams.first + j);
            sampler.draw(random, member + j * sampler.num_nodes(), worker);
        }
    });
}

void count_memberships(const Sampler &sampler, StreamRange streams, int num_threads, const Poll &poll, int64_t *counts) {
    std::mutex mutex;
    const int64_t num_parts = std::min(streams.count, kMostParts);
    run_tasks(num_parts, num_threads, poll, [&](int64_t part, Worker &worker) {
        std::vector<uint8_t> member(sampler.num_nodes());
        std::vector<int64_t> mine(sampler.num_nodes(), 0);
        for (int64_t j = streams.count * part / num_parts; j < streams.count * (part + 1) / num_parts; ++j) {
            worker.checkpoint();
            std::fill(member.begin(), member.end(), 0);
            PhiloxBits random(streams.seed, streams.purpose, streams.first + j);
            sampler.draw(random, member.data(), worker);
            for (int32_t node = 0; node < sampler.num_nodes(); ++node) mine[node] += member[node];
        }
        const std::lock_guard<std::mutex> lock(mutex);
        for (int32_t node = 0; node < sampler.num_nodes(); ++node) counts[node] += mine[node];
    });
}

}  // namespace bmpaudit
