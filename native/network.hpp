// GCN, GAT and MLP: forward, backward and optimiser, all float32, for graphs that fit into a core's cache.
#pragma once

#include <cstdint>
#include <vector>

#include "graph_view.hpp"
#include "lanes.hpp"
#include "random.hpp"
#include "threads.hpp"

namespace bmpaudit {

enum class Architecture { mlp, gcn, gat };
enum class Activation { relu, elu };
enum class Optimizer { adam, sgd };

struct ModelSettings {
    Architecture architecture;
    int hidden;  // units of a hidden layer; for gat, of one head
    int heads;   // of the hidden layers; 1 but for gat
    int layers;
    Activation activation;
    double dropout;
    bool drops_input;
    bool drops_attention;
    bool drops_hidden;
};

struct TrainingSettings {
    int epochs;
    double learning_rate;
    double weight_decay;
    Optimizer optimizer;
};

// Where the units of a layer sit in its lanes. Unit (head, channel) is at channel · stride + head: heads lie side by
// side, padded to a power of two (or a multiple of 16), so that one row of attention weights, repeated, fits all channels.
struct LayerShape {
    int inputs;   // rows of the weight matrix: features, or lanes of the layer before
    int channels;
    int heads;
    int head_stride;
    int blocks;       // of the units
    int tile_blocks;  // of one value a head, repeated

    LayerShape(int inputs, int channels, int heads);
    int units() const { return channels * heads; }
    int lane(int unit) const { return (unit % channels) * head_stride + unit / channels; }
};

// A parameter with its gradient and the optimiser's memory of it.
struct Parameter {
    Matrix value, gradient, first_moment, second_moment;
    void reshape(int64_t rows, int blocks);
};

struct Layer {
    LayerShape shape;
    int true_inputs;             // without padding
    std::vector<int> input_row;  // row of the weight matrix of each true input
    Parameter weight;            // inputs x units
    Parameter bias;              // 1 x units
    Parameter attention_source, attention_target;  // 1 x units, gat only

    Layer(LayerShape shape, int true_inputs, std::vector<int> input_row, bool has_attention);
};

// One model and the buffers to train it; used by one thread at a time, for one model after another.
class Network {
  public:
    Network(const FeatureView &features, int num_classes, const ModelSettings &model, const TrainingSettings &training);

    // Parameters in PyTorch Geometric's order and shapes, layer by layer: weight (units x inputs), attention of source
    // and target (heads x channels; gat only), bias (units).
    int64_t num_parameters() const;
    void load(const float *flat);
    void save(float *flat) const;
    void save_gradient(float *flat) const;
    void initialise(RandomBits &random);  // Glorot weights, zero biases

    void train(const TrainingGraph &graph, const int32_t *labels, RandomBits &random, Worker &worker);
    // For a model whose dropout is 0.
    void gradient_without_dropout(const TrainingGraph &graph, const int32_t *labels, Worker &worker);
    bool is_finite() const;

    // Logits of every node of a graph, without dropout: for each edge setting (false: no edge but the self-loops) and
    // each of `lasts` in the place of the last layer, calls emit(edge setting, which of lasts, logits).
    template <typename Emit>
    void score(const TrainingGraph &whole, const std::vector<bool> &edge_settings, const std::vector<const Layer *> &lasts,
               Worker &worker, Emit emit) {
        const size_t depth = layers_.size();
        scoring_.resize(depth);
        if (depth > 1) features_times_weight(whole, layers_[0], scoring_[0].linear);
        for (const bool use_edges : edge_settings) {
            for (size_t l = 0; l + 1 < depth; ++l) {
                worker.checkpoint();
                if (l > 0) input_times_weight(scoring_[l].input, layers_[l], scoring_[l].linear);
                propagate(whole, layers_[l], scoring_[l], use_edges, nullptr);
                activate(scoring_[l].output, scoring_[l + 1], nullptr);
            }
            Pass &pass = scoring_.back();
            for (size_t which = 0; which < lasts.size(); ++which) {
                worker.checkpoint();
                if (depth > 1) input_times_weight(pass.input, *lasts[which], pass.linear);
                else features_times_weight(whole, *lasts[which], pass.linear);
                propagate(whole, *lasts[which], pass, use_edges, nullptr);
                emit(use_edges, which, pass.output);
            }
        }
    }
    const Layer &last_layer() const { return layers_.back(); }
    Layer noisy_last_layer(RandomBits &random, double noise_std) const;
    int num_classes() const { return num_classes_; }

  private:
    // What a layer keeps of its forward pass for the way back.
    struct Pass {
        Matrix input;        // after dropout; layers beyond the first
        Matrix input_slope;  // derivative of activation and dropout at the input
        Matrix linear;       // input times weight
        Matrix output;
        Matrix source_score, target_score;        // gat: one value a head
        Matrix attention, attention_keep;         // gat, for each edge: the weight, and 0 or 1/(1-p) of its dropout
        Matrix linear_gradient;
        Matrix source_gradient, target_gradient;  // gat
    };

    void begin(const TrainingGraph &graph);
    void forward(const TrainingGraph &graph, RandomBits *dropout, Worker &worker);
    void output_gradient(const TrainingGraph &graph, const int32_t *labels);
    void backward(const TrainingGraph &graph, int epoch, Worker &worker);  // epoch 0: gradients only, no step
    void first_weight_backward(const TrainingGraph &graph, const Matrix &gradient, bool takes_step);
    void drop_inputs(const TrainingGraph &graph, RandomBits &random);
    void sample_times_weight(const TrainingGraph &graph, Matrix &result) const;
    void features_times_weight(const TrainingGraph &whole, const Layer &layer, Matrix &result) const;
    const float *sample_row(const TrainingGraph &graph, int64_t i) const {
        return drops(model_.drops_input) ? dense_rows_.data() + i * features_.num_features
                                         : features_.dense_row(graph.nodes[i]);
    }
    void input_times_weight(const Matrix &input, const Layer &layer, Matrix &result) const;
    void propagate(const TrainingGraph &graph, const Layer &layer, Pass &pass, bool use_edges, RandomBits *dropout) const;
    void attend(const TrainingGraph &graph, const Layer &layer, Pass &pass, RandomBits *dropout) const;
    void attend_backward(const TrainingGraph &graph, Layer &layer, Pass &pass, const Matrix &output_gradient) const;
    void activate(const Matrix &output, Pass &next, RandomBits *dropout) const;
    void begin_step(int epoch);
    void step(Parameter &parameter) const;
    bool drops(bool place) const { return place && model_.dropout > 0; }

    const FeatureView &features_;
    int num_classes_;
    ModelSettings model_;
    TrainingSettings training_;
    std::vector<Layer> layers_;
    std::vector<Pass> passes_, scoring_;
    Matrix output_gradient_, transposed_weight_;

    // Sparse features of the sample: by row those that dropout left, and, without dropout, all by column too, so that a
    // feature's gradient is gathered in registers. Dense features with dropout are copied.
    std::vector<int64_t> column_start_, kept_start_;
    std::vector<int32_t> column_node_, kept_index_;
    std::vector<float> column_value_, kept_value_;
    float kept_scale_ = 1.0f;
    std::vector<float> dense_rows_;

    float step_size_ = 0, inverse_root_correction_ = 0;
};

}  // namespace bmpaudit
