// Layers: their parameters, kinds, normalisation and optimiser.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/lanes.hpp"
#include "core/random.hpp"
#include "gnn/graph.hpp"

namespace bmpaudit {

// Things that are chosen by name.

template <typename T> using Choices = std::vector<std::pair<std::string, T>>;

// The choice of this name; std::invalid_argument, with the names there are, if there is none.
template <typename T> T chosen(const std::string &what, const std::string &name, const Choices<T> &choices) {
    std::string names;
    for (const auto &[known, value] : choices) {
        if (known == name) return value;
        names += (names.empty() ? "" : ", ") + known;
    }
    throw std::invalid_argument(what + " must be one of " + names + ", got '" + name + "'");
}

// A layer: its shape, its parameters, and what a pass through it leaves behind.

// Where the units of a layer sit in its lanes. Unit (head, channel) is at channel · stride + head: heads lie side by
// side, padded to a power of two (or a multiple of 16), so that one row of attention weights, repeated, fits all channels.
struct LayerShape {
    int inputs;   // rows of the weight matrix: features, or lanes of the layer before, once for each of the tall parts
    int channels;
    int heads;
    int head_stride;
    int blocks;       // of the units
    int tile_blocks;  // of one value a head, repeated
    int tall_parts;   // matrices one below the other, each for its part of the input
    int wide_parts;   // matrices side by side

    LayerShape(int inputs_each_part, int channels, int heads, int tall_parts, int wide_parts);
    int units() const { return channels * heads; }
    int lane(int unit) const { return (unit % channels) * head_stride + unit / channels; }
    int linear_blocks() const { return blocks * wide_parts; }
    // Lanes of a product with the weight, up to the last that is used.
    int used_lanes() const { return (wide_parts - 1) * blocks * kLanes + (channels - 1) * head_stride + heads; }
};

// A parameter with its gradient and the optimiser's memory of it.
struct Parameter {
    Matrix value, gradient, first_moment, second_moment;

    Parameter(int64_t rows, int blocks);
    void clear();
};

struct Layer {
    LayerShape shape;
    std::vector<int> input_row;      // row of each input in a part of the weight; other rows are padding
    Parameter weight;                // inputs x units of all wide parts
    std::vector<Parameter> vectors;  // 1 x units each: what the kind of layer has beside weight and bias
    Parameter bias;                  // 1 x units
    std::vector<Parameter> norm;     // 1 x units each: scale and shift of its normalisation, running mean and variance

