// The layer of a multilayer perceptron: no propagation along edges.
#include <utility>

#include "layer_kinds.hpp"
#include "matrix_products.hpp"

namespace bmpaudit {

namespace {

class MlpKind final : public LayerKind {
  public:
    bool is_linear() const override { return true; }
    void propagate(const TrainingGraph &, const Layer &layer, const EdgeSettings &, Pass &pass) const override {
        add_to_rows(pass.linear, layer.bias.value.row(0), pass.output);
    }
    void backward(const TrainingGraph &, Layer &layer, Pass &pass, Matrix &output_gradient) const override {
        sum_of_rows(output_gradient, layer.bias.gradient);
        std::swap(pass.linear_gradient, output_gradient);
    }
};

}  // namespace

std::shared_ptr<const LayerKind> make_mlp_kind(const KindSettings &) { return std::make_shared<MlpKind>(); }

}  // namespace bmpaudit
