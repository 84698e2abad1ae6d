// Algorithms 1, 2 and 4: every model is challenged about every node, and the errors are counted.
#pragma once

#include <cstdint>

#include "core/threads.hpp"

namespace bmpaudit {

// The shadow models: one row a model, one column a node.
struct ModelTable {
    const float *statistics;
    const uint8_t *member;
    int64_t num_models;
    int64_t num_nodes;
};

// How a decision is made; a score above `threshold` means "member".
struct DecisionRule {
    bool pooled_variance;
    double min_sigma;
    double threshold;
};

// What is known of each node. Where a node is not fittable, every decision is "non-member" and every score -inf; else each
// side must have at least one model, in leave-one-out at least two: std::invalid_argument if it has not.
struct NodePriors {
    const double *log_prior_odds;
    const uint8_t *is_fittable;
};

// Rows of num_nodes zeros, to be filled.
struct ErrorTotals {
    int64_t *weak_false_positives;
    int64_t *weak_false_negatives;
    int64_t *strong_false_positives;
    int64_t *strong_false_negatives;
};

// Algorithm 1: each model is challenged with hypotheses fitted on all other models. O(models · nodes), nothing copied.
// `scores` is null, or takes the log-likelihood ratio of each challenge. The same on any number of threads.
void challenge_left_out(const ModelTable &models, const NodePriors &priors, const DecisionRule &rule, int num_threads,
                        const Poll &poll, const ErrorTotals &errors, double *scores);

// Algorithm 4: the hypotheses are fitted on other models than the challenged ones.
void challenge_others(const ModelTable &fitting, const ModelTable &challenged, const NodePriors &priors,
                      const DecisionRule &rule, int num_threads, const Poll &poll, const ErrorTotals &errors,
                      double *scores);

}  // namespace bmpaudit
