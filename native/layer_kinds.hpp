// Kinds of GNN layers: out = propagate(graph, gathered input · weight) + bias, what is gathered and what propagate is.
#pragma once

#include <memory>
#include <string>

#include "graph_view.hpp"
#include "layer.hpp"
#include "neighbour_max.hpp"
#include "random.hpp"

namespace bmpaudit {

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

// A kind by its name; std::invalid_argument, with the names there are, if there is none.
std::shared_ptr<const LayerKind> make_layer_kind(const std::string &name, const KindSettings &settings);

}  // namespace bmpaudit
