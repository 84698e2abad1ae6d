// The layer of a multilayer perceptron: no propagation along edges.
#include <utility>

#include "layer_kinds.hpp"
#include "matrix_products.hpp"

namespace bmpaudit {

namespace {

class MlpKind final : public LayerKind {
  public:
    void propagate(const TrainingGraph &, const Layer &layer, const EdgeSettings &, Pass &pass) const override {
        add_to_rows(pass.linear, layer.bias.value.row(0), pass.output);
    }
    void backward(const TrainingGraph &, Layer &, Pass &pass, Matrix &output_gradient) const override {
        std::swap(pass.linear_gradient, output_gradient);
    }
};

}  // namespace

const LayerKind &mlp_kind() {
    static const MlpKind kind;
    return kind;
}

}  // namespace bmpaudit
