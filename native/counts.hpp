// What estimators are given: errors of the attack on each node.
#pragma once

#include <cstdint>

namespace bmpaudit {

// A node's counts: false positives of num_out trials, false negatives of num_in trials.
struct NodeCounts {
    double num_out, num_in, false_positives, false_negatives;
};

struct CountsTable {
    const NodeCounts *nodes;
    const double *log_prior_odds;
    int64_t num_nodes;
};

}  // namespace bmpaudit
