// Bivariate-normal counts in place of binomial ones: the weights of the points (α, β) that a chain has drawn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "counts.hpp"
#include "log_space.hpp"
#include "mhaar_regions.hpp"
#include "random.hpp"
#include "threads.hpp"

namespace bmpaudit {

// With f = 1 + (n-1)τ and r = ρ √(n0 n1/(f0 f1)), the correlation of A and B, the density is
// exp{-(x²/f0 - 2 r x y/√(f0 f1) + y²/f1)/(2(1-r²))} / √(f0 f1 (1-r²)) times what θ = (τ, ρ) does not change, where
// x = (A - n0 α)/√(n0 α(1-α)) and y = (B - n1 β)/√(n1 β(1-β)).
class CorrelatedCounts {
  public:
    // Regions of all nodes, and θ, at one value of the parameters.
    struct State {
        const Regions &regions;
        double tau, rho;
    };

    CorrelatedCounts(const CountsTable &counts, int num_points, Worker &worker)
        : counts_(counts), num_points_(num_points), worker_(worker) {
        for (auto *values : {&score_out_, &score_in_, &base_, &log_weight_, &proposed_log_weight_})
            values->resize(counts.num_nodes * num_points);
    }

    // The bound of |ρ| for this τ; 0 if τ is not admissible.
    static double largest_rho(const CountsTable &counts, double tau) {
        double least = 1;
        for (int64_t k = 0; k < counts.num_nodes; ++k) {
            const auto &node = counts.nodes[k];
            const double f0 = 1 + (node.num_out - 1) * tau, f1 = 1 + (node.num_in - 1) * tau;
            if ((node.num_out > 0 && !(f0 > 0)) || (node.num_in > 0 && !(f1 > 0))) return 0;
            if (node.num_out > 0 && node.num_in > 0) least = std::min(least, f0 * f1 / (node.num_out * node.num_in));
        }
        return std::sqrt(least);
    }

    // Takes note of point i of a node: α, 1-α, β and 1-β.
    void set_point(int64_t block, int i, int64_t lane, double alpha, double passed, double beta, double detected) {
        const int64_t k = block * kLanes + lane;
        if (k >= counts_.num_nodes) return;
        const NodeCounts &node = counts_.nodes[k];
        const int64_t at = k * num_points_ + i;
        score_out_[at] = score_in_[at] = base_[at] = 0;
        if (node.num_out > 0) {
            score_out_[at] = (node.false_positives - node.num_out * alpha) / std::sqrt(node.num_out * alpha * passed);
            base_[at] -= (node.false_positives + 0.5) * std::log(alpha) +
                         (node.num_out - node.false_positives + 0.5) * std::log(passed);
        }
        if (node.num_in > 0) {
            score_in_[at] = (node.false_negatives - node.num_in * beta) / std::sqrt(node.num_in * beta * detected);
            base_[at] -= (node.false_negatives + 0.5) * std::log(beta) +
                         (node.num_in - node.false_negatives + 0.5) * std::log(detected);
        }
    }
    // Point i of sixteen nodes, by the Gamma numbers that it was made of.
    void set_points(int64_t block, int i, const Lanes *g) {
        for (int lane = 0; lane < kLanes; ++lane) {
            const double out = 1 / (static_cast<double>(g[0][lane]) + g[1][lane]);
            const double in = 1 / (static_cast<double>(g[2][lane]) + g[3][lane]);
            set_point(block, i, lane, g[0][lane] * out, g[1][lane] * out, g[2][lane] * in, g[3][lane] * in);
        }
    }

