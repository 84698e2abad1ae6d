// Kinds of GNN layers: out = propagate(graph, input · weight) + bias, and what propagate is.
#pragma once

#include <memory>
#include <string>

#include "graph_view.hpp"
#include "layer.hpp"
#include "random.hpp"

namespace bmpaudit {

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
    virtual std::unique_ptr<Kept> make_kept() const { return nullptr; }
    // From pass.linear to pass.output, the bias included.
    virtual void propagate(const TrainingGraph &graph, const Layer &layer, const EdgeSettings &edges, Pass &pass) const = 0;
    // From the gradient of the output, which it may use up, to pass.linear_gradient and the gradients of the vectors.
    virtual void backward(const TrainingGraph &graph, Layer &layer, Pass &pass, Matrix &output_gradient) const = 0;
};

// A kind by its name; std::invalid_argument, with the names there are, if there is none.
const LayerKind &layer_kind(const std::string &name);

}  // namespace bmpaudit
