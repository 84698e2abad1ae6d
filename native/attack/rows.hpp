// Who was in the samples of models, by mean-field inference from their class rows: what each model says of every single
// feature.
#pragma once

#include <cstdint>

#include "core/threads.hpp"

namespace bmpaudit {

// Row f of a model is Y_f = Σ_i x_if·M_i·b_i + noise, over C classes. M_i says whether node i is a member, with prior
// log-odds; b_i ~ N(mean_i, variance_i·I).
struct RowModel {
    int64_t num_nodes, num_features, num_classes;
    const int64_t *indptr;   // node + 1
    const int32_t *indices;  // entry: feature
    const float *values;     // entry: x
    const float *noise;      // feature: variance, positive
    const float *mean;       // node, class
    const float *variance;   // node, positive
    const float *log_odds;   // node
};

enum NodeState : uint8_t { kNonMember = 0, kMember = 1, kUnknown = 2 };

// Models, and what is known of their members beforehand.
struct RowTable {
    int64_t num_models;
    const float *rows;     // model, feature, class
    const uint8_t *state;  // model, node: a NodeState
};

// What comes out, unless null.
struct RowAnswers {
    float *statistic;    // model, node: b̂·mean/|mean|
    float *coefficient;  // model, node, class: where members' parts begin before, b̂ after; 0 for known non-members
    float *residual;     // model, feature: mean square over classes of what is left of the row
};

// One sweep over the nodes, in their order, for each temperature T. With node i's own part taken out of what is left of the
// rows, R, and out of their variance v = noise + Σ_i x²·spread_i:
//   κ = Σ_f x²/v, b̂ = Σ_f x·R/v / κ
//   L = -C/2·log(1 + variance·κ) - |b̂ - mean|²/(2(variance + 1/κ)) + κ|b̂|²/2
//   p = σ(log-odds + T·L), or 0 or 1 if it is known
//   m = (mean/variance + κ·b̂)/(1/variance + κ), the node's part is p·m
//   spread = p/(1/variance + κ) + p(1-p)|m|²/C, or 0 unless `with_spread`
// Sweeps in one direction converge faster than sweeps in turns. A node without features has b̂ = 0. A node is passed over
// once p is negligible in two sweeps. The same on any number of threads.
void infer_members(const RowModel &model, const RowTable &table, const float *temperatures, int64_t num_sweeps,
                   bool with_spread, int num_threads, const Poll &poll, const RowAnswers &answers);

}  // namespace bmpaudit
