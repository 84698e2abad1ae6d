// The layer of a graph attention network (Veličković et al. 2018). Its vectors are the attention of the source and of the
// target of an edge.
#include <memory>
#include <vector>

#include "gnn/layer.hpp"
#include "gnn/matrix.hpp"

namespace bmpaudit {

namespace {

constexpr float kLeakySlope = 0.2f;
constexpr int kSource = 0, kTarget = 1;  // the vectors
constexpr float kSoftmaxFloor = 1e-16f;  // as in torch_geometric.utils.softmax

// How the blocks of a layer's units and of its tiles (one value a head, repeated) go together; with numbers other than
// 0, known to the compiler.
template <int Blocks, int Tiles, int Stride> struct HeadLayout {
    const LayerShape shape;

    int blocks() const { return Blocks != 0 ? Blocks : shape.blocks; }
    int tiles() const { return Tiles != 0 ? Tiles : shape.tile_blocks; }
    int head_stride() const { return Stride != 0 ? Stride : shape.head_stride; }
    int tile_of(int block) const { return Tiles == 1 ? 0 : block % tiles(); }
    // Row i of a matrix of units, and of one of tiles, whose first row is given.
    template <typename L> L *unit_row(L *first, int64_t i) const { return first + i * blocks(); }
    template <typename L> L *tile_row(L *first, int64_t i) const { return first + i * tiles(); }

    // As for_block_groups, over the blocks of units.
    template <typename Kernel> void for_groups(Kernel kernel) const {
        if constexpr (Blocks != 0) kernel(std::integral_constant<int, Blocks>{}, 0);
        else for_block_groups(blocks(), kernel);
    }

    // Sums over the channels of each head, repeated so that lane l holds the sum of head l mod stride.
    void fold(const Lanes *x, const Lanes *y, Lanes *tile) const {
        Lanes first = x[0] * y[0];
        for (int t = 1; t < tiles(); ++t) tile[t] = x[t] * y[t];
        for (int b = tiles(); b < blocks(); ++b) {
            if (tile_of(b) == 0) first += x[b] * y[b];
            else tile[tile_of(b)] += x[b] * y[b];
        }
        for (int by = kLanes / 2; by >= head_stride(); by /= 2) first += rotate(first, by);
        tile[0] = first;
    }
};

// The layers of the usual GAT: eight heads of four channels, and one head of at most sixteen classes.
template <typename Kernel> void with_head_layout(const LayerShape &shape, Kernel kernel) {
    if (shape.blocks == 2 && shape.head_stride == 8) kernel(HeadLayout<2, 1, 8>{shape});
    else if (shape.blocks == 1 && shape.head_stride == 1) kernel(HeadLayout<1, 1, 1>{shape});
    else kernel(HeadLayout<0, 0, 0>{shape});
}

// One coin a head, repeated like a tile.
uint32_t repeat_heads(uint32_t coins, int head_stride) {
    if (head_stride >= kLanes) return coins;
    coins &= (1u << head_stride) - 1;
    for (int filled = head_stride; filled < kLanes; filled *= 2) coins |= coins << filled;
    return coins;
}

// The attention of node i to its neighbours, for one tile of heads.
template <typename Heads>
inline void softmax(const TrainingGraph &graph, int32_t i, const Lanes *sources, const Lanes *targets, Lanes *weights,
                    const Heads &heads, int t) {
    const int64_t begin = graph.start[i], end = graph.start[i + 1];
    const Lanes target = heads.tile_row(targets, i)[t];
    Lanes largest = splat(-INFINITY), total = splat(kSoftmaxFloor);
    for (int64_t e = begin; e < end; ++e) {
        const Lanes raw = heads.tile_row(sources, graph.neighbors[e])[t] + target;
        const Lanes score = select(raw > 0.0f, raw, kLeakySlope * raw);
        heads.tile_row(weights, e)[t] = score;
        largest = max_lanes(largest, score);
    }
    for (int64_t e = begin; e < end; ++e) {
        const Lanes weight = exp_lanes(heads.tile_row(weights, e)[t] - largest);
        heads.tile_row(weights, e)[t] = weight;
        total += weight;
    }
    const Lanes share = 1.0f / total;
    for (int64_t e = begin; e < end; ++e) heads.tile_row(weights, e)[t] *= share;
}

// The rows of scores and of their gradients hold one value a head, repeated.
struct KeptAttention final : Kept {
    Matrix source_score, target_score;
    Matrix weight, keep;  // of each edge: the attention, and 0 or 1/(1-p) of its dropout
    Matrix source_gradient, target_gradient;
    bool is_dropped = false;
};

class GatKind final : public LayerKind {
  public:
    int num_vectors() const override { return 2; }
    int vector_fan(const LayerShape &shape) const override { return shape.heads + shape.channels; }
    int blocks_each_edge(const LayerShape &shape) const override { return 2 * shape.tile_blocks; }
    std::unique_ptr<Kept> make_kept() const override { return std::make_unique<KeptAttention>(); }

