#include "attack/gaussian.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/log_space.hpp"

namespace bmpaudit {

namespace {


// Nodes are worked on in blocks, so that the loops over a block are loops over vectors.
constexpr int kWidth = 128;
constexpr int64_t kModelsBetweenCheckpoints = 1024;

// The statistics of one node on one side. The mean is kept as `shift + offset` where `shift` is one of the values, and
// the squares are taken about the mean: a spread far below the size of the values is kept, and equal values give
// exactly 0.
struct Side {
    double count = 0, shift = 0, offset = 0, squares = 0;

    double deviation(double z) const { return (z - shift) - offset; }
};

// The same for a block of nodes.
struct SideBlock {
    alignas(64) double count[kWidth] = {};
    alignas(64) double shift[kWidth] = {};
    alignas(64) double offset[kWidth] = {};
    alignas(64) double squares[kWidth] = {};

    Side at(int i) const { return {count[i], shift[i], offset[i], squares[i]}; }
};

// log x for a positive number, in steps that the compiler can take for several numbers at once; right to about one unit
// in the last place. With x = 2^e·m, m in [√½, √2), and s = (m-1)/(m+1): log m = 2·artanh s = 2s(1 + s²/3 + s⁴/5 + …).
inline double log_of(double x) {
    constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd;  // the bits of √½
    constexpr double kLog2High = 0x1.62e42fefa3800p-1, kLog2Low = 0x1.ef35793c76730p-45;
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const int64_t exponent = static_cast<int64_t>(bits - kRootHalf) >> 52;
    bits -= static_cast<uint64_t>(exponent) << 52;
    double m;
    std::memcpy(&m, &bits, sizeof m);
    const double s = (m - 1) / (m + 1), square = s * s;
    double series = 1.0 / 21;
    for (int odd = 19; odd >= 3; odd -= 2) series = series * square + 1.0 / odd;
    const double e = static_cast<double>(exponent);
    return e * kLog2High + (2 * s + (e * kLog2Low + 2 * s * square * series));
}

// Log density of a normal distribution up to the constant that both sides share; without spread it is all at the mean.
double log_density(double deviation, double variance) {
    if (variance > 0) return -0.5 * (std::log(variance) + deviation * deviation / variance);
    return deviation == 0 ? kInfinity : -kInfinity;
}

// Taking a value away leaves `squares - gone`. That difference has lost most of its digits if little is left of a lot;
// then the other values are fitted afresh. This happens to at most two models of a side, since no more can hold three
// quarters of the sum of squares, so that the work stays linear.
bool is_cancelled(double left, double squares) { return left < 0.25 * squares; }

// What one side says about a statistic, after the challenged model is taken away.
struct Rest {
    double deviation, squares, share;
    bool is_cancelled;
};

// What the challenges of a node have in common, for one side with n models.
struct SideFactors {
    alignas(64) double per_rest[kWidth];     // 1/(n-1)
    alignas(64) double share[kWidth];        // one over the number of models that the variance is over
    alignas(64) double share_added[kWidth];  // when one is taken away
};

// Without z, n values with mean μ and sum of squares Q have mean μ - (z-μ)/(n-1) and sum of squares Q - (z-μ)²·n/(n-1).
template <bool LeftOut>
inline Rest rest(const SideBlock &side, const SideFactors &factors, int i, double z, double taken) {
    const double deviation = (z - side.shift[i]) - side.offset[i], squares = side.squares[i];
    if (!LeftOut) return {deviation, squares, factors.share[i], false};
    const double grown = deviation + taken * (deviation * factors.per_rest[i]);
    const double left = squares - taken * (deviation * grown);
    return {grown, left, factors.share[i] + taken * factors.share_added[i], is_cancelled(left, squares)};
}

// One block of nodes.
class BlockAttack {
  public:
    BlockAttack(const ModelTable &fitting, const ModelTable &challenged, const NodePriors &priors,
                const DecisionRule &rule, int64_t first_node)
        : fitting_(fitting), challenged_(challenged), priors_(priors), rule_(rule), first_(first_node),
          width_(static_cast<int>(std::min<int64_t>(kWidth, fitting.num_nodes - first_node))),
          min_variance_(rule.min_sigma * rule.min_sigma) {}

    void fit(Worker &worker) {
        for (int64_t model = 0; model < fitting_.num_models; ++model) {
            if (model % kModelsBetweenCheckpoints == 0) worker.checkpoint();
            add_to_means(row(fitting_, model));
        }
        for (SideBlock *side : {&out_, &in_})
            for (int i = 0; i < kWidth; ++i) side->offset[i] /= side->count[i];
        for (int64_t model = 0; model < fitting_.num_models; ++model) {
            if (model % kModelsBetweenCheckpoints == 0) worker.checkpoint();
            add_to_squares(row(fitting_, model));
        }
    }

