// Is any node's answer linked to its membership? Rank sums of every node, as they are and after memberships were shuffled
// between models. All sums are of whole numbers, so that equal statistics are equal; the same on any number of threads.
#pragma once

#include <cstdint>

#include "core/threads.hpp"

namespace bmpaudit {

constexpr int64_t kMostRankedModels = 90'000;  // whose rank sums are 32-bit numbers

// Statistics (query, model, node) and memberships (model, node). Arrangement a gives model j the sample of model
// `order[a, j]`; the first one is the truth.
struct Arrangements {
    const float *statistics;
    const uint8_t *member;
    const int64_t *order;
    int64_t num_queries, num_models, num_nodes, num_arrangements;
};

// What nodes come to together, for each arrangement: the largest statistic, and the sums of z and of its square.
struct Totals {
    double *largest, *sum, *squares;
};

// A node's statistic is the largest over queries of |z|, where z is the rank sum of its members, centred and in units of
// its standard deviation over all arrangements; 0 where all models are alike. Fills `z` (query, node) with those of the
// truth, and adds to `num_reached` (node) the later arrangements whose statistic is at least that of the truth.
void test_nodes(const Arrangements &models, int num_threads, const Poll &poll, double *z, int64_t *num_reached,
                const Totals &totals);

}  // namespace bmpaudit
