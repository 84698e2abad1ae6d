// Networks of layers of one kind: forward, backward and training, all float32, for graphs that fit into a core's cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "features.hpp"
#include "graph_view.hpp"
#include "lanes.hpp"
#include "layer_kinds.hpp"
#include "optimizer.hpp"
#include "random.hpp"
#include "threads.hpp"

namespace bmpaudit {

enum class Activation { relu, elu };

// An activation by its name; std::invalid_argument if there is none.
Activation activation_of(const std::string &name);

struct ModelSettings {
    const LayerKind *kind;
    int hidden;  // units of a hidden layer; with several heads, of one head
    int heads;   // of the hidden layers
    int layers;
    Activation activation;
    double dropout;
    bool drops_input;
    bool drops_attention;
    bool drops_hidden;
};

LayerShape first_layer_shape(int num_features, int num_classes, const ModelSettings &model);

// The graph that a trained model is shown, and what stands in the place of its last layer, one after another.
struct Query {
    const TrainingGraph *graph;
    std::vector<const Layer *> last_layers;
};

// One model and the buffers to train it; used by one thread at a time, for one model after another.
class Network {
  public:
    Network(const GraphFeatures &features, int num_classes, const ModelSettings &model, const TrainingSettings &training);

    // Parameters layer by layer, each in the order of visit_numbers.
    int64_t num_parameters() const;
    void load(const float *flat);
    void save(float *flat) const;
    void save_gradient(float *flat) const;
    void initialise(RandomBits &random);  // Glorot weights, zero biases

    void train(const TrainingGraph &graph, const int32_t *labels, RandomBits &random, Worker &worker);
    // For a model whose dropout is 0.
    void gradient_without_dropout(const TrainingGraph &graph, const int32_t *labels, Worker &worker);
    bool is_finite() const;

    // Logits of every node without dropout, for each query: calls emit(query, which of its last layers, logits). All graphs
    // are of all nodes, in order.
    template <typename Emit> void score(const std::vector<Query> &queries, Worker &worker, Emit emit) {
        const size_t depth = layers_.size();
        if (depth > 1) features_.times(layers_[0].weight.value, scoring_[0].linear);
        for (size_t q = 0; q < queries.size(); ++q) {
            const TrainingGraph &graph = *queries[q].graph;
            for (size_t l = 0; l + 1 < depth; ++l) {
                worker.checkpoint();
                if (l > 0) input_times_weight(scoring_[l].input, layers_[l], scoring_[l].linear);
                propagate(graph, layers_[l], scoring_[l], nullptr);
                activate(scoring_[l].output, scoring_[l + 1], nullptr);
            }
            Pass &pass = scoring_.back();
            for (size_t which = 0; which < queries[q].last_layers.size(); ++which) {
                worker.checkpoint();
                const Layer &last = *queries[q].last_layers[which];
                if (depth > 1) input_times_weight(pass.input, last, pass.linear);
                else features_.times(last.weight.value, pass.linear);
                propagate(graph, last, pass, nullptr);
                emit(q, which, pass.output);
            }
        }
    }
    const Layer &last_layer() const { return layers_.back(); }
    // As many standard normal numbers as the last layer has parameters.
    std::vector<double> draw_noise(RandomBits &random) const;
    Layer noisy_last_layer(const std::vector<double> &noise, double noise_std) const;
    int num_classes() const { return num_classes_; }

  private:
    void begin(const TrainingGraph &graph, const int32_t *labels);
    void forward(const TrainingGraph &graph, RandomBits *dropout, Worker &worker);
    void backward(const TrainingGraph &graph, int epoch, Worker &worker);  // epoch 0: gradients only, no step
    // The gradients of the weight and, in output_gradient_, of the output of the layer before.
    void hidden_weight_backward(Layer &layer, const Pass &pass);
    void first_weight_backward(const Matrix &gradient, bool takes_step);
    void input_times_weight(const Matrix &input, const Layer &layer, Matrix &result) const;
    void propagate(const TrainingGraph &graph, const Layer &layer, Pass &pass, RandomBits *dropout) const;
    // From the output of a layer, which it uses up, to the input of the next.
    void activate(Matrix &output, Pass &next, RandomBits *dropout) const;
    bool drops(bool place) const { return place && model_.dropout > 0; }

    const GraphFeatures &features_;
    int num_classes_;
    ModelSettings model_;
    int epochs_;
    Optimizer optimizer_;
    std::vector<Layer> layers_;
    std::vector<Pass> passes_, scoring_;
    Matrix output_gradient_;
    Matrix transposed_;  // the gradient of a hidden weight, then the weight itself, units x inputs
    SampleFeatures sample_;
    std::vector<int32_t> labels_;  // of the sample
};

}  // namespace bmpaudit
