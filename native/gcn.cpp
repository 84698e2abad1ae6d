// The layer of a graph convolutional network (Kipf and Welling 2017): the symmetrically normalised sum over a node's
// neighbours and itself.
#include <utility>

#include "layer_kinds.hpp"
#include "matrix_products.hpp"

namespace bmpaudit {

namespace {

class GcnKind final : public LayerKind {
  public:
    EdgeMatrices edge_matrices() const override { return EdgeMatrices::of_normalised(); }
    bool is_linear() const override { return true; }
    void propagate(const TrainingGraph &graph, const Layer &layer, const EdgeSettings &edges, Pass &pass) const override {
        const Lanes *bias = layer.bias.value.row(0);
        // Without edges each node has only its self-loop, of weight 1.
        if (!edges.is_training && !graph.has_edges()) {
            add_to_rows(pass.linear, bias, pass.output);
            return;
        }
        pass.output.reshape(graph.size(), layer.shape.blocks);
        const RowPointers to(pass.output, 0);
        const auto finish = [to, bias](int64_t i, int first, auto width, const Lanes *sums) {
            for (int b = 0; b < decltype(width)::value; ++b) to(i)[first + b] = sums[b] + bias[first + b];
        };
        graph.normalised.product().multiply(pass.linear, pass.output, finish);
    }
    void backward(const TrainingGraph &graph, Layer &layer, Pass &pass, Matrix &output_gradient) const override {
        sum_of_rows(output_gradient, layer.bias.gradient);
        std::swap(pass.linear, pass.linear_gradient);  // into memory that the caches may still hold
        graph.normalised.transposed().multiply_into(output_gradient, pass.linear_gradient);
    }
};

}  // namespace

std::shared_ptr<const LayerKind> make_gcn_kind(const KindSettings &) { return std::make_shared<GcnKind>(); }

}  // namespace bmpaudit
