// The layer of a graph convolutional network (Kipf and Welling 2017): the symmetrically normalised sum over a node's
// neighbours and itself.
#include "layer_kinds.hpp"
#include "matrix_products.hpp"

namespace bmpaudit {

namespace {

// result[i] = c_i Σ_j c_j · values[j] over the neighbours j of i and i itself, with c = 1/√(degree + 1).
void normalised_sum(const TrainingGraph &graph, const Matrix &values, Matrix &result) {
    result.reshape(graph.size(), values.blocks());
    for_block_groups(values.blocks(), [&](auto width, int first) {
        constexpr int B = decltype(width)::value;
        for (int32_t i = 0; i < graph.size(); ++i) {
            Lanes sums[B] = {};
            for (int64_t e = graph.start[i]; e < graph.start[i + 1]; ++e) {
                const int32_t j = graph.neighbors[e];
                for (int b = 0; b < B; ++b) sums[b] += graph.inverse_root[j] * values.row(j)[first + b];
            }
            for (int b = 0; b < B; ++b) result.row(i)[first + b] = graph.inverse_root[i] * sums[b];
        }
    });
}

class GcnKind final : public LayerKind {
  public:
    void propagate(const TrainingGraph &graph, const Layer &, const EdgeSettings &edges, Pass &pass) const override {
        // Without edges each node has only its self-loop, of weight 1.
        if (!edges.is_training && !graph.has_edges()) pass.output = pass.linear;
        else normalised_sum(graph, pass.linear, pass.output);
    }
    void backward(const TrainingGraph &graph, Layer &, Pass &pass, Matrix &output_gradient) const override {
        normalised_sum(graph, output_gradient, pass.linear_gradient);  // the matrix is symmetric
    }
};

}  // namespace

const LayerKind &gcn_kind() {
    static const GcnKind kind;
    return kind;
}

}  // namespace bmpaudit
