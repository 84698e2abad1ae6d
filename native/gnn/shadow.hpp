// Training of networks on samples: epochs, mini-batches, edges that are left out, and when to stop.
#pragma once

#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "core/threads.hpp"
#include "gnn/graph.hpp"
#include "gnn/network.hpp"

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

// Shadow models: many small networks, each trained on its own sample and asked about every node of the whole graph.

// How a trained model is asked: the query says which edges it is shown, and the release adds normal noise to the
// parameters of its last layer. Views of one model share one draw of noise, each scaled by its own standard deviation.
struct View {
    int64_t query;     // place in ShadowBatch::queries
    double noise_std;  // 0 for none
};

enum class ModelState : uint8_t { untrained = 0, trained = 1, failed = 2 };

// Where results go; the arrays belong to the caller.
struct ShadowResults {
    float *statistics;         // views x models x nodes
    float *logits;             // views x models x nodes x classes, or null
    uint8_t *state;            // models
    float *train_accuracy;     // models; asked with all edges and without noise, as the next
    float *held_out_accuracy;  // models
    float *view_train_accuracy;     // views x models: of each view's own answers, as the next
    float *view_held_out_accuracy;  // views x models
    uint8_t *right;  // views x models x nodes: whether the likeliest class is the true one, the first of equals; or null
    // models x parameters, or null: a model whose first number is NaN is trained, and its parameters are kept here; any
    // other has these parameters, and is not trained.
    float *weights;
    float *embeddings;  // queries x models x nodes x units of the last hidden layer: its activations; or null
};

struct ShadowBatch {
    const uint8_t *member;   // models x nodes
    const int64_t *indices;  // number of each model in the plan, models
    int64_t num_models;
    uint64_t seed;
    std::vector<Adjacency> queries;
    std::vector<View> views;
    std::vector<Adjacency> graphs;  // of which each model's sample induces a part to train on; the whole graph if empty
};

class ShadowEngine {
  public:
    ShadowEngine(Adjacency graph, FeatureView features, const int32_t *labels, int num_classes, ModelSettings model,
                 TrainingSettings training);
    ShadowEngine(const ShadowEngine &) = delete;
    ShadowEngine &operator=(const ShadowEngine &) = delete;

    // Trains and scores on several threads. The poll is told the number of models done; when it asks to stop, models not
    // finished stay untrained.
    void run(const ShadowBatch &batch, const ShadowResults &results, int num_threads, const Poll &poll) const;

    int32_t num_nodes() const { return graph_.num_nodes(); }
    int num_classes() const { return num_classes_; }
    int64_t num_parameters() const;
    // Units of the last hidden layer; 0 if there is none.
    int num_hidden() const;
    std::vector<float> initial_parameters(uint64_t seed, uint64_t index) const;
    // For checks against other implementations, from given parameters on one sample: the gradient with dropout 0, and
    // what training makes of them with the streams of (seed, index). Throws std::invalid_argument for too small a sample.
    std::vector<float> gradient(const float *parameters, const uint8_t *member, const Poll &poll) const;
    std::vector<float> trained_parameters(const float *parameters, const uint8_t *member, uint64_t seed, uint64_t index,
                                          const Poll &poll) const;
    // Logits of every node, nodes x classes, of a model with given parameters that is shown the edges of a query.
    std::vector<float> logits(const float *parameters, const Adjacency &query, const Poll &poll) const;

  private:
    class Trainer;

    // Parameters, or what else `save` takes of it, of a network after `use` on one sample.
    template <typename Use, typename Save>
    std::vector<float> with_network(const float *parameters, const uint8_t *member, const Poll &poll, Use use, Save save) const;

    Adjacency graph_;
    GraphFeatures features_;
    const int32_t *labels_;
    int num_classes_;
    ModelSettings model_;
    TrainingSettings training_;
    ShownGraph whole_;
};

}  // namespace bmpaudit
