// What many scores come to: sorted, compared between members and non-members, counted by thresholds. All functions give
// the same on any number of threads. A table has one row per model and one column per node; no score is NaN.
#pragma once

#include <cstdint>

#include "core/samplers.hpp"
#include "core/threads.hpp"

namespace bmpaudit {

template <typename T> struct ScoreTable {
    const T *scores;
    const uint8_t *member;
    int64_t num_models, num_nodes;

    const T *row(int64_t model) const { return scores + model * num_nodes; }
    const uint8_t *members(int64_t model) const { return member + model * num_nodes; }
};

// Sorts numbers in place, ascending; -0 counts as 0.
template <typename T> void sort_numbers(T *values, int64_t size);

// Copies the scores of non-members to `out` and those of members to `in`, and sorts both.
template <typename T>
void sort_by_side(const T *scores, const uint8_t *member, int64_t size, int num_threads, const Poll &poll, T *out, T *in);

// The number of pairs (out, in) with out < in, plus that with out <= in; both arrays ascending.
template <typename T> int64_t pairs_in_order(const T *out, int64_t num_out, const T *in, int64_t num_in);

// For each model, the share of pairs (non-member, member) in order, ties counting half, and the share of members above
// the highest threshold that at most `rate` of the non-members exceed; NaN where one side is empty.
template <typename T>
void roc_within_models(const ScoreTable<T> &table, double rate, int num_threads, const Poll &poll, double *auc, double *tpr);

// Adds to `counts` and `members` (model, place) how many nodes, and how many of them members, have reached just the first
// `place` of the thresholds, which ascend; unless null, to `probability` the sum of 1/(1 + e^-score).
template <typename T>
void count_by_threshold(const ScoreTable<T> &table, const T *thresholds, int64_t num_thresholds, int num_threads,
                        const Poll &poll, int64_t *counts, int64_t *members, double *probability);

// Adds to `named` (4, node): members and non-members with a score of at least `high`, then with one of at most `low`.
template <typename T>
void count_named_nodes(const ScoreTable<T> &table, T high, T low, int num_threads, const Poll &poll, int64_t *named);

// Fills `errors` (2, node) with the non-members whose score plus log prior odds is above the threshold, and with the members
// whose is not.
template <typename T>
void count_decisions(const ScoreTable<T> &table, const T *log_prior_odds, T threshold, int num_threads, const Poll &poll,
                     int64_t *errors);

// Replaces the numbers of each row by a piecewise linear function of them, constant beyond the first and last of the
// `num_points` points: `to` has one row of values for each function, and `function_of` names that of each row.
void interpolate_rows(float *values, int64_t num_rows, int64_t num_columns, const double *from, const double *to,
                      int64_t num_points, const int64_t *function_of, int num_threads, const Poll &poll);

// For each model the first of the asked nodes with the highest and with the lowest posterior log-odds (score plus
// log prior odds), and the same by score alone: `node` and `value` are (4, model). -inf where nothing is higher.
void find_surest(const ScoreTable<double> &table, const double *log_prior_odds, const uint8_t *is_asked, int num_threads,
                 const Poll &poll, int64_t *node, double *value);

// Means over the neighbours of each node.

// Fills `means` (row, node) with the mean of `values` (row, node) over the neighbours of the node; 0 without neighbours.
// Sums are in double precision, in the order of the neighbours. The same on any number of threads.
void neighbour_means(const Adjacency &graph, const float *values, int64_t num_rows, int num_threads, const Poll &poll,
                     float *means);

}  // namespace bmpaudit
