#include "attack/rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/lanes.hpp"

namespace bmpaudit {

namespace {

// So many floats in one register, or in halves where registers are not so wide.
template <int Count, bool Fits = Count * sizeof(float) <= kRegisterBytes> struct FloatsType {
    using Type = Halves<typename FloatsType<Count / 2>::Type>;
};
template <int Count> struct FloatsType<Count, true> {
    typedef float Type __attribute__((vector_size(Count * sizeof(float))));
};
template <int Count> using Floats = typename FloatsType<Count>::Type;

template <int Count> inline Floats<Count> load_floats(const float *from) {
    Floats<Count> value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
template <typename V> inline void store_floats(const V &value, float *to) { std::memcpy(to, &value, sizeof value); }
template <int Count> inline float sum_of(const Floats<Count> &values) {
    float each[Count], total = 0;
    std::memcpy(each, &values, sizeof each);
    for (const float value : each) total += value;
    return total;
}

constexpr float kNegligible = 1e-3f;
constexpr int kChains = 4;  // sums that are worked on side by side
constexpr int64_t kNodesBetweenCheckpoints = 1024;

// Classes are taken `Lanes` at a time; what has one number per class is padded with zeros to whole groups of lanes.
template <int Lanes> class RowInference {
  public:
    RowInference(const RowModel &model, const float *temperatures, int64_t num_sweeps, bool with_spread)
        : model_(model), temperatures_(temperatures), num_sweeps_(num_sweeps), with_spread_(with_spread),
          num_groups_((model.num_classes + Lanes - 1) / Lanes), width_(num_groups_ * Lanes),
          num_classes_(static_cast<float>(model.num_classes)), mean_(model.num_nodes * width_), square_(model.num_nodes) {
        for (int64_t node = 0; node < model.num_nodes; ++node) {
            most_entries_ = std::max(most_entries_, model.indptr[node + 1] - model.indptr[node]);
            for (int64_t c = 0; c < model.num_classes; ++c) {
                const float value = model.mean[node * model.num_classes + c];
                mean_[node * width_ + c] = value;
                square_[node] += value * value;
            }
        }
    }

    // What one thread works with.
    struct Scratch {
        std::vector<float> left, part;            // feature or node, padded classes: R, and the nodes' parts
        std::vector<float> noise, spread, prob;   // feature: v; node
        std::vector<float> weight, estimate;      // entry of a node: x/v; padded classes: b̂
        std::vector<int64_t> active;              // nodes that are not settled
        std::vector<uint8_t> was_small;           // node: p was negligible in the last sweep
    };

    void run(const RowTable &table, int64_t number, const RowAnswers &answers, Scratch &scratch, Worker &worker) const {
        const int64_t num_nodes = model_.num_nodes, num_classes = model_.num_classes;
        const uint8_t *state = table.state + number * num_nodes;
        float *coefficient = answers.coefficient ? answers.coefficient + number * num_nodes * num_classes : nullptr;
        start(table.rows + number * model_.num_features * num_classes, state, coefficient, scratch, worker);
        for (int64_t sweep = 0; sweep < num_sweeps_; ++sweep) {
            int64_t num_done = 0;
            for (const int64_t node : scratch.active) {
                if (num_done++ % kNodesBetweenCheckpoints == 0) worker.checkpoint();
                update(node, state[node], temperatures_[sweep], scratch);
            }
            const auto is_settled = [&](int64_t node) {
                const bool was_small = scratch.was_small[node];
                scratch.was_small[node] = scratch.prob[node] < kNegligible;
                return was_small && scratch.was_small[node];
            };
            auto &active = scratch.active;
            active.erase(std::remove_if(active.begin(), active.end(), is_settled), active.end());
        }
        float *statistic = answers.statistic ? answers.statistic + number * num_nodes : nullptr;
        answer(state, statistic, coefficient, scratch, worker);
        for (int64_t f = 0; f < model_.num_features && answers.residual; ++f) {
            float square = 0;
            for (int64_t c = 0; c < width_; ++c) square += scratch.left[f * width_ + c] * scratch.left[f * width_ + c];
            answers.residual[number * model_.num_features + f] = square / num_classes_;
        }
    }

  private:
    int64_t num_entries(int64_t node) const { return model_.indptr[node + 1] - model_.indptr[node]; }

    void start(const float *rows, const uint8_t *state, const float *begin, Scratch &scratch, Worker &worker) const {
        const int64_t num_classes = model_.num_classes;
        scratch.left.assign(model_.num_features * width_, 0);
        for (int64_t f = 0; f < model_.num_features; ++f)
            std::copy_n(rows + f * num_classes, num_classes, &scratch.left[f * width_]);
        scratch.part.assign(model_.num_nodes * width_, 0);
        scratch.noise.assign(model_.noise, model_.noise + model_.num_features);
        scratch.spread.assign(model_.num_nodes, 0);
        scratch.prob.assign(model_.num_nodes, 0);
        scratch.weight.assign(most_entries_, 0);
        scratch.estimate.assign(width_, 0);
        scratch.was_small.assign(model_.num_nodes, 0);
        scratch.active.clear();
        for (int64_t node = 0; node < model_.num_nodes; ++node) {
            if (node % kNodesBetweenCheckpoints == 0) worker.checkpoint();
            if (state[node] == kNonMember || num_entries(node) == 0) continue;
            scratch.active.push_back(node);
            const float prob = probability(state[node], model_.log_odds[node]);
            const float *from = begin ? begin + node * num_classes : &mean_[node * width_];
            std::copy_n(from, num_classes, scratch.estimate.data());
            for (float &value : scratch.estimate) value *= prob;
            move_part(node, scratch.estimate.data(), scratch);
            set_spread(node, prob * model_.variance[node] + prob * (1 - prob) * square_[node] / num_classes_, scratch);
        }
    }

    static float probability(uint8_t state, float log_odds) {
        return state == kMember ? 1.0f : state == kNonMember ? 0.0f : 1 / (1 + std::exp(-log_odds));
    }

    // Sets a node's part, and takes the change away from what is left.
    void move_part(int64_t node, const float *wanted, Scratch &scratch) const {
        const int64_t size = num_entries(node);
        const int32_t *__restrict__ indices = model_.indices + model_.indptr[node];
        const float *__restrict__ values = model_.values + model_.indptr[node];
        for (int64_t group = 0; group < num_groups_; ++group) {
            float *part = &scratch.part[node * width_ + group * Lanes];
            const auto value = load_floats<Lanes>(wanted + group * Lanes);
            const auto change = value - load_floats<Lanes>(part);
            store_floats(value, part);
            float *left = scratch.left.data() + group * Lanes;
            for (int64_t k = 0; k < size; ++k) {
                float *row = left + indices[k] * width_;
                store_floats(load_floats<Lanes>(row) - change * values[k], row);
            }
        }
    }

    void set_spread(int64_t node, float spread, Scratch &scratch) const {
        if (!with_spread_) return;
        const float change = spread - scratch.spread[node];
        scratch.spread[node] = spread;
        const int64_t size = num_entries(node);
        const int32_t *__restrict__ indices = model_.indices + model_.indptr[node];
        const float *__restrict__ values = model_.values + model_.indptr[node];
        float *__restrict__ noise = scratch.noise.data();
        for (int64_t k = 0; k < size; ++k) noise[indices[k]] += change * values[k] * values[k];
    }

    // Leaves b̂ in `scratch.estimate` and returns κ; 0 for a node without features.
    float estimate(int64_t node, Scratch &scratch) const {
        const int64_t size = num_entries(node);
        const int32_t *__restrict__ indices = model_.indices + model_.indptr[node];
        const float *__restrict__ values = model_.values + model_.indptr[node];
        const float *__restrict__ noise = scratch.noise.data(), *__restrict__ least = model_.noise;
        float *__restrict__ weight = scratch.weight.data();
        const float own = scratch.spread[node];
        // Not below the noise alone, where rounding has the last word.
        for (int64_t k = 0; k < size; ++k)
            weight[k] = values[k] / std::max(noise[indices[k]] - own * values[k] * values[k], least[indices[k]]);
        float parts[kChains] = {};
        int64_t entry = 0;
        for (; entry + kChains <= size; entry += kChains)
            for (int k = 0; k < kChains; ++k) parts[k] += weight[entry + k] * values[entry + k];
        for (; entry < size; ++entry) parts[0] += weight[entry] * values[entry];
        const float kappa = (parts[0] + parts[1]) + (parts[2] + parts[3]);
        if (!(kappa > 0)) {
            std::fill(scratch.estimate.begin(), scratch.estimate.end(), 0.0f);
            return 0;
        }
        for (int64_t group = 0; group < num_groups_; ++group) {
            const float *left = scratch.left.data() + group * Lanes;
            const auto row = [&](int64_t k) { return load_floats<Lanes>(left + indices[k] * width_); };
            Floats<Lanes> even{}, odd{};
            for (entry = 0; entry + 2 <= size; entry += 2) {
                even += row(entry) * weight[entry];
                odd += row(entry + 1) * weight[entry + 1];
            }
            if (entry < size) even += row(entry) * weight[entry];
            const auto part = load_floats<Lanes>(&scratch.part[node * width_ + group * Lanes]);
            store_floats((even + odd) * (1 / kappa) + part, &scratch.estimate[group * Lanes]);
        }
        return kappa;
    }

    void update(int64_t node, uint8_t state, float temperature, Scratch &scratch) const {
        const float kappa = estimate(node, scratch), variance = model_.variance[node];
        if (!(kappa > 0)) return;
        float *estimated = scratch.estimate.data();
        const float *mean = &mean_[node * width_];
        const float prior_share = 1 / (1 + variance * kappa);
        Floats<Lanes> squares{}, distances{}, lengths{};
        for (int64_t first = 0; first < width_; first += Lanes) {
            const auto value = load_floats<Lanes>(estimated + first);
            const auto off = value - load_floats<Lanes>(mean + first), as_member = value - off * prior_share;
            squares += value * value;
            distances += off * off;
            lengths += as_member * as_member;
            store_floats(as_member, estimated + first);
        }
        const float square = sum_of<Lanes>(squares), distance = sum_of<Lanes>(distances), length = sum_of<Lanes>(lengths);
        const float log_ratio = -0.5f * num_classes_ * std::log1p(variance * kappa) -
                                0.5f * distance / (variance + 1 / kappa) + 0.5f * kappa * square;
        const float prob = probability(state, model_.log_odds[node] + temperature * log_ratio);
        scratch.prob[node] = prob;
        for (float &value : scratch.estimate) value *= prob;
        move_part(node, estimated, scratch);
        set_spread(node, prob * variance * prior_share + prob * (1 - prob) * length / num_classes_, scratch);
    }

    void answer(const uint8_t *state, float *statistic, float *coefficient, Scratch &scratch, Worker &worker) const {
        if (!statistic && !coefficient) return;
        const int64_t num_classes = model_.num_classes;
        for (int64_t node = 0; node < model_.num_nodes; ++node) {
            if (node % kNodesBetweenCheckpoints == 0) worker.checkpoint();
            const bool is_out = state[node] == kNonMember;
            if (statistic || !is_out) estimate(node, scratch);
            if (statistic) {
                float product = 0;
                for (int64_t c = 0; c < num_classes; ++c) product += scratch.estimate[c] * mean_[node * width_ + c];
                statistic[node] = square_[node] > 0 ? product / std::sqrt(square_[node]) : 0.0f;
            }
            for (int64_t c = 0; c < num_classes && coefficient; ++c)
                coefficient[node * num_classes + c] = is_out ? 0.0f : scratch.estimate[c];
        }
    }

    const RowModel model_;
    const float *const temperatures_;
    const int64_t num_sweeps_;
    const bool with_spread_;
    const int64_t num_groups_, width_;
    const float num_classes_;
    int64_t most_entries_ = 0;
    std::vector<float> mean_;    // node, padded classes
    std::vector<float> square_;  // node: |mean|²
};

template <int Lanes>
void infer(const RowModel &model, const RowTable &table, const float *temperatures, int64_t num_sweeps, bool with_spread,
           int num_threads, const Poll &poll, const RowAnswers &answers) {
    using Inference = RowInference<Lanes>;
    const Inference inference(model, temperatures, num_sweeps, with_spread);
    std::vector<typename Inference::Scratch> scratch(num_workers(table.num_models, num_threads));
    run_tasks(table.num_models, num_threads, poll, [&](int64_t number, Worker &worker) {
        inference.run(table, number, answers, scratch[worker.number()], worker);
    });
}

}  // namespace

void infer_members(const RowModel &model, const RowTable &table, const float *temperatures, int64_t num_sweeps,
                   bool with_spread, int num_threads, const Poll &poll, const RowAnswers &answers) {
    const auto run = model.num_classes <= 4 ? infer<4> : model.num_classes <= 8 ? infer<8> : infer<16>;
    run(model, table, temperatures, num_sweeps, with_spread, num_threads, poll, answers);
}

}  // namespace bmpaudit
