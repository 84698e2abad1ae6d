#include "student_prior.hpp"

#include <algorithm>

#include "student_lanes.hpp"

namespace bmpaudit {

namespace {

using namespace student;

constexpr int64_t kModelsBetweenCheckpoints = 1024;

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