    Layer(const LayerShape &shape, std::vector<int> input_row, int num_vectors, int norm_vectors);
    int num_inputs() const { return static_cast<int>(input_row.size()); }
    int64_t num_weights() const;
    int64_t num_parameters() const;
};

// Calls visit(parameter) for the weight, the vectors, the bias and the normalisation.
template <typename AnyLayer, typename Visit> void visit_parameters(AnyLayer &layer, Visit visit) {
    visit(layer.weight);
    for (auto &vector : layer.vectors) visit(vector);
    visit(layer.bias);
    for (auto &vector : layer.norm) visit(vector);
}

// Calls visit(parameter, row, lane) for each number in PyTorch Geometric's shapes: each part of the weight (units x
// inputs), vectors (heads x channels), bias (units), and those of the normalisation (units).
template <typename AnyLayer, typename Visit> void visit_numbers(AnyLayer &layer, Visit visit) {
    const LayerShape &shape = layer.shape;
    const int units = shape.units();
    for (int part = 0; part < shape.tall_parts * shape.wide_parts; ++part) {
        const int first_row = part / shape.wide_parts * (shape.inputs / shape.tall_parts);
        const int first_lane = part % shape.wide_parts * shape.blocks * kLanes;
        for (int unit = 0; unit < units; ++unit)
            for (const int row : layer.input_row) visit(layer.weight, first_row + row, first_lane + shape.lane(unit));
    }
    for (auto &vector : layer.vectors)
        for (int unit = 0; unit < units; ++unit) visit(vector, 0, layer.shape.lane(unit));
    for (int unit = 0; unit < units; ++unit) visit(layer.bias, 0, layer.shape.lane(unit));
    for (auto &vector : layer.norm)
        for (int unit = 0; unit < units; ++unit) visit(vector, 0, layer.shape.lane(unit));
}

// What a kind of layer keeps for itself of a pass.
struct Kept {
    virtual ~Kept() = default;
};

// What a normalisation keeps of a pass.
struct KeptNorm {
    Matrix normalised;         // before scale and shift
    Matrix inverse_deviation;  // of each unit, or of each row
};

// What a layer keeps of its forward pass for the way back.
struct Pass {
    Matrix input;        // after dropout; layers beyond the first
    float input_scale;   // of the inputs that dropout kept
    Matrix gathered;     // what is multiplied with the weight, where that is not the input itself
    // Derivative of activation and dropout at the input; without one, of relu: the scale where the input is not 0.
    Matrix input_slope;
    bool has_slope = false;
    Matrix input_kept;         // after a residual connection, in training: 0 or the scale, by dropout
    Matrix residual_gradient;  // of the input, from a residual connection that begins there
    bool has_residual_gradient = false;
    Matrix linear;       // input, or what was gathered, times weight
    Matrix output;
    Matrix linear_gradient;
    std::unique_ptr<Kept> kept;
    KeptNorm norm;  // of the output
};

// Kinds of GNN layers: out = propagate(graph, gathered input · weight) + bias, what is gathered and what propagate is.

// What some kinds of layers can be told.
struct KindSettings {
    std::string aggregation;  // of SAGE: mean or max
    bool root_weight;         // of SAGE: whether a node's own input has a weight of its own
    int hops;                 // of SGC and APPNP: steps along the edges, at least 1
    double alpha;             // of APPNP: what each step takes of the first predictions, in (0, 1]
};

// How a pass treats the edges.
struct EdgeSettings {
    bool is_training;     // otherwise there is no way back, and no dropout
    RandomBits *dropout;  // null where edges are not dropped
    double dropout_prob;
};

class LayerKind {
  public:
    virtual ~LayerKind() = default;
    // Parameters of one number a unit, beside weight and bias.
    virtual int num_vectors() const { return 0; }
    // What the vectors' initial values are scaled by: the fan of Glorot and Bengio 2010.
    virtual int vector_fan(const LayerShape &) const { return 1; }
    // Blocks of lanes that a pass keeps for each edge.
    virtual int blocks_each_edge(const LayerShape &) const { return 0; }
    // What is multiplied with the weight: the layer's input, the largest input of a node's neighbours, or both.
    virtual InputParts input_parts() const { return {}; }
    // Weight matrices side by side, all multiplied with the same input.
    virtual int wide_parts() const { return 1; }
    // The matrices of the graph that it multiplies with.
    virtual EdgeMatrices edge_matrices() const { return {}; }
    // Whether the output is the bias and `linear`, or the graph's normalised matrix, if that is multiplied with, times
    // `linear`. The matrix may then be multiplied with the input instead.
    virtual bool is_linear() const { return false; }
    virtual std::unique_ptr<Kept> make_kept() const { return nullptr; }
    // From pass.linear to pass.output, the bias included.
    virtual void propagate(const TrainingGraph &graph, const Layer &layer, const EdgeSettings &edges, Pass &pass) const = 0;
    // From the gradient of the output, which it may use up, to pass.linear_gradient and the gradients of bias and vectors.
    virtual void backward(const TrainingGraph &graph, Layer &layer, Pass &pass, Matrix &output_gradient) const = 0;
};

// That of a graph attention network.
std::shared_ptr<const LayerKind> make_gat_kind();

// A kind by its name; std::invalid_argument, with the names there are, if there is none.
std::shared_ptr<const LayerKind> make_layer_kind(const std::string &name, const KindSettings &settings);

// Normalisation of a layer's output: over the nodes of a batch, as torch.nn.BatchNorm1d, or over the units of each node, as
// torch.nn.LayerNorm.

enum class Norm { none, batch, layer };

// A normalisation by its name; std::invalid_argument if there is none.
Norm norm_of(const std::string &name);

// Numbers that it has for each unit: scale and shift, and of a batch the running mean and variance.
int norm_vectors(Norm norm);

// In training, in place; a batch moves the running mean and variance.
void normalise(Norm norm, Layer &layer, Matrix &rows, KeptNorm &kept);
// Of a trained model, in place.
void normalise_trained(Norm norm, const Layer &layer, Matrix &rows);
// From the gradient of what was normalised to that of what was given, in place, and to those of scale and shift.
void normalise_backward(Norm norm, Layer &layer, const KeptNorm &kept, Matrix &gradient);

// Adam and stochastic gradient descent, as PyTorch has them.

// How the learning rate goes on: as it is; down to 0 by half a cosine; or a tenth of it after half of the epochs and a
// hundredth after three quarters.
enum class Schedule { constant, cosine, step };

// A schedule by its name; std::invalid_argument if there is none.
Schedule schedule_of(const std::string &name);

struct TrainingSettings {
    int epochs;
    double learning_rate;
    double weight_decay;
    bool uses_adam;  // else plain gradient descent
    Schedule schedule;
    double label_smoothing;  // share of each label that all classes get in equal parts
    double drop_edge;        // share of the edges that each epoch leaves out
    double validation_share;  // of a sample's nodes; 0: all are learnt from, and all epochs trained
    int patience;             // epochs without a lower loss of validation after which training ends; 0: all are trained
    int batch_size;           // 0: all nodes at once
    std::vector<int> neighbors;  // taken of each node at most, hop by hop; -1: all
};

// Whether the optimiser of this name is Adam; std::invalid_argument if there is no such optimiser.
bool is_adam(const std::string &name);

class Optimizer {
  public:
    explicit Optimizer(const TrainingSettings &training) : training_(training) {}
    // Both count from 1.
    void begin_step(int64_t step, int epoch);
    void step(Parameter &parameter) const;

    // The step of single lanes, in the same pass that computed their gradient. It holds what it needs by value, so that
    // an inner loop keeps it in registers.
    class LaneStep {
      public:
        // `at` counts lanes from the parameter's first row on.
        void operator()(int64_t at, Lanes gradient) const {
            const Lanes value = value_[at], g = gradient + decay_ * value;
            if (!uses_adam_) {
                value_[at] = value - step_size_ * g;
                return;
            }
            // 1 - β is rounded once, from double: 1.0f - 0.999f would be off by 5e-5.
            const Lanes mean = mean_[at] + static_cast<float>(1.0 - kBeta1) * (g - mean_[at]);
            const Lanes square = static_cast<float>(kBeta2) * square_[at] + static_cast<float>(1.0 - kBeta2) * (g * g);
            value_[at] = value - step_size_ * mean / (sqrt_lanes(square) * inverse_root_correction_ + kEpsilon);
            mean_[at] = mean;
            square_[at] = square;
        }

      private:
        friend class Optimizer;
        Lanes *value_, *mean_, *square_;
        float decay_, step_size_, inverse_root_correction_;
        bool uses_adam_;
    };
    LaneStep lane_step(Parameter &parameter) const;

  private:
    double learning_rate(int epoch) const;

    static constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
    static constexpr float kEpsilon = 1e-8f;

    TrainingSettings training_;
    float step_size_ = 0, inverse_root_correction_ = 0;
};

}  // namespace bmpaudit
