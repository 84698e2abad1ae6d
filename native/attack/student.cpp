#include "attack/student.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace bmpaudit {

namespace {

// Eight nodes at a time, and logarithms of products of their numbers.

constexpr int kNodes = 8;  // at a time

using Doubles = double __attribute__((vector_size(8 * kNodes)));
using Words = int64_t __attribute__((vector_size(8 * kNodes)));
using Floats = float __attribute__((vector_size(4 * kNodes)));
using Bytes = uint8_t __attribute__((vector_size(kNodes)));

inline Doubles all(double value) { return Doubles{} + value; }

// Eight nodes' values, fewer at the end of a row.
inline Doubles load(const float *values, int count) {
    Floats lanes{};
    if (count == kNodes) std::memcpy(&lanes, values, sizeof lanes);
    else std::memcpy(&lanes, values, count * sizeof(float));
    return __builtin_convertvector(lanes, Doubles);
}
inline Doubles load(const uint8_t *values, int count) {
    Bytes lanes{};
    if (count == kNodes) std::memcpy(&lanes, values, sizeof lanes);
    else std::memcpy(&lanes, values, count);
    return __builtin_convertvector(lanes, Doubles);
}

// The logarithm of a product of positive numbers. Mantissas in [√½, √2) are multiplied and exponents added, so that
// nothing overflows; then log m = 2·artanh s = 2s(1 + s²/3 + s⁴/5 + …) with s = (m-1)/(m+1).
class LogProduct {
  public:
    void multiply(Doubles x) {
        Words bits;
        std::memcpy(&bits, &x, sizeof bits);
        const Words exponent = (bits - kRootHalf) >> 52;
        bits -= exponent << 52;
        Doubles mantissa;
        std::memcpy(&mantissa, &bits, sizeof mantissa);
        exponent_ += exponent;
        mantissa_ *= mantissa;
    }
    Doubles log() {
        multiply(std::exchange(mantissa_, all(1)));  // back to [√½, √2)
        constexpr double kLog2High = 0x1.62e42fefa3800p-1, kLog2Low = 0x1.ef35793c76730p-45;
        const Doubles s = (mantissa_ - 1) / (mantissa_ + 1), square = s * s;
        Doubles series = all(1.0 / 21);
        for (int odd = 19; odd >= 3; odd -= 2) series = series * square + 1.0 / odd;
        const Doubles e = __builtin_convertvector(exponent_, Doubles);
        return e * kLog2High + (2 * s + (e * kLog2Low + 2 * s * square * series));
    }