    template <bool LeftOut> void challenge(const ErrorTotals &errors, double *scores, Worker &worker) {
        check_counts(LeftOut ? 2 : 1);
        alignas(64) double score[kWidth];
        Totals weak, strong;
        alignas(64) double log_odds[kWidth] = {};
        for (int i = 0; i < width_; ++i) {
            is_unfittable_[i] = !priors_.is_fittable[first_ + i];
            if (!is_unfittable_[i]) log_odds[i] = priors_.log_prior_odds[first_ + i];
        }
        prepare<LeftOut>();
        for (int64_t model = 0; model < challenged_.num_models; ++model) {
            if (model % kModelsBetweenCheckpoints == 0) worker.checkpoint();
            const Row asked = row(challenged_, model);
            score_row<LeftOut>(asked, model, score);
            weak.add(asked.member, score, nullptr, rule_.threshold, width_);
            strong.add(asked.member, score, log_odds, rule_.threshold, width_);
            if (scores != nullptr) std::copy_n(score, width_, scores + model * challenged_.num_nodes + first_);
        }
        weak.write(errors.weak_false_positives + first_, errors.weak_false_negatives + first_, width_);
        strong.write(errors.strong_false_positives + first_, errors.strong_false_negatives + first_, width_);
    }

  private:
    struct Row {
        const float *statistics;
        const uint8_t *member;
    };

    // Errors of one kind of decision.
    struct Totals {
        alignas(64) int64_t false_positives[kWidth] = {};
        alignas(64) int64_t false_negatives[kWidth] = {};

        void add(const uint8_t *member, const double *score, const double *log_odds, double threshold, int width) {
            for (int i = 0; i < width; ++i) {
                const bool says_member = (log_odds == nullptr ? score[i] : score[i] + log_odds[i]) > threshold;
                false_positives[i] += says_member & !member[i];
                false_negatives[i] += !says_member & (member[i] != 0);
            }
        }
        void write(int64_t *positives, int64_t *negatives, int width) const {
            std::copy_n(false_positives, width, positives);
            std::copy_n(false_negatives, width, negatives);
        }
    };

    Row row(const ModelTable &models, int64_t model) const {
        const int64_t start = model * models.num_nodes + first_;
        return {models.statistics + start, models.member + start};
    }

    void check_counts(int needed) const {
        for (int i = 0; i < width_; ++i) {
            const double fewest = std::min(out_.count[i], in_.count[i]);
            if (!priors_.is_fittable[first_ + i] || fewest >= needed) continue;
            throw std::invalid_argument("a fittable node must be in at least " + std::to_string(needed) +
                                        " fitting models and out of as many, got " +
                                        std::to_string(static_cast<int64_t>(fewest)) + " at node " +
                                        std::to_string(first_ + i));
        }
    }

    void add_to_means(Row row) {
        for (int i = 0; i < width_; ++i) {
            const double z = row.statistics[i], in = row.member[i] ? 1.0 : 0.0, out = 1.0 - in;
            // The first value of a side becomes its shift.
            out_.shift[i] = out_.count[i] == 0 ? z : out_.shift[i];
            in_.shift[i] = in_.count[i] == 0 ? z : in_.shift[i];
            out_.count[i] += out;
            in_.count[i] += in;
            out_.offset[i] += out * (z - out_.shift[i]);
            in_.offset[i] += in * (z - in_.shift[i]);
        }
    }

    void add_to_squares(Row row) {
        for (int i = 0; i < width_; ++i) {
            const double z = row.statistics[i], in = row.member[i] ? 1.0 : 0.0, out = 1.0 - in;
            const double from_out = out * ((z - out_.shift[i]) - out_.offset[i]);
            const double from_in = in * ((z - in_.shift[i]) - in_.offset[i]);
            out_.squares[i] += from_out * from_out;
            in_.squares[i] += from_in * from_in;
        }
    }

    // Factors that all challenges of a node share: 1/n of a side, and what is added to it when a model is taken away.
    template <bool LeftOut> void prepare() {
        for (int i = 0; i < kWidth; ++i) {
            const double both = out_.count[i] + in_.count[i];
            for (const auto &[side, factors] : {std::make_pair(&out_, &out_factors_), std::make_pair(&in_, &in_factors_)}) {
                const double n = side->count[i], size = rule_.pooled_variance ? both - LeftOut : n;
                factors->per_rest[i] = LeftOut ? 1 / (n - 1) : 0;
                factors->share[i] = 1 / size;
                factors->share_added[i] = LeftOut && !rule_.pooled_variance ? 1 / (n - 1) - 1 / n : 0;
            }
        }
    }

