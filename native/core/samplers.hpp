// The samplers S of the paper: each marks the nodes of one training sample in a row of membership flags.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "core/threads.hpp"

namespace bmpaudit {

// Undirected adjacency in compressed sparse rows: indptr rises from 0 to indices.size(), all indices are nodes.
struct Adjacency {
    std::vector<int64_t> indptr;
    std::vector<int32_t> indices;

    int32_t num_nodes() const { return static_cast<int32_t>(indptr.size()) - 1; }
    int32_t degree(int32_t node) const { return static_cast<int32_t>(indptr[node + 1] - indptr[node]); }
    const int32_t *neighbors(int32_t node) const { return indices.data() + indptr[node]; }
};

class Sampler {
  public:
    explicit Sampler(int32_t num_nodes) : num_nodes_(num_nodes) {}
    virtual ~Sampler() = default;
    // `member` has num_nodes() zeros on entry and a 1 at each sampled node on return.
    virtual void draw(RandomBits &random, uint8_t *member, Worker &worker) const = 0;
    int32_t num_nodes() const { return num_nodes_; }

  private:
    int32_t num_nodes_;
};

// From each group of nodes a fixed number, uniformly and without replacement.
class GroupedSubset final : public Sampler {
  public:
    // `group[v]` is the group of node v, `take[g]` how many nodes of group g are drawn.
    GroupedSubset(const int32_t *group, int32_t num_nodes, std::vector<int32_t> take);
    void draw(RandomBits &random, uint8_t *member, Worker &worker) const override;

  private:
    std::vector<int32_t> order_;  // nodes sorted by group
    std::vector<int32_t> start_;  // where each group begins in order_
    std::vector<int32_t> take_;
};

// Each node by its own coin.
class IndependentCoins final : public Sampler {
  public:
    IndependentCoins(int32_t num_nodes, double probability) : Sampler(num_nodes), probability_(probability) {}
    void draw(RandomBits &random, uint8_t *member, Worker &worker) const override;

  private:
    double probability_;
};

// A fixed number of nodes, one after another, with probability proportional to weight among those left.
class WeightedSubset final : public Sampler {
  public:
    WeightedSubset(std::vector<double> weights, int32_t take);
    void draw(RandomBits &random, uint8_t *member, Worker &worker) const override;

  private:
    std::vector<double> weights_;
    int32_t take_;
};

class Snowball final : public Sampler {
  public:
    // With `any_order` the next node is drawn from all that wait, else it is the one that has waited longest.
    Snowball(Adjacency graph, int32_t target, int32_t fan_out, bool restart, bool any_order);
    void draw(RandomBits &random, uint8_t *member, Worker &worker) const override;
    // Draws the same sample, and returns the edges that were walked along: from each node to the neighbours it has drawn, as
    // far as these are in the sample then. An edge that both of its nodes have drawn is there twice.
    std::vector<std::pair<int32_t, int32_t>> walked_edges(RandomBits &random, uint8_t *member, Worker &worker) const;

  private:
    // Calls use(node, neighbour) for each edge that is walked along.
    template <typename Use> void walk(RandomBits &random, uint8_t *member, Worker &worker, Use use) const;

    Adjacency graph_;
    int32_t target_;
    int32_t fan_out_;
    bool restart_, any_order_;
    int32_t max_degree_;
};

class RandomWalks final : public Sampler {
  public:
    RandomWalks(Adjacency graph, int32_t num_roots, int32_t walk_length)
        : Sampler(graph.num_nodes()), graph_(std::move(graph)), num_roots_(num_roots), walk_length_(walk_length) {}
    void draw(RandomBits &random, uint8_t *member, Worker &worker) const override;

  private:
    Adjacency graph_;
    int32_t num_roots_;
    int32_t walk_length_;
};

// Samples first, ..., first + count - 1 of the streams (seed, purpose, index). What is drawn does not depend on the number
// of threads.
struct StreamRange {
    uint64_t seed;
    uint64_t purpose;
    uint64_t first;
    int64_t count;
};

// `member` is count rows of num_nodes zeros.
void draw_memberships(const Sampler &sampler, StreamRange streams, int num_threads, const Poll &poll, uint8_t *member);

// Adds to `counts` how many of the samples hold each node.
void count_memberships(const Sampler &sampler, StreamRange streams, int num_threads, const Poll &poll, int64_t *counts);

}  // namespace bmpaudit
