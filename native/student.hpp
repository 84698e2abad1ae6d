// The Student attack: per node and hypothesis a normal distribution of several features with a normal-inverse-Wishart
// prior, whose predictive distribution is a multivariate Student t.
#pragma once

#include <cstdint>

#include "threads.hpp"

namespace bmpaudit {

constexpr int kMaxStudentFeatures = 16;

// Features of models about nodes: feature, then model, then node.
struct FeatureTable {
    const float *values;
    int64_t num_models;
    int64_t num_nodes;

    const float *row(int feature, int64_t model) const { return values + (feature * num_models + model) * num_nodes; }
};

// Sets of prior parameters. Side 0 is "non-member", side 1 "member", V the number of features, n the number of models
// fitted on. Weights are positive, degrees of freedom above V + 1, scales positive definite (lower triangles are read).
struct StudentPriors {
    int num_features;
    int64_t num_counts;         // n + 1
    const double *level;        // set, side, V: mean over nodes of the side's mean
    const double *shift;        // set, V: mean difference between the sides, member minus non-member
    const double *weights;      // set, 2: of the level and of the shift, as numbers of models
    const double *dof;          // set, side: degrees of freedom of the inverse Wishart distribution
    const double *other_share;  // set, side: share of the other side's covariance in the scale, in [0, 1]
    const double *scale;        // set, side, V, V: mean covariance within a node
    const double *log_gamma;    // set, side, count: log Γ((dof+count+1)/2) - log Γ((dof+count+1-V)/2)
};

// Fills `scores` (model, node) with log-likelihood ratios. `member` (model, node) is that of the fitting models; with
// `challenged` null, each of them is challenged with a fit on all others. `set_of` names the prior of each challenged
// model. The same on any number of threads.
//
// A side with n models, mean x̄ and scatter S, the other side with n', x̄', S', of a node:
//   prior     mean m = (a·level' + n'·x̄')/(a + n') ± shift, weight k = 1/(1/b + 1/(a + n')) with a, b the weights,
//             scale Ψ = (dof - V - 1)·((1-s)·scale + s·R(2·scale' + S')R/(2 + n')), s the share of the other side and
//             R² = diag(scale)/diag(scale')
//   posterior weight k + n, mean x̄ - k/(k+n)·(x̄ - m), dof + n, Ψ + S + k·n/(k+n)·(x̄ - m)(x̄ - m)ᵀ
void student_scores(const FeatureTable &fitting, const uint8_t *member, const FeatureTable *challenged,
                    const int64_t *set_of, const StudentPriors &priors, int num_threads, const Poll &poll,
                    double *scores);

}  // namespace bmpaudit
