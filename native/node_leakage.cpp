#include "node_leakage.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "node_factor.hpp"

namespace bmpaudit {

namespace {

constexpr double kTolerance = 1e-8;  // of the log-odds of a probability
constexpr int64_t kNodesAtOnce = 32;

double log_odds(double p) { return std::log(p) - std::log1p(-p); }

// Inverts a distribution function on (0, ∞) by the secant method on the log-odds of the probability against log t, nearly
// straight for small t and in the tail, kept within what is known to lie on either side. Remembers all it has seen.
template <typename Distribution> class Inverse {
  public:
    Inverse(Distribution distribution, double guess) : distribution_(distribution) {
        look_at(std::log(guess));
        look_at(std::log(guess) + 0.5);
    }

    double operator()(double p) {
        const double wanted = log_odds(p);
        for (int round = 0; round < kMostRounds; ++round) {
            Seen low{-kInfinity, -kInfinity}, high{kInfinity, kInfinity}, nearest = seen_[0], second = seen_[1];
            for (const Seen &seen : seen_) {
                if (seen.log_odds < wanted && seen.log_t > low.log_t) low = seen;
                if (seen.log_odds >= wanted && seen.log_t < high.log_t) high = seen;
                const auto distance = [&](const Seen &other) { return std::abs(other.log_odds - wanted); };
                if (distance(seen) < distance(nearest)) {
                    second = nearest;
                    nearest = seen;
                } else if (distance(seen) < distance(second) && seen.log_t != nearest.log_t) {
                    second = seen;
                }
            }
            if (std::abs(nearest.log_odds - wanted) < kTolerance) return std::exp(nearest.log_t);
            const double slope = (second.log_odds - nearest.log_odds) / (second.log_t - nearest.log_t);
            double next = nearest.log_t + std::clamp((wanted - nearest.log_odds) / slope, -2.0, 2.0);
            if (!(next > low.log_t && next < high.log_t))
                next = high.log_t == kInfinity ? low.log_t + 1
                       : low.log_t == -kInfinity ? high.log_t - 1
                                                 : 0.5 * (low.log_t + high.log_t);
            if (high.log_t - low.log_t < 1e-13) return std::exp(next);
            look_at(next);
        }
        return std::exp(seen_.back().log_t);
    }

  private:
    static constexpr int kMostRounds = 200;
    struct Seen {
        double log_t, log_odds;
    };
    void look_at(double log_t) {
        seen_.push_back({log_t, log_odds(std::clamp(distribution_(std::exp(log_t)), 1e-300, 1 - 1e-16))});
    }

    Distribution distribution_;
    std::vector<Seen> seen_;
};

// About where max{log(top/bottom), log((1-top)/(1-bottom))} lies: as if the rates were their means, or about their spread
// if that is more.
double guess_of(double top, double top_trials, double bottom, double bottom_trials) {
    const double there = std::max(std::log(top / bottom), std::log((1 - top) / (1 - bottom)));
    const auto spread = [](double mean, double trials) { return std::sqrt(mean * (1 - mean) / (trials + 3)); };
    return std::max(there, 0.5 * (spread(top, top_trials) + spread(bottom, bottom_trials)) / std::min(0.5, bottom));
}

}  // namespace

void leakage_quantiles(const NodeCounts *nodes, int64_t num_nodes, const double *probabilities, int64_t num_probabilities,
                       int num_threads, const Poll &poll, double *right, double *left) {
    const int64_t num_tasks = (num_nodes + kNodesAtOnce - 1) / kNodesAtOnce;
    BorrowedLaws laws(num_workers(num_tasks, num_threads));
    run_tasks(num_tasks, num_threads, poll, [&](int64_t task, Worker &worker) {
        LawStores &stores = laws.of(worker.number());
        for (int64_t k = task * kNodesAtOnce; k < std::min(num_nodes, (task + 1) * kNodesAtOnce); ++k) {
            const NodeCounts &node = nodes[k];
            const NodeRates rates(node, stores);
            const double alpha = (node.false_positives + 1) / (node.num_out + 2);
            const double detected = (node.num_in - node.false_negatives + 1) / (node.num_in + 2);
            const auto fill = [&](auto distribution, double guess, double *result) {
                Inverse inverse(
                    [&](double t) {
                        worker.checkpoint();
                        return distribution(t);
                    },
                    guess);
                for (int64_t i = 0; i < num_probabilities; ++i) result[i] = inverse(probabilities[i]);
            };
            // Pr(e_R - log η ≤ t) is the probability of the region of ε_R = t, ε_L = ∞ and η = 1.
            fill([&](double t) { return rates.inside({kZero, side(t)}); },
                 guess_of(detected, node.num_in, alpha, node.num_out), right + k * num_probabilities);
            fill([&](double t) { return rates.inside({side(t), kZero}); },
                 guess_of(alpha, node.num_out, detected, node.num_in), left + k * num_probabilities);
        }
    });
}

}  // namespace bmpaudit
