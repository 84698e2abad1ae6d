// The kinds of layers, but for that of a GAT.
#include <algorithm>
#include <utility>

#include "core/lanes.hpp"
#include "gnn/layer.hpp"
#include "gnn/matrix.hpp"

namespace bmpaudit {

namespace {

// result = z_K of z_0 = start, z_{k+1} = (1 - alpha) · matrix · z_k + alpha · start, for K = `hops` of at least 1. With the
// transposed matrix, the same takes the gradient of the result to that of the start.
void propagate_hops(const SparseProduct &matrix, int hops, float alpha, const Matrix &start, Matrix &result, Matrix &scratch) {
    const Matrix *from = &start;
    const Lanes *origin = start.row(0);
    const int64_t blocks = start.blocks();
    for (int left = hops - 1; left >= 0; --left) {
        Matrix &target = left % 2 == 0 ? result : scratch;  // the last step ends in the result
        target.reshape(start.rows(), start.blocks());
        const RowPointers to(target, 0);
        matrix.multiply(*from, target, [=](int64_t i, int first, auto width, const Lanes *sums) {
            for (int b = 0; b < decltype(width)::value; ++b)
                to(i)[first + b] = (1.0f - alpha) * sums[b] + alpha * origin[i * blocks + first + b];
        });
        from = &target;
    }
}

// The layer of a multilayer perceptron: no propagation along edges.
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

// The layer of a graph convolutional network (Kipf and Welling 2017): the symmetrically normalised sum over a node's
// neighbours and itself.
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

// The layer of a simplified graph convolution (Wu et al. 2019): several steps of a GCN with one weight. As the steps are
// linear, the weight is multiplied first, and narrow rows are propagated.

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

// The last layer of APPNP (Gasteiger, Bojchevski and Günnemann 2019): a linear map whose predictions are propagated by
// steps of personalised PageRank.

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

// The first half of a layer of a graph isomorphism network (Xu et al. 2019): the sum over a node and its neighbours, and the
// first linear map of the perceptron that it goes through.
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

// The layer of GraphSAGE (Hamilton, Ying and Leskovec 2017): the mean of a node's neighbours, or lane by lane the largest
// of them, times one matrix, and the node's own input times another.

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

std::shared_ptr<const LayerKind> make_sage_kind(const KindSettings &settings) {
    static const Choices<bool> aggregations = {{"max", true}, {"mean", false}};
    if (chosen("aggregation", settings.aggregation, aggregations)) return std::make_shared<SageMaxKind>(settings.root_weight);
    return std::make_shared<SageMeanKind>(settings.root_weight);
}

}  // namespace

std::shared_ptr<const LayerKind> make_layer_kind(const std::string &name, const KindSettings &settings) {
    using Kind = std::shared_ptr<const LayerKind>;
    using Maker = Kind (*)(const KindSettings &);
    static const Choices<Maker> makers = {
        {"appnp", [](const KindSettings &s) -> Kind { return std::make_shared<AppnpKind>(s.hops, s.alpha); }},
        {"gat", [](const KindSettings &) { return make_gat_kind(); }},
        {"gcn", [](const KindSettings &) -> Kind { return std::make_shared<GcnKind>(); }},
        {"gin", [](const KindSettings &) -> Kind { return std::make_shared<GinKind>(); }},
        {"mlp", [](const KindSettings &) -> Kind { return std::make_shared<MlpKind>(); }},
        {"sage", make_sage_kind},
        {"sgc", [](const KindSettings &s) -> Kind { return std::make_shared<SgcKind>(s.hops); }}};
    return chosen("kind", name, makers)(settings);
}

}  // namespace bmpaudit
