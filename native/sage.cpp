// The layer of GraphSAGE (Hamilton, Ying and Leskovec 2017): the mean of a node's neighbours, or lane by lane the largest
// of them, times one matrix, and the node's own input times another.
#include <algorithm>
#include <utility>

#include "choices.hpp"
#include "layer_kinds.hpp"
#include "matrix_products.hpp"

namespace bmpaudit {

namespace {

// As the mean of products is the product of the mean, both matrices are multiplied first, side by side: narrow rows are
// then summed instead of wide ones.
class SageMeanKind final : public LayerKind {
  public:
    explicit SageMeanKind(bool root_weight) : root_weight_(root_weight) {}
    int wide_parts() const override { return root_weight_ ? 2 : 1; }
    EdgeMatrices edge_matrices() const override { return EdgeMatrices::of_neighbours(); }

    void propagate(const TrainingGraph &graph, const Layer &layer, const EdgeSettings &, Pass &pass) const override {
        const int blocks = layer.shape.blocks;
        const Lanes *bias = layer.bias.value.row(0);
        const Lanes *own = root_weight_ ? pass.linear.row(0) + blocks : nullptr;
        const int64_t *start = graph.start.data();
        pass.output.reshape(graph.size(), blocks);
        const RowPointers to(pass.output, 0);
        const auto finish = [=](int64_t i, int first, auto width, const Lanes *sums) {
            const float share = share_of(start, i);
            for (int b = 0; b < decltype(width)::value; ++b) {
                const Lanes rest = own != nullptr ? own[2 * blocks * i + first + b] + bias[first + b] : bias[first + b];
                to(i)[first + b] = share * sums[b] + rest;
            }
        };
        graph.neighbours.product().multiply(pass.linear, pass.output, finish, blocks);
    }

    void backward(const TrainingGraph &graph, Layer &layer, Pass &pass, Matrix &output_gradient) const override {
        const int blocks = layer.shape.blocks;
        sum_of_rows(output_gradient, layer.bias.gradient);
        pass.linear_gradient.reshape(graph.size(), blocks * wide_parts());
        for (int32_t i = 0; i < graph.size(); ++i) {
            Lanes *gradient = output_gradient.row(i);
            if (root_weight_) std::copy_n(gradient, blocks, pass.linear_gradient.row(i) + blocks);
            for (int b = 0; b < blocks; ++b) gradient[b] *= share_of(graph.start.data(), i);
        }
        const RowPointers to(pass.linear_gradient, 0);
        const auto finish = [to](int64_t i, int first, auto width, const Lanes *sums) {
            for (int b = 0; b < decltype(width)::value; ++b) to(i)[first + b] = sums[b];
        };
        pass.output.reshape(graph.size(), blocks);  // scratch
        graph.neighbours.transposed().multiply(output_gradient, pass.output, finish);
    }

  private:
    // Of each neighbour in the mean; rows begin with the node itself.
    static float share_of(const int64_t *start, int64_t i) {
        return 1.0f / static_cast<float>(std::max<int64_t>(start[i + 1] - start[i] - 1, 1));
    }

    bool root_weight_;
};

class SageMaxKind final : public LayerKind {
  public:
    explicit SageMaxKind(bool root_weight) : parts_{true, root_weight} {}
    InputParts input_parts() const override { return parts_; }
    bool is_linear() const override { return true; }

    void propagate(const TrainingGraph &, const Layer &layer, const EdgeSettings &, Pass &pass) const override {
        add_to_rows(pass.linear, layer.bias.value.row(0), pass.output);
    }
    void backward(const TrainingGraph &, Layer &layer, Pass &pass, Matrix &output_gradient) const override {
        sum_of_rows(output_gradient, layer.bias.gradient);
        std::swap(pass.linear_gradient, output_gradient);
    }

  private:
    InputParts parts_;
};

}  // namespace

std::shared_ptr<const LayerKind> make_sage_kind(const KindSettings &settings) {
    static const Choices<bool> aggregations = {{"max", true}, {"mean", false}};
    if (chosen("aggregation", settings.aggregation, aggregations)) return std::make_shared<SageMaxKind>(settings.root_weight);
    return std::make_shared<SageMeanKind>(settings.root_weight);
}

}  // namespace bmpaudit
