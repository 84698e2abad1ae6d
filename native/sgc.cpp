// The layer of a simplified graph convolution (Wu et al. 2019): several steps of a GCN with one weight. As the steps are
// linear, the weight is multiplied first, and narrow rows are propagated.
#include "hops.hpp"
#include "layer_kinds.hpp"
#include "matrix_products.hpp"

namespace bmpaudit {

namespace {

struct KeptHops final : Kept {
    Matrix propagated, scratch;
};

class SgcKind final : public LayerKind {
  public:
    explicit SgcKind(int hops) : hops_(hops) {}
    EdgeMatrices edge_matrices() const override { return EdgeMatrices::of_normalised(); }
    std::unique_ptr<Kept> make_kept() const override { return std::make_unique<KeptHops>(); }

    void propagate(const TrainingGraph &graph, const Layer &layer, const EdgeSettings &, Pass &pass) const override {
        auto &kept = static_cast<KeptHops &>(*pass.kept);
        const Lanes *bias = layer.bias.value.row(0);
        if (graph.has_edges()) propagate_hops(graph.normalised.product(), hops_, 0.0f, pass.linear, kept.propagated, kept.scratch);
        add_to_rows(graph.has_edges() ? kept.propagated : pass.linear, bias, pass.output);
    }
    void backward(const TrainingGraph &graph, Layer &layer, Pass &pass, Matrix &output_gradient) const override {
        auto &kept = static_cast<KeptHops &>(*pass.kept);
        sum_of_rows(output_gradient, layer.bias.gradient);
        propagate_hops(graph.normalised.transposed(), hops_, 0.0f, output_gradient, pass.linear_gradient, kept.scratch);
    }

  private:
    int hops_;
};

}  // namespace

std::shared_ptr<const LayerKind> make_sgc_kind(const KindSettings &settings) {
    return std::make_shared<SgcKind>(settings.hops);
}

}  // namespace bmpaudit