    // One model's scores. A side that the model is not taken from has `taken` = 0, which changes nothing.
    template <bool LeftOut> void score_row(const Row asked, int64_t model, double *score) const {
        alignas(64) double ratio[kWidth], distance[kWidth];
        alignas(64) int64_t is_special[kWidth];
        const double pooled = rule_.pooled_variance ? 1.0 : 0.0, min_variance = min_variance_;
        int64_t any_special = 0;
        for (int i = 0; i < width_; ++i) {
            const double z = asked.statistics[i], from_in_side = asked.member[i] ? 1.0 : 0.0;
            const Rest out = rest<LeftOut>(out_, out_factors_, i, z, 1.0 - from_in_side);
            const Rest in = rest<LeftOut>(in_, in_factors_, i, z, from_in_side);
            const double out_variance = std::max((out.squares + pooled * in.squares) * out.share, min_variance);
            const double in_variance = std::max((in.squares + pooled * out.squares) * in.share, min_variance);
            ratio[i] = out_variance / in_variance;
            distance[i] = out.deviation * out.deviation / out_variance - in.deviation * in.deviation / in_variance;
            is_special[i] = is_unfittable_[i] | out.is_cancelled | in.is_cancelled | !(out_variance > 0) | !(in_variance > 0);
            any_special |= is_special[i];
        }
        for (int i = 0; i < width_; ++i) score[i] = 0.5 * (log_of(ratio[i]) + distance[i]);
        if (any_special == 0) return;
        for (int i = 0; i < width_; ++i)
            if (is_special[i]) score[i] = is_unfittable_[i] ? -kInfinity : special_score<LeftOut>(asked, model, i);
    }

    // Where a side has no spread, or loses nearly all of it with the challenged model.
    template <bool LeftOut> double special_score(Row asked, int64_t model, int i) const {
        const double z = asked.statistics[i];
        const bool in = asked.member[i];
        const Side out_side = LeftOut && !in ? without(out_.at(i), z, model, i) : out_.at(i);
        const Side in_side = LeftOut && in ? without(in_.at(i), z, model, i) : in_.at(i);
        double out_variance = out_side.squares / out_side.count, in_variance = in_side.squares / in_side.count;
        if (rule_.pooled_variance)
            out_variance = in_variance = (out_side.squares + in_side.squares) / (out_side.count + in_side.count);
        const double log_in = log_density(in_side.deviation(z), std::max(in_variance, min_variance_));
        const double log_out = log_density(out_side.deviation(z), std::max(out_variance, min_variance_));
        return std::isinf(log_in) && log_in == log_out ? 0.0 : log_in - log_out;  // 0/0 and inf/inf count as 1
    }

    // A side without one of its models.
    Side without(Side side, double z, int64_t model, int i) const {
        const double deviation = side.deviation(z), left = side.squares - deviation * deviation * (side.count / (side.count - 1));
        if (!is_cancelled(left, side.squares)) {
            side.count -= 1;
            side.offset -= deviation / side.count;
            side.squares = left;
            return side;
        }
        const bool in = row(fitting_, model).member[i];
        Side afresh;
        const auto each_other = [&](auto &&take) {
            for (int64_t other = 0; other < fitting_.num_models; ++other) {
                const Row at = row(fitting_, other);
                if (other != model && (at.member[i] != 0) == in) take(static_cast<double>(at.statistics[i]));
            }
        };
        each_other([&](double value) {
            if (afresh.count == 0) afresh.shift = value;
            afresh.count += 1;
            afresh.offset += value - afresh.shift;
        });
        afresh.offset /= afresh.count;
        each_other([&](double value) { afresh.squares += afresh.deviation(value) * afresh.deviation(value); });
        return afresh;
    }

    const ModelTable &fitting_;
    const ModelTable &challenged_;
    const NodePriors &priors_;
    const DecisionRule &rule_;
    const int64_t first_;
    const int width_;
    const double min_variance_;
    SideBlock out_, in_;
    SideFactors out_factors_, in_factors_;
    alignas(64) int64_t is_unfittable_[kWidth] = {};
};

template <bool LeftOut>
void challenge(const ModelTable &fitting, const ModelTable &challenged, const NodePriors &priors,
               const DecisionRule &rule, int num_threads, const Poll &poll, const ErrorTotals &errors, double *scores) {
    const int64_t num_blocks = (fitting.num_nodes + kWidth - 1) / kWidth;
    run_tasks(num_blocks, num_threads, poll, [&](int64_t block, Worker &worker) {
        BlockAttack attack(fitting, challenged, priors, rule, block * kWidth);
        attack.fit(worker);
        attack.template challenge<LeftOut>(errors, scores, worker);
    });
}

}  // namespace

void challenge_left_out(const ModelTable &models, const NodePriors &priors, const DecisionRule &rule, int num_threads,
                        const Poll &poll, const ErrorTotals &errors, double *scores) {
    challenge<true>(models, models, priors, rule, num_threads, poll, errors, scores);
}

void challenge_others(const ModelTable &fitting, const ModelTable &challenged, const NodePriors &priors,
                      const DecisionRule &rule, int num_threads, const Poll &poll, const ErrorTotals &errors,
                      double *scores) {
    challenge<false>(fitting, challenged, priors, rule, num_threads, poll, errors, scores);
}

}  // namespace bmpaudit
