// The last layer of APPNP (Gasteiger, Bojchevski and Günnemann 2019): a linear map whose predictions are propagated by
// steps of personalised PageRank.
#include "hops.hpp"
#include "layer_kinds.hpp"
#include "matrix_products.hpp"

namespace bmpaudit {

namespace {

struct KeptPredictions final : Kept {
    Matrix predictions, scratch;
};

class AppnpKind final : public LayerKind {
  public:
    AppnpKind(int hops, double alpha) : hops_(hops), alpha_(static_cast<float>(alpha)) {}
    EdgeMatrices edge_matrices() const override { return EdgeMatrices::of_normalised(); }
    std::unique_ptr<Kept> make_kept() const override { return std::make_unique<KeptPredictions>(); }

    void propagate(const TrainingGraph &graph, const Layer &layer, const EdgeSettings &, Pass &pass) const override {
        auto &kept = static_cast<KeptPredictions &>(*pass.kept);
        const Lanes *bias = layer.bias.value.row(0);
        // Without edges each node keeps its own predictions.
        add_to_rows(pass.linear, bias, graph.has_edges() ? kept.predictions : pass.output);
        if (graph.has_edges()) propagate_hops(graph.normalised.product(), hops_, alpha_, kept.predictions, pass.output, kept.scratch);
    }
    void backward(const TrainingGraph &graph, Layer &layer, Pass &pass, Matrix &output_gradient) const override {
        auto &kept = static_cast<KeptPredictions &>(*pass.kept);
        propagate_hops(graph.normalised.transposed(), hops_, alpha_, output_gradient, pass.linear_gradient, kept.scratch);
        sum_of_rows(pass.linear_gradient, layer.bias.gradient);
    }

  private:
    int hops_;
    float alpha_;
};

}  // namespace

std::shared_ptr<const LayerKind> make_appnp_kind(const KindSettings &settings) {
    return std::make_shared<AppnpKind>(settings.hops, settings.alpha);
}

}  // namespace bmpaudit