    void propagate(const TrainingGraph &graph, const Layer &layer, const EdgeSettings &edges, Pass &pass) const override {
        // Without edges each node attends to itself only, with weight 1.
        if (!edges.is_training && !graph.has_edges()) add_to_rows(pass.linear, layer.bias.value.row(0), pass.output);
        else attend(graph, layer, edges, pass);
    }
    void backward(const TrainingGraph &graph, Layer &layer, Pass &pass, Matrix &output_gradient) const override;

  private:
    static void attend(const TrainingGraph &graph, const Layer &layer, const EdgeSettings &edges, Pass &pass);
};

void GatKind::attend(const TrainingGraph &graph, const Layer &layer, const EdgeSettings &edges, Pass &pass) {
    auto &kept = static_cast<KeptAttention &>(*pass.kept);
    const bool drops_here = kept.is_dropped = edges.dropout != nullptr;
    const auto num_edges = static_cast<int64_t>(graph.neighbors.size());
    kept.source_score.reshape(graph.size(), layer.shape.tile_blocks);
    kept.target_score.reshape(graph.size(), layer.shape.tile_blocks);
    kept.weight.reshape(num_edges, layer.shape.tile_blocks);
    pass.output.reshape(graph.size(), layer.shape.blocks);
    if (drops_here) kept.keep.reshape(num_edges, layer.shape.tile_blocks);
    PhiloxBits unused(0, 0, 0);
    CoinFlips keep(drops_here ? *edges.dropout : unused, 1.0 - edges.dropout_prob);
    const float scale = static_cast<float>(1.0 / keep.probability());

    with_head_layout(layer.shape, [&](auto heads) {
        const Lanes *linear = pass.linear.row(0), *bias = layer.bias.value.row(0);
        Lanes *sources = kept.source_score.row(0), *targets = kept.target_score.row(0);
        Lanes *weights = kept.weight.row(0), *keeps = drops_here ? kept.keep.row(0) : nullptr, *outputs = pass.output.row(0);
        for (int32_t j = 0; j < graph.size(); ++j) {
            heads.fold(heads.unit_row(linear, j), layer.vectors[kSource].value.row(0), heads.tile_row(sources, j));
            heads.fold(heads.unit_row(linear, j), layer.vectors[kTarget].value.row(0), heads.tile_row(targets, j));
        }
        for (int32_t i = 0; i < graph.size(); ++i) {
            const int64_t begin = graph.start[i], end = graph.start[i + 1];
            for (int t = 0; t < heads.tiles(); ++t) {
                if (end - begin == 1) weights[begin * heads.tiles() + t] = splat(1.0f);  // a node with no neighbours
                else softmax(graph, i, sources, targets, weights, heads, t);
                if (!drops_here) continue;
                for (int64_t e = begin; e < end; ++e) {
                    const uint32_t coins = repeat_heads(keep.next_sixteen(), heads.head_stride());
                    heads.tile_row(keeps, e)[t] = only(coins, splat(scale));
                }
            }
            Lanes *out = heads.unit_row(outputs, i);
            heads.for_groups([&](auto width, int first) {
                constexpr int G = decltype(width)::value;
                Lanes sums[G];
                for (int b = 0; b < G; ++b) sums[b] = bias[first + b];
                for (int64_t e = begin; e < end; ++e) {
                    const Lanes *from = heads.unit_row(linear, graph.neighbors[e]) + first;
                    for (int b = 0; b < G; ++b) {
                        Lanes weight = heads.tile_row(weights, e)[heads.tile_of(first + b)];
                        if (drops_here) weight *= heads.tile_row(keeps, e)[heads.tile_of(first + b)];
                        sums[b] += weight * from[b];
                    }
                }
                for (int b = 0; b < G; ++b) out[first + b] = sums[b];
            });
        }
    });
}

void GatKind::backward(const TrainingGraph &graph, Layer &layer, Pass &pass, Matrix &output_gradient) const {
    auto &kept = static_cast<KeptAttention &>(*pass.kept);
    const bool dropped = kept.is_dropped;
    sum_of_rows(output_gradient, layer.bias.gradient);
    pass.linear_gradient.reshape(graph.size(), layer.shape.blocks);
    kept.source_gradient.reshape(graph.size(), layer.shape.tile_blocks);
    kept.target_gradient.reshape(graph.size(), layer.shape.tile_blocks);
    pass.linear_gradient.fill_zero();
    kept.source_gradient.fill_zero();
    kept.target_gradient.fill_zero();

    with_head_layout(layer.shape, [&](auto heads) {
        const Lanes *linear = pass.linear.row(0), *output = output_gradient.row(0);
        const Lanes *sources = kept.source_score.row(0), *targets = kept.target_score.row(0);
        const Lanes *weights = kept.weight.row(0), *keeps = dropped ? kept.keep.row(0) : nullptr;
        Lanes *gradient = pass.linear_gradient.row(0);
        Lanes *by_source = kept.source_gradient.row(0), *by_target = kept.target_gradient.row(0);
        std::vector<Lanes> weight_gradient;
        for (int32_t i = 0; i < graph.size(); ++i) {
            const int64_t begin = graph.start[i], end = graph.start[i + 1];
            const Lanes *g = heads.unit_row(output, i);
            const bool is_alone = end - begin == 1;
            weight_gradient.resize((end - begin) * heads.tiles());
            for (int64_t e = begin; e < end; ++e) {
                Lanes *to = heads.unit_row(gradient, graph.neighbors[e]);
                if (!is_alone)
                    heads.fold(g, heads.unit_row(linear, graph.neighbors[e]), &weight_gradient[(e - begin) * heads.tiles()]);
                for (int b = 0; b < heads.blocks(); ++b) {
                    Lanes weight = heads.tile_row(weights, e)[heads.tile_of(b)];
                    if (dropped) weight *= heads.tile_row(keeps, e)[heads.tile_of(b)];
                    to[b] += weight * g[b];
                }
            }
            if (is_alone) continue;  // the attention of a node with no neighbours is 1 whatever its score
            for (int t = 0; t < heads.tiles(); ++t) {
                Lanes mean = {}, sum = {};
                for (int64_t e = begin; e < end; ++e) {
                    Lanes &of_weight = weight_gradient[(e - begin) * heads.tiles() + t];
                    if (dropped) of_weight *= heads.tile_row(keeps, e)[t];
                    mean += heads.tile_row(weights, e)[t] * of_weight;
                }
                const Lanes target = heads.tile_row(targets, i)[t];
                for (int64_t e = begin; e < end; ++e) {
                    const int32_t j = graph.neighbors[e];
                    const Lanes raw = heads.tile_row(sources, j)[t] + target;
                    const Lanes of_weight = weight_gradient[(e - begin) * heads.tiles() + t];
                    const Lanes score = heads.tile_row(weights, e)[t] * (of_weight - mean);
                    const Lanes of_raw = select(raw > 0.0f, score, kLeakySlope * score);
                    heads.tile_row(by_source, j)[t] += of_raw;
                    sum += of_raw;
                }
                heads.tile_row(by_target, i)[t] = sum;
            }
        }
        const Lanes *source = layer.vectors[kSource].value.row(0), *target = layer.vectors[kTarget].value.row(0);
        for (int b = 0; b < heads.blocks(); ++b) {
            Lanes source_sum = {}, target_sum = {};
            for (int32_t j = 0; j < graph.size(); ++j) {
                const Lanes source_j = heads.tile_row(by_source, j)[heads.tile_of(b)];
                const Lanes target_j = heads.tile_row(by_target, j)[heads.tile_of(b)];
                heads.unit_row(gradient, j)[b] += source_j * source[b] + target_j * target[b];
                source_sum += source_j * heads.unit_row(linear, j)[b];
                target_sum += target_j * heads.unit_row(linear, j)[b];
            }
            layer.vectors[kSource].gradient.row(0)[b] = source_sum;
            layer.vectors[kTarget].gradient.row(0)[b] = target_sum;
        }
    });
}

}  // namespace

std::shared_ptr<const LayerKind> make_gat_kind() { return std::make_shared<GatKind>(); }

}  // namespace bmpaudit
