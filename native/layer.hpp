// A layer: its shape, its parameters, and what a pass through it leaves behind.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lanes.hpp"

namespace bmpaudit {

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

}  // namespace bmpaudit
