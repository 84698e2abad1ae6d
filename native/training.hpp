// Training of networks on samples: epochs, mini-batches, edges that are left out, and when to stop.
#pragma once

#include <cstdint>
#include <vector>

#include "dropped_edges.hpp"
#include "neighbour_batches.hpp"
#include "network.hpp"
#include "streams.hpp"

namespace bmpaudit {

// Trains one network, on one sample after another; used by one thread at a time.
class Training {
  public:
    Training(Network &network, const GraphFeatures &features, const ModelSettings &model, const TrainingSettings &settings);

    // From the network's parameters as they are. `labels` are those of all nodes.
    // Whether there was enough to train on: a sample that is split, or a mini-batch that is normalised, needs two nodes.
    bool run(const TrainingGraph &sample, const int32_t *labels, TrainingStreams &streams, Worker &worker);

  private:
    bool is_batched() const { return settings_.batch_size > 0; }
    bool validates() const { return settings_.validation_share > 0; }
    bool drops_edges() const { return settings_.drop_edge > 0; }
    void split(const TrainingGraph &sample, RandomBits &random);
    // Whether all of it was enough to train on.
    bool run_epoch(const TrainingGraph &graph, int epoch, TrainingStreams &streams, Worker &worker);
    // Whether to go on after an epoch; keeps the parameters if none before were better.
    bool is_worth_another(const TrainingGraph &sample, Worker &worker);

    Network &network_;
    const bool gathers_features_;  // along the edges
    const bool normalises_batches_;
    const TrainingSettings settings_;
    DroppedEdges dropped_;
    NeighbourBatches batches_;
    SampleFeatures validation_features_;
    std::vector<int32_t> labels_;       // of the sample
    std::vector<int32_t> learnt_;       // the same, -1 for nodes that are kept for validation
    std::vector<int32_t> validation_;   // nodes kept for it
    double lowest_loss_ = 0;
    int epochs_without_ = 0;  // a lower loss
    int64_t num_steps_ = 0;
};

}  // namespace bmpaudit
