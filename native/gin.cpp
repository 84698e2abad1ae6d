// The first half of a layer of a graph isomorphism network (Xu et al. 2019): the sum over a node and its neighbours, and the
// first linear map of the perceptron that it goes through.
#include "layer_kinds.hpp"
#include "matrix_products.hpp"

namespace bmpaudit {

namespace {

class GinKind final : public LayerKind {
  public:
    EdgeMatrices edge_matrices() const override { return EdgeMatrices::of_neighbours(); }

    void propagate(const TrainingGraph &graph, const Layer &layer, const EdgeSettings &, Pass &pass) const override {
        sum_with_own(graph.neighbours.product(), pass.linear, layer.bias.value.row(0), pass.output);
    }
    void backward(const TrainingGraph &graph, Layer &layer, Pass &pass, Matrix &output_gradient) const override {
        sum_of_rows(output_gradient, layer.bias.gradient);
        sum_with_own(graph.neighbours.transposed(), output_gradient, nullptr, pass.linear_gradient);
    }

  private:
    static void sum_with_own(const SparseProduct &neighbours, const Matrix &rows, const Lanes *bias, Matrix &result) {
        const Lanes *own = rows.row(0);
        const int64_t blocks = rows.blocks();
        result.reshape(rows.rows(), rows.blocks());
        const RowPointers to(result, 0);
        neighbours.multiply(rows, result, [=](int64_t i, int first, auto width, const Lanes *sums) {
            for (int b = 0; b < decltype(width)::value; ++b) {
                const Lanes sum = sums[b] + own[i * blocks + first + b];
                to(i)[first + b] = bias != nullptr ? sum + bias[first + b] : sum;
            }
        });
    }
};

}  // namespace

std::shared_ptr<const LayerKind> make_gin_kind(const KindSettings &) { return std::make_shared<GinKind>(); }

}  // namespace bmpaudit