  private:
    static constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;  // the bits of √½
    Words exponent_{};
    Doubles mantissa_ = all(1);
};

inline Doubles log_of(Doubles x) {
    LogProduct product;
    product.multiply(x);
    return product.log();
}

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

namespace {

// V is the number of features, or 0 if it is only known at run time.
template <int V> struct Features {
    static constexpr int kMost = V > 0 ? V : kMaxStudentFeatures;
    static constexpr int kMatrix = kMost * (kMost + 1) / 2;  // entries of a lower triangle, row by row
    const int count;

    explicit Features(int number) : count(V > 0 ? V : number) {}
    int number() const { return V > 0 ? V : count; }
};

template <int V>
void sum_nodes(const FeatureTable &features, int num_features, const uint8_t *member, const double *center,
               const int64_t *fold_of, int64_t node, Worker &worker, double *sums) {
    using Size = Features<V>;
    const int number = Size(num_features).number(), width = number + 1;
    const int64_t num_nodes = features.num_nodes;
    const int lanes = static_cast<int>(std::min<int64_t>(kNodes, num_nodes - node));
    Doubles middle[Size::kMost];
    for (int v = 0; v < number; ++v)
        for (int i = 0; i < kNodes; ++i) middle[v][i] = i < lanes ? center[v * num_nodes + node + i] : 0.0;
    // Of each side: count, sums and products.
    Doubles total[2][1 + Size::kMost + Size::kMatrix] = {};
    int64_t fold = fold_of[0];
    const auto write = [&] {
        for (int side = 0; side < 2; ++side) {
            const auto at = [&](int entry) { return total[side][entry]; };
            for (int i = 0; i < lanes; ++i) {
                double *matrix = sums + (((fold * 2 + side) * num_nodes) + node + i) * width * width;
                matrix[0] += at(0)[i];
                for (int v = 0, pair = 0; v < number; ++v) {
                    matrix[v + 1] += at(1 + v)[i];
                    matrix[(v + 1) * width] += at(1 + v)[i];
                    for (int w = 0; w <= v; ++w, ++pair) {
                        matrix[(v + 1) * width + w + 1] += at(1 + number + pair)[i];
                        if (w < v) matrix[(w + 1) * width + v + 1] += at(1 + number + pair)[i];
                    }
                }
            }
        }
        for (auto &side : total)
            for (Doubles &entry : side) entry = Doubles{};
    };
    for (int64_t model = 0; model < features.num_models; ++model) {
        if (model % kModelsBetweenCheckpoints == 0) worker.checkpoint();
        if (fold_of[model] != fold) {
            write();
            fold = fold_of[model];
        }
        const Doubles in = load(member + model * num_nodes + node, lanes);
        Doubles x[Size::kMost];
        for (int v = 0; v < number; ++v) x[v] = load(features.row(v, model) + node, lanes) - middle[v];
        for (int side = 0; side < 2; ++side) {
            const Doubles here = side == 1 ? in : 1 - in;
            Doubles *sum = total[side];
            *sum++ += here;
            for (int v = 0; v < number; ++v) *sum++ += here * x[v];
            for (int v = 0; v < number; ++v) {
                const Doubles mine = here * x[v];
                for (int w = 0; w <= v; ++w) *sum++ += mine * x[w];
            }
        }
    }
    write();
}

// log of the determinant of a positive definite matrix, by LDLᵀ.
template <int V> Doubles log_determinant(const Doubles *matrix, int number) {
    Doubles lower[Features<V>::kMatrix], inverse[Features<V>::kMost];
    LogProduct determinant;
    for (int v = 0, pair = 0; v < number; ++v) {
        Doubles unscaled[Features<V>::kMost];
        const int row = pair;
        for (int w = 0; w <= v; ++w, ++pair) {
            Doubles entry = matrix[pair];
            const int other_row = w * (w + 1) / 2;
            for (int u = 0; u < w; ++u) entry -= unscaled[u] * lower[(w == v ? row : other_row) + u];
            if (w < v) {
                unscaled[w] = entry;
                lower[pair] = entry * inverse[w];
            } else {
                inverse[v] = 1 / entry;
                determinant.multiply(entry);
            }
        }
    }
    return determinant.log();
}

template <int V>
void add_likelihood(const CovarianceProblems &problems, int64_t problem, double share, const double *candidates,
                    int64_t num_candidates, Worker &worker, double *likelihood) {
    const int number = Features<V>(problems.num_features).number();
    const double *own = problems.own + problem * number * number;
    for (int64_t node = problems.start[problem]; node < problems.start[problem + 1]; node += kNodes) {
        worker.checkpoint();
        const int lanes = static_cast<int>(std::min<int64_t>(kNodes, problems.start[problem + 1] - node));
        Doubles covariance[Features<V>::kMatrix], scatter[Features<V>::kMatrix], freedom{};
        for (int v = 0, pair = 0; v < number; ++v)
            for (int w = 0; w <= v; ++w, ++pair)
                for (int i = 0; i < kNodes; ++i) {
                    const int64_t at = ((node + std::min(i, lanes - 1)) * number + v) * number + w;
                    covariance[pair][i] = (1 - share) * own[v * number + w] + share * problems.other[at];
                    scatter[pair][i] = problems.scatter[at];
                }
        for (int i = 0; i < lanes; ++i) freedom[i] = problems.freedom[node + i];
        const Doubles plain = log_determinant<V>(covariance, number);
        for (int64_t k = 0; k < num_candidates; ++k) {
            Doubles matrix[Features<V>::kMatrix];
            for (int pair = 0; pair < number * (number + 1) / 2; ++pair)
                matrix[pair] = candidates[k] * covariance[pair] + scatter[pair];
            const Doubles exponent = 0.5 * (number + 1 + candidates[k] + freedom);
            const Doubles terms = exponent * (log_determinant<V>(matrix, number) - plain) + 0.5 * freedom * plain;
            double sum = 0;
            for (int i = 0; i < lanes; ++i) sum += terms[i];
            likelihood[k] -= sum;
        }
    }
}

}  // namespace

void student_sums(const FeatureTable &features, int num_features, const uint8_t *member, const double *center,
                  const int64_t *fold_of, int num_threads, const Poll &poll, double *sums) {
    constexpr decltype(&sum_nodes<0>) kWithFeatures[] = {sum_nodes<0>, sum_nodes<1>, sum_nodes<2>, sum_nodes<3>,
                                                         sum_nodes<4>};
    const auto sum = kWithFeatures[num_features <= 4 ? num_features : 0];
    run_tasks((features.num_nodes + kNodes - 1) / kNodes, num_threads, poll, [&](int64_t task, Worker &worker) {
        sum(features, num_features, member, center, fold_of, task * kNodes, worker, sums);
    });
}

void covariance_likelihood(const CovarianceProblems &problems, const double *shares, int64_t num_shares,
                           const double *candidates, int64_t num_candidates, int num_threads, const Poll &poll,
                           double *likelihood) {
    constexpr decltype(&add_likelihood<0>) kWithFeatures[] = {add_likelihood<0>, add_likelihood<1>, add_likelihood<2>,
                                                              add_likelihood<3>, add_likelihood<4>};
    const auto add = kWithFeatures[problems.num_features <= 4 ? problems.num_features : 0];
    run_tasks(problems.num_problems * num_shares, num_threads, poll, [&](int64_t task, Worker &worker) {
        const int64_t problem = task / num_shares, share = task % num_shares;
        add(problems, problem, shares[share], candidates, num_candidates, worker, likelihood + task * num_candidates);
    });
}

}  // namespace bmpaudit
