// What the prior of the Student attack is learnt from: sums over models, and likelihoods of its covariance.
#pragma once

#include <cstdint>

#include "student.hpp"
#include "threads.hpp"

namespace bmpaudit {

// Fills `sums` (fold, side, node, V + 1, V + 1), zeros before, with sums over the models of a fold of (1, x)(1, x)ᵀ, where
// x are the features less `center` (V, node). `member` is (model, node), `fold_of` names the fold of each model.
void student_sums(const FeatureTable &features, int num_features, const uint8_t *member, const double *center,
                  const int64_t *fold_of, int num_threads, const Poll &poll, double *sums);

// Scatter matrices of nodes, and what they are compared with. Problem p has the nodes from start[p] to start[p + 1] - 1.
struct CovarianceProblems {
    int num_features;
    int64_t num_problems;
    const int64_t *start;
    const double *freedom;  // node: degrees of freedom n of the scatter
    const double *scatter;  // node, V, V: S
    const double *own;      // problem, V, V: mean covariance
    const double *other;    // node, V, V: covariance of the node's other side
};

// Fills `likelihood` (problem, share, candidate) with the log-likelihood, up to what does not depend on the matrices, of
// scatters S whose covariance is inverse Wishart with mean C = (1-s)·own + s·other and V + 1 + f degrees of freedom:
// the sum over nodes of -(V+1+f+n)/2·(log|f·C + S| - log|C|) - n/2·log|C|, for all shares s and candidates f.
void covariance_likelihood(const CovarianceProblems &problems, const double *shares, int64_t num_shares,
                           const double *candidates, int64_t num_candidates, int num_threads, const Poll &poll,
                           double *likelihood);

}  // namespace bmpaudit
