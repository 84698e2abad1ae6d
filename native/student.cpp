#include "student.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "student_lanes.hpp"

namespace bmpaudit {

namespace {

using namespace student;

constexpr double kAllNodesWeight = 2;  // of all nodes in the other side's covariance, as a number of models
constexpr int kGroups = 8;             // of so many nodes in a task
constexpr int64_t kModelsBetweenCheckpoints = 256;
constexpr double kCancelled = 1e-6;  // of a variance that is left without a model, below which the rest is fitted afresh

// V is the number of features, or 0 if it is only known at run time.
template <int V> class BlockStudent {
    static constexpr int kMost = V > 0 ? V : kMaxStudentFeatures;
    static constexpr int kPairs = kMost * (kMost + 1) / 2;

  public:
    BlockStudent(const FeatureTable &fitting, const uint8_t *member, const StudentPriors &priors, int64_t first_node)
        : fitting_(fitting), member_(member), priors_(priors), first_(first_node) {
        for (auto &group : groups_) group = Group{};
    }

    void fit(Worker &worker) {
        each_fitting_model(worker, [](Group &group, Doubles in, const Doubles *x, int num_features) {
            for (int side = 0; side < 2; ++side) {
                const Doubles here = side == 1 ? in : 1 - in;
                group.count[side] += here;
                for (int v = 0; v < num_features; ++v) group.mean[side][v] += here * x[v];
            }
        });
        for (Group &group : groups_)
            for (int side = 0; side < 2; ++side)
                for (int v = 0; v < num_features(); ++v)
                    group.mean[side][v] /= group.count[side] > 1 ? group.count[side] : all(1);
        each_fitting_model(worker, [](Group &group, Doubles in, const Doubles *x, int num_features) {
            for (int side = 0; side < 2; ++side) {
                const Doubles here = side == 1 ? in : 1 - in;
                for (int v = 0, pair = 0; v < num_features; ++v)
                    for (int w = 0; w <= v; ++w, ++pair)
                        group.scatter[side][pair] += here * (x[v] - group.mean[side][v]) * (x[w] - group.mean[side][w]);
            }
        });
    }

    // With LeftOut, the challenged models are the fitting ones.
    template <bool LeftOut>
    void challenge(const FeatureTable &challenged, const int64_t *set_of, double *scores, Worker &worker) {
        int64_t set = -1;
        for (int64_t model = 0; model < challenged.num_models; ++model) {
            if (model % kModelsBetweenCheckpoints == 0) worker.checkpoint();
            if (set_of[model] != set) prepare<LeftOut>(set = set_of[model]);
            for (int g = 0; g < num_groups(); ++g) {
                const int64_t node = first_ + g * kNodes;
                const int count = count_at(node);
                const Doubles in = LeftOut ? load(member_ + model * fitting_.num_nodes + node, count) : Doubles{};
                Doubles x[kMost];
                for (int v = 0; v < num_features(); ++v) x[v] = load(challenged.row(v, model) + node, count);
                const Doubles score = score_group<LeftOut>(g, model, in, x);
                std::memcpy(scores + model * challenged.num_nodes + node, &score, count * sizeof(double));
            }
        }
    }

  private:
    // The models of eight nodes on either side; pairs of features are those of the lower triangle, row by row.
    struct Group {
        Doubles count[2]{};
        Doubles mean[2][kMost]{};
        Doubles scatter[2][kPairs]{};
    };

    // What follows from the numbers of models alone, of one side of eight nodes.
    struct SideFactors {
        Doubles level, other;   // shares of the level and of the other side in the prior mean
        Doubles prior;          // share of the prior in the posterior mean
        Doubles rank_one;       // k·n/(k+n)
        Doubles other_scatter;  // factor of the other side's covariance in the scale
        Doubles shrink;         // of the squared distance: (k+n)/(k+n+1)
        Doubles exponent;       // (dof+n+1)/2
    };
    struct Factors {
        SideFactors side[2];
        Doubles constant;  // of the log-likelihood ratio
    };

    // A set of prior parameters, as the challenges use it.
    struct Prior {
        double level[2][kMost], shift[kMost];
        double own[2][kPairs];     // the part of the scale that is the same for all nodes
        double ratio[2][kPairs];   // R·R
        double other[2][kPairs];   // 2·scale'
    };

    int num_features() const { return V > 0 ? V : priors_.num_features; }
    int64_t num_nodes() const { return fitting_.num_nodes; }
    int num_groups() const {
        return static_cast<int>(std::min<int64_t>(kGroups, (num_nodes() - first_ + kNodes - 1) / kNodes));
    }
    int count_at(int64_t node) const { return static_cast<int>(std::min<int64_t>(kNodes, num_nodes() - node)); }

    template <typename Take> void each_fitting_model(Worker &worker, Take take) {
        for (int64_t model = 0; model < fitting_.num_models; ++model) {
            if (model % kModelsBetweenCheckpoints == 0) worker.checkpoint();
            for (int g = 0; g < num_groups(); ++g) {
                const int64_t node = first_ + g * kNodes;
                const int count = count_at(node);
                Doubles x[kMost];
                for (int v = 0; v < num_features(); ++v) x[v] = load(fitting_.row(v, model) + node, count);
                take(groups_[g], load(member_ + model * num_nodes() + node, count), x, num_features());
            }
        }
    }

    template <bool LeftOut> void prepare(int64_t set) {
        const int features = num_features();
        const double *scale = priors_.scale + set * 2 * features * features;
        for (int v = 0; v < features; ++v) prior_.shift[v] = priors_.shift[set * features + v];
        for (int side = 0; side < 2; ++side) {
            const double *mine = scale + side * features * features, *others = scale + (1 - side) * features * features;
            const double own_scale = (priors_.dof[set * 2 + side] - features - 1) * (1 - priors_.other_share[set * 2 + side]);
            for (int v = 0, pair = 0; v < features; ++v) {
                prior_.level[side][v] = priors_.level[(set * 2 + side) * features + v];
                for (int w = 0; w <= v; ++w, ++pair) {
                    const auto ratio = [&](int f) { return std::sqrt(mine[f * features + f] / others[f * features + f]); };
                    prior_.own[side][pair] = own_scale * mine[v * features + w];
                    prior_.ratio[side][pair] = ratio(v) * ratio(w);
                    prior_.other[side][pair] = kAllNodesWeight * others[v * features + w];
                }
            }
        }
        for (int g = 0; g < num_groups(); ++g)
            for (int member = 0; member < (LeftOut ? 2 : 1); ++member)
                for (int i = 0; i < kNodes; ++i) {
                    double counts[2] = {groups_[g].count[0][i], groups_[g].count[1][i]};
                    if (LeftOut) counts[member] = std::max(counts[member] - 1, 0.0);  // a lane beyond the nodes may have none
                    set_factors(factors_[g][member], i, counts, set);
                }
    }

    void set_factors(Factors &factors, int i, const double (&counts)[2], int64_t set) const {
        const double level_weight = priors_.weights[set * 2], shift_weight = priors_.weights[set * 2 + 1];
        double constant[2];
        for (int side = 0; side < 2; ++side) {
            SideFactors &f = factors.side[side];
            const double n = counts[side], others = counts[1 - side], dof = priors_.dof[set * 2 + side];
            const double k = 1 / (1 / shift_weight + 1 / (level_weight + others)), weight = k + n;
            f.level[i] = level_weight / (level_weight + others);
            f.other[i] = others / (level_weight + others);
            f.prior[i] = k / weight;
            f.rank_one[i] = k * n / weight;
            f.other_scatter[i] = (dof - num_features() - 1) * priors_.other_share[set * 2 + side] / (kAllNodesWeight + others);
            f.shrink[i] = weight / (weight + 1);
            f.exponent[i] = (dof + n + 1) / 2;
            constant[side] = priors_.log_gamma[(set * 2 + side) * priors_.num_counts + static_cast<int64_t>(n)] +
                             0.5 * num_features() * std::log(weight / (weight + 1));
        }
        factors.constant[i] = constant[1] - constant[0];
    }

    // A side without one of its models, for a node of which that model holds nearly all of the scatter: no difference
    // would have digits left. At most one model of a side and feature does, so that the work stays linear.
    void fit_others(int64_t model, int side, int64_t node, int i, Doubles *mean, Doubles *scatter) const {
        double count = 0, means[kMost] = {}, squares[kPairs] = {};
        const auto each_other = [&](auto &&take) {
            for (int64_t other = 0; other < fitting_.num_models; ++other)
                if (other != model && member_[other * num_nodes() + node] == side) take(other);
        };
        const auto value = [&](int v, int64_t other) { return static_cast<double>(fitting_.row(v, other)[node]); };
        each_other([&](int64_t other) {
            count += 1;
            for (int v = 0; v < num_features(); ++v) means[v] += value(v, other);
        });
        for (int v = 0; v < num_features(); ++v) means[v] /= count;
        each_other([&](int64_t other) {
            for (int v = 0, pair = 0; v < num_features(); ++v)
                for (int w = 0; w <= v; ++w, ++pair)
                    squares[pair] += (value(v, other) - means[v]) * (value(w, other) - means[w]);
        });
        for (int v = 0, pair = 0; v < num_features(); ++v) {
            mean[v][i] = means[v];
            for (int w = 0; w <= v; ++w, ++pair) scatter[pair][i] = squares[pair];
        }
    }

    template <bool LeftOut> Doubles score_group(int g, int64_t model, Doubles in, const Doubles *x) const {
        const Group &group = groups_[g];
        const auto &factors = factors_[g];
        const Words is_in = in > 0;
        const auto pick = [&](Doubles with, Doubles without) { return LeftOut ? (is_in ? with : without) : without; };
        // The sides without the challenged model. From the side that it is not on, nothing is taken.
        Doubles mean[2][kMost], scatter[2][kPairs];
        for (int side = 0; side < 2; ++side) {
            const Doubles rest = group.count[side] - 1;
            const Doubles taken = LeftOut ? (side == 1 ? in : 1 - in) / (rest > 1 ? rest : all(1)) : Doubles{};
            Words is_cancelled{};
            Doubles deviation[kMost];
            for (int v = 0, pair = 0; v < num_features(); ++v) {
                deviation[v] = x[v] - group.mean[side][v];
                mean[side][v] = LeftOut ? group.mean[side][v] - taken * deviation[v] : group.mean[side][v];
                const Doubles gone = taken * group.count[side] * deviation[v];
                for (int w = 0; w <= v; ++w, ++pair)
                    scatter[side][pair] = LeftOut ? group.scatter[side][pair] - gone * deviation[w] : group.scatter[side][pair];
                if (LeftOut) is_cancelled |= scatter[side][pair - 1] < kCancelled * group.scatter[side][pair - 1];
            }
            if (!LeftOut) continue;
            for (int i = 0; i < kNodes; ++i)  // rare; of a pair of models the one that is left has a scatter of about 0
                if (is_cancelled[i] && taken[i] > 0) fit_others(model, side, first_ + g * kNodes + i, i, mean[side], scatter[side]);
        }
        LogProduct determinants;  // of side 0 over side 1
        Doubles score = pick(factors[1].constant, factors[0].constant);
        for (int side = 0; side < 2; ++side) {
            const SideFactors &with = factors[1].side[side], &without = factors[0].side[side];
            const Doubles level = pick(with.level, without.level), other = pick(with.other, without.other);
            const Doubles prior = pick(with.prior, without.prior), rank_one = pick(with.rank_one, without.rank_one);
            const Doubles other_scatter = pick(with.other_scatter, without.other_scatter);
            const double sign = side == 1 ? 1 : -1;
            Doubles from_prior[kMost], y[kMost], lower[kPairs], inverse[kMost], distance{};
            for (int v = 0; v < num_features(); ++v) {
                const Doubles expected = level * prior_.level[1 - side][v] + other * mean[1 - side][v] + sign * prior_.shift[v];
                from_prior[v] = mean[side][v] - expected;
                y[v] = x[v] - (mean[side][v] - prior * from_prior[v]);
            }
            // LDLᵀ of the scale, row by row; y becomes L⁻¹y.
            for (int v = 0, pair = 0; v < num_features(); ++v) {
                Doubles unscaled[kMost];
                const int row = pair;
                for (int w = 0; w <= v; ++w, ++pair) {
                    const Doubles theirs = prior_.ratio[side][pair] * (scatter[1 - side][pair] + prior_.other[side][pair]);
                    Doubles entry = prior_.own[side][pair] + other_scatter * theirs + scatter[side][pair] +
                                    rank_one * from_prior[v] * from_prior[w];
                    const int other_row = w * (w + 1) / 2;
                    for (int u = 0; u < w; ++u) entry -= unscaled[u] * lower[(w == v ? row : other_row) + u];
                    if (w < v) {
                        unscaled[w] = entry;
                        lower[pair] = entry * inverse[w];
                        y[v] -= lower[pair] * y[w];
                    } else {
                        inverse[v] = 1 / entry;
                        determinants.multiply(side == 0 ? entry : inverse[v]);
                        distance += y[v] * y[v] * inverse[v];
                    }
                }
            }
            const Doubles exponent = pick(with.exponent, without.exponent);
            score -= sign * exponent * log_of(1 + pick(with.shrink, without.shrink) * distance);
        }
        return score + 0.5 * determinants.log();
    }

    const FeatureTable &fitting_;
    const uint8_t *member_;
    const StudentPriors &priors_;
    const int64_t first_;
    Prior prior_;
    Group groups_[kGroups];
    Factors factors_[kGroups][2];
};

template <int V>
void score_with(const FeatureTable &fitting, const uint8_t *member, const FeatureTable *challenged,
                const int64_t *set_of, const StudentPriors &priors, int num_threads, const Poll &poll, double *scores) {
    constexpr int64_t kWidth = kNodes * kGroups;
    run_tasks((fitting.num_nodes + kWidth - 1) / kWidth, num_threads, poll, [&](int64_t block, Worker &worker) {
        BlockStudent<V> attack(fitting, member, priors, block * kWidth);
        attack.fit(worker);
        if (challenged == nullptr) attack.template challenge<true>(fitting, set_of, scores, worker);
        else attack.template challenge<false>(*challenged, set_of, scores, worker);
    });
}

}  // namespace

void student_scores(const FeatureTable &fitting, const uint8_t *member, const FeatureTable *challenged,
                    const int64_t *set_of, const StudentPriors &priors, int num_threads, const Poll &poll,
                    double *scores) {
    constexpr decltype(&score_with<0>) kWithFeatures[] = {score_with<0>, score_with<1>, score_with<2>, score_with<3>,
                                                          score_with<4>};
    const int compiled = priors.num_features <= 4 ? priors.num_features : 0;
    kWithFeatures[compiled](fitting, member, challenged, set_of, priors, num_threads, poll, scores);
}

}  // namespace bmpaudit
