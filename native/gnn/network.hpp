// Networks of layers: forward, backward and steps of an optimiser, all float32, for graphs that fit into a core's cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/lanes.hpp"
#include "core/random.hpp"
#include "core/threads.hpp"
#include "gnn/features.hpp"
#include "gnn/graph.hpp"
#include "gnn/layer.hpp"
#include "gnn/loss.hpp"

namespace bmpaudit {

enum class Activation { relu, elu };

// An activation by its name; std::invalid_argument if there is none.
Activation activation_of(const std::string &name);

// The law of initial values: Glorot and Bengio 2010 with biases of 0, or uniform within ±1/√inputs, as of
// torch.nn.Linear.
enum class Initialisation { glorot, fan_in };

// A law by its name; std::invalid_argument if there is none.
Initialisation initialisation_of(const std::string &name);

struct LayerSettings {
    std::shared_ptr<const LayerKind> kind;
    int channels;  // units of a head
    int heads;
    Initialisation initialisation;
    bool drops_input;
    bool drops_attention;
    Norm norm;  // of the output; none in the last layer
    int residual;  // 1: adds its own input to its activated output; 2: that of the layer before; 0: nothing

    LayerShape shape(int inputs) const {
        return LayerShape(inputs, channels, heads, kind->input_parts().count(), kind->wide_parts());
    }
};

struct ModelSettings {
    std::vector<LayerSettings> layers;  // the last has a unit for each class
    Activation activation;              // after every layer but the last
    double dropout;

    EdgeMatrices edge_matrices() const;
    // What the features of a sample are multiplied as.
    FeatureLayout feature_layout(int num_features) const;
};

// A graph that trained models are shown, of all nodes in order.
struct ShownGraph {
    TrainingGraph graph;
    std::unique_ptr<SampleFeatures> gathered;  // for models whose first layer gathers features along the edges

    void show(const Adjacency &edges, const GraphFeatures &features, const ModelSettings &model);
};

// What a trained model is shown, and what stands in the place of its last layer, one after another.
struct Query {
    const ShownGraph *shown;
    std::vector<const Layer *> last_layers;
};

// Which step of the optimiser, in which epoch; both count from 1.
struct StepNumber {
    int64_t step;
    int epoch;
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

    // Takes in the features of a graph, for one step or many on it, or on one with the same nodes.
    void begin(const TrainingGraph &graph, Uses uses) { sample_.begin(graph, uses); }
    // `labels` hold one for each node of the graph, -1 for nodes that are not in the loss.
    void step(const TrainingGraph &graph, const std::vector<int32_t> &labels, const StepNumber &number, RandomBits &random,
              Worker &worker);
    // For a model whose dropout is 0.
    void gradient_without_dropout(const TrainingGraph &graph, const std::vector<int32_t> &labels, Worker &worker);
    // Logits of a sample's nodes without dropout.
    const Matrix &evaluate(const TrainingGraph &sample, const SampleFeatures &features, Worker &worker);
    // Puts the parameters aside, and takes them back.
    void keep();
    void restore();
    bool is_finite() const;

    // Logits of every node without dropout, for each query: calls emit(query, which of its last layers, logits).
    template <typename Emit> void score(const std::vector<Query> &queries, Worker &worker, Emit emit) {
        const size_t last = layers_.size() - 1;
        for (size_t q = 0; q < queries.size(); ++q) {
            const ShownGraph &shown = *queries[q].shown;
            for (size_t l = 0; l < last; ++l) {
                worker.checkpoint();
                // Features that are not gathered give every query the same product.
                if (l > 0 || q == 0 || shown.gathered != nullptr) multiply_shown(shown, l, layers_[l]);
                propagate_shown(shown.graph, l);
            }
            for (size_t which = 0; which < queries[q].last_layers.size(); ++which) {
                worker.checkpoint();
                const Layer &layer = *queries[q].last_layers[which];
                multiply_shown(shown, last, layer);
                propagate(shown.graph, last, layer, scoring_[last], nullptr);
                emit(q, which, scoring_[last].output);
            }
        }
    }
    const Layer &last_layer() const { return layers_.back(); }
    // Activations of the last hidden layer, of a network that has one, while `score` emits.
    const Matrix &embeddings() const { return scoring_.back().input; }
    // As many standard normal numbers as the last layer has parameters.
    std::vector<double> draw_noise(RandomBits &random) const;
    Layer noisy_last_layer(const std::vector<double> &noise, double noise_std) const;
    int num_classes() const { return num_classes_; }