    // log Π_k (Σ_i w'_ki)/(Σ_i w_ki).
    template <bool kRing> double log_ratio(const PointLanes *points, const State &current, const State &proposed) {
        double sum = 0;
        for (int64_t k = 0; k < counts_.num_nodes; ++k) {
            checkpoint_at(k);
            sum += set_node_weights<kRing>(k, points, proposed, proposed_log_weight_.data());
            sum -= set_node_weights<kRing>(k, points, current, log_weight_.data());
        }
        return sum;
    }
    // For the state that is kept, where no ratio was needed.
    template <bool kRing> void set_weights(const PointLanes *points, const State &current) {
        for (int64_t k = 0; k < counts_.num_nodes; ++k) {
            checkpoint_at(k);
            set_node_weights<kRing>(k, points, current, log_weight_.data());
        }
    }
    void accept() { std::swap(log_weight_, proposed_log_weight_); }

    // Every node's new first point: one of all, by their weights.
    void choose(RandomBits &random, PointLanes *points) {
        for (int64_t k = 0; k < counts_.num_nodes; ++k) {
            checkpoint_at(k);
            const double *log_weight = &log_weight_[k * num_points_];
            const double largest = *std::max_element(log_weight, log_weight + num_points_);
            double sum = 0;
            for (int i = 0; i < num_points_; ++i) sum += std::exp(log_weight[i] - largest);
            double left = random.unit() * sum;
            int chosen = 0;
            for (int i = 0; i < num_points_ && left >= 0; ++i) {
                const double weight = std::exp(log_weight[i] - largest);
                if (weight > 0) chosen = i;
                left -= weight;
            }
            PointLanes *own = points + k / kLanes * num_points_;
            own[0].low[k % kLanes] = own[chosen].low[k % kLanes];
            own[0].inverse_high[k % kLanes] = own[chosen].inverse_high[k % kLanes];
            for (auto *values : {&score_out_, &score_in_, &base_})
                (*values)[k * num_points_] = (*values)[k * num_points_ + chosen];
        }
    }

  private:
    void checkpoint_at(int64_t node) const {
        if (node * num_points_ % 1024 < num_points_) worker_.checkpoint();
    }

    // A node's log-weights in some state, -∞ outside the region; returns the logarithm of their sum.
    template <bool kRing>
    double set_node_weights(int64_t k, const PointLanes *points, const State &state, double *log_weight) const {
        const NodeCounts &node = counts_.nodes[k];
        const double f0 = node.num_out > 0 ? 1 + (node.num_out - 1) * state.tau : 1;
        const double f1 = node.num_in > 0 ? 1 + (node.num_in - 1) * state.tau : 1;
        const double r = state.rho * std::sqrt(node.num_out * node.num_in / (f0 * f1)), rest = 1 - r * r;
        const double xx = 1 / (f0 * rest), yy = 1 / (f1 * rest), xy = r / (std::sqrt(f0 * f1) * rest);
        const PointLanes *own = points + k / kLanes * num_points_;
        const auto &edges = state.regions.edges[k / kLanes];
        const int lane = k % kLanes;
        double largest = -kInfinity;
        for (int i = 0; i < num_points_; ++i) {
            const float low = own[i].low[lane], inverse_high = own[i].inverse_high[lane];
            bool is_inside = low >= edges.b[lane] && inverse_high >= edges.inverse_a[lane];
            if (kRing) is_inside &= !(low >= edges.inner_b[lane] && inverse_high >= edges.inner_inverse_a[lane]);
            const int64_t at = k * num_points_ + i;
            const double x = score_out_[at], y = score_in_[at];
            log_weight[at] = is_inside ? base_[at] - (x * x * xx - 2 * x * y * xy + y * y * yy) / 2 : -kInfinity;
            largest = std::max(largest, log_weight[at]);
        }
        if (largest == -kInfinity) return -kInfinity;
        double sum = 0;
        for (int i = 0; i < num_points_; ++i) sum += std::exp(log_weight[k * num_points_ + i] - largest);
        return largest + std::log(sum) - std::log(f0 * f1 * rest) / 2 - std::log(state.regions.area[k]);
    }

    const CountsTable counts_;
    const int num_points_;
    Worker &worker_;
    std::vector<double> score_out_, score_in_, base_, log_weight_, proposed_log_weight_;  // num_points_ for each node
};

}  // namespace bmpaudit