  private:
    // Whether the last layer and the loss are learnt in one pass, by `head_`: where the layer is linear, beyond the first,
    // and has no fewer lanes than its input if that goes along the edges instead of the logits.
    bool has_head() const;
    bool goes_along_edges(size_t l) const { return kind(l).edge_matrices().normalised; }
    // Up to the output of the last layer, or to the input of a head.
    void forward(const TrainingGraph &graph, RandomBits *dropout, Worker &worker);
    void backward(const TrainingGraph &graph, const std::vector<int32_t> &labels, bool takes_step, Worker &worker);
    // From the loss to the gradients of the last layer and, in output_gradient_, of the output of the layer before.
    void head_backward(const TrainingGraph &graph, const CrossEntropy &loss);
    // The gradients of the weight and, in output_gradient_, of the output of the layer before.
    void hidden_weight_backward(const TrainingGraph &graph, size_t l);
    void first_weight_backward(const Matrix &gradient, bool takes_step);
    // pass.linear of a hidden layer.
    void multiply_input(const TrainingGraph &graph, size_t l, const Layer &layer, Pass &pass) const;
    // The same of any layer, in scoring_.
    void multiply_shown(const ShownGraph &shown, size_t l, const Layer &layer);
    // From that product to the input of the next layer, in scoring_.
    void propagate_shown(const TrainingGraph &graph, size_t l);
    const Matrix &multiplied(size_t l, const Pass &pass) const { return gathers(l) ? pass.gathered : pass.input; }
    void propagate(const TrainingGraph &graph, size_t l, const Layer &layer, Pass &pass, RandomBits *dropout) const;
    // The input of layer l from the output of the layer before, which it uses up.
    void activate(size_t l, std::vector<Pass> &passes, RandomBits *dropout) const;
    // From the gradient of the input of layer l, in output_gradient_, to that of the output of the layer before.
    void backward_through_input(size_t l);
    // Whether that is more than a product with slope_at_input.
    bool has_residual_input(size_t l) const { return residual_from(l - 1) > 0 || passes_[l].has_residual_gradient; }
    Lanes slope_at_input(const Pass &pass, int64_t i, int b) const;
    const LayerKind &kind(size_t l) const { return *model_.layers[l].kind; }
    // The layer to whose input the residual connection of layer l goes back, or 0.
    size_t residual_from(size_t l) const { return model_.layers[l].residual == 0 ? 0 : l + 1 - model_.layers[l].residual; }
    bool has_norm(size_t l) const { return model_.layers[l].norm != Norm::none; }
    bool gathers(size_t l) const { return kind(l).input_parts().has_largest; }
    bool drops_input(size_t l) const { return model_.layers[l].drops_input && model_.dropout > 0; }
    bool drops_attention(size_t l) const { return model_.layers[l].drops_attention && model_.dropout > 0; }

    const GraphFeatures &features_;
    int num_classes_;
    ModelSettings model_;
    double label_smoothing_;
    Optimizer optimizer_;
    std::vector<Layer> layers_;
    std::vector<Pass> passes_, scoring_;
    Matrix output_gradient_, gathered_gradient_;
    Matrix transposed_;  // the gradient of a hidden weight, then the weight itself, units x inputs
    Head head_;
    SampleFeatures sample_;
    std::vector<Matrix> kept_;  // parameters put aside
};

}  // namespace bmpaudit
