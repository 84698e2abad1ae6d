// The layer of a graph attention network (Veličković et al. 2018). Its vectors are the attention of the source and of the
// target of an edge.
#include <memory>
#include <vector>

#include "layer_kinds.hpp"

namespace bmpaudit {

namespace {

constexpr float kLeakySlope = 0.2f;
constexpr int kSource = 0, kTarget = 1;  // the vectors
constexpr float kSoftmaxFloor = 1e-16f;  // as in torch_geometric.utils.softmax

// How the blocks of a layer's units and of its tiles (one value a head, repeated) go together; with numbers other than
// 0, known to the compiler.
template <int B, int T> struct HeadLayout {
    const LayerShape &shape;

    int blocks() const { return B != 0 ? B : shape.blocks; }
    int tiles() const { return T != 0 ? T : shape.tile_blocks; }
    int tile_of(int block) const { return T == 1 ? 0 : block % tiles(); }

    // Sums over the channels of each head, repeated so that lane l holds the sum of head l mod stride.
    void fold(const Lanes *x, const Lanes *y, Lanes *tile) const {
        for (int t = 0; t < tiles(); ++t) tile[t] = Lanes{};
        for (int b = 0; b < blocks(); ++b) tile[tile_of(b)] += x[b] * y[b];
        for (int by = kLanes / 2; by >= shape.head_stride; by /= 2) tile[0] += rotate(tile[0], by);
    }
};

template <typename Kernel> void with_head_layout(const LayerShape &shape, Kernel kernel) {
    if (shape.tile_blocks == 1 && shape.blocks == 1) kernel(HeadLayout<1, 1>{shape});
    else if (shape.tile_blocks == 1 && shape.blocks == 2) kernel(HeadLayout<2, 1>{shape});
    else kernel(HeadLayout<0, 0>{shape});
}

// One coin a head, repeated like a tile.
uint32_t repeat_heads(uint32_t coins, int head_stride) {
    if (head_stride >= kLanes) return coins;
    coins &= (1u << head_stride) - 1;
    for (int filled = head_stride; filled < kLanes; filled *= 2) coins |= coins << filled;
    return coins;
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
        if (!edges.is_training && !graph.has_edges()) pass.output = pass.linear;
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
        for (int32_t j = 0; j < graph.size(); ++j) {
            heads.fold(pass.linear.row(j), layer.vectors[kSource].value.row(0), kept.source_score.row(j));
            heads.fold(pass.linear.row(j), layer.vectors[kTarget].value.row(0), kept.target_score.row(j));
        }
        for (int32_t i = 0; i < graph.size(); ++i) {
            const int64_t begin = graph.start[i], end = graph.start[i + 1];
            for (int t = 0; t < heads.tiles(); ++t) {
                Lanes largest = splat(-INFINITY), total = splat(kSoftmaxFloor);
                for (int64_t e = begin; e < end; ++e) {
                    const Lanes raw = kept.source_score.row(graph.neighbors[e])[t] + kept.target_score.row(i)[t];
                    const Lanes score = select(raw > 0.0f, raw, kLeakySlope * raw);
                    kept.weight.row(e)[t] = score;
                    largest = max_lanes(largest, score);
                }
                for (int64_t e = begin; e < end; ++e) {
                    const Lanes weight = exp_lanes(kept.weight.row(e)[t] - largest);
                    kept.weight.row(e)[t] = weight;
                    total += weight;
                }
                const Lanes share = 1.0f / total;
                for (int64_t e = begin; e < end; ++e) kept.weight.row(e)[t] *= share;
                if (!drops_here) continue;
                for (int64_t e = begin; e < end; ++e) {
                    const uint32_t coins = repeat_heads(keep.next_sixteen(), layer.shape.head_stride);
                    kept.keep.row(e)[t] = scale * lanes_of_bits(coins);
                }
            }
            Lanes *out = pass.output.row(i);
            for (int b = 0; b < heads.blocks(); ++b) out[b] = Lanes{};
            for (int64_t e = begin; e < end; ++e) {
                const Lanes *linear = pass.linear.row(graph.neighbors[e]);
                for (int b = 0; b < heads.blocks(); ++b) {
                    Lanes weight = kept.weight.row(e)[heads.tile_of(b)];
                    if (drops_here) weight *= kept.keep.row(e)[heads.tile_of(b)];
                    out[b] += weight * linear[b];
                }
            }
        }
    });
}

void GatKind::backward(const TrainingGraph &graph, Layer &layer, Pass &pass, Matrix &output_gradient) const {
    auto &kept = static_cast<KeptAttention &>(*pass.kept);
    const bool dropped = kept.is_dropped;
    pass.linear_gradient.reshape(graph.size(), layer.shape.blocks);
    kept.source_gradient.reshape(graph.size(), layer.shape.tile_blocks);
    kept.target_gradient.reshape(graph.size(), layer.shape.tile_blocks);
    pass.linear_gradient.fill_zero();
    kept.source_gradient.fill_zero();
    layer.vectors[kSource].gradient.fill_zero();
    layer.vectors[kTarget].gradient.fill_zero();
    std::vector<Lanes> weight_gradient;

    with_head_layout(layer.shape, [&](auto heads) {
        const int tiles = heads.tiles();
        for (int32_t i = 0; i < graph.size(); ++i) {
            const int64_t begin = graph.start[i], end = graph.start[i + 1];
            const Lanes *g = output_gradient.row(i);
            weight_gradient.resize((end - begin) * tiles);
            for (int64_t e = begin; e < end; ++e) {
                const int32_t j = graph.neighbors[e];
                heads.fold(g, pass.linear.row(j), &weight_gradient[(e - begin) * tiles]);
                for (int b = 0; b < heads.blocks(); ++b) {
                    Lanes weight = kept.weight.row(e)[heads.tile_of(b)];
                    if (dropped) weight *= kept.keep.row(e)[heads.tile_of(b)];
                    pass.linear_gradient.row(j)[b] += weight * g[b];
                }
            }
            for (int t = 0; t < tiles; ++t) {
                Lanes mean = {};
                for (int64_t e = begin; e < end; ++e) {
                    Lanes &gradient = weight_gradient[(e - begin) * tiles + t];
                    if (dropped) gradient *= kept.keep.row(e)[t];
                    mean += kept.weight.row(e)[t] * gradient;
                }
                Lanes target = {};
                for (int64_t e = begin; e < end; ++e) {
                    const int32_t j = graph.neighbors[e];
                    const Lanes raw = kept.source_score.row(j)[t] + kept.target_score.row(i)[t];
                    const Lanes slope = select(raw > 0.0f, splat(1.0f), splat(kLeakySlope));
                    const Lanes score =
                        kept.weight.row(e)[t] * (weight_gradient[(e - begin) * tiles + t] - mean) * slope;
                    kept.source_gradient.row(j)[t] += score;
                    target += score;
                }
                kept.target_gradient.row(i)[t] = target;
            }
        }
        const Lanes *source = layer.vectors[kSource].value.row(0), *target = layer.vectors[kTarget].value.row(0);
        Lanes *source_sum = layer.vectors[kSource].gradient.row(0), *target_sum = layer.vectors[kTarget].gradient.row(0);
        for (int32_t j = 0; j < graph.size(); ++j) {
            for (int b = 0; b < heads.blocks(); ++b) {
                const Lanes by_source = kept.source_gradient.row(j)[heads.tile_of(b)];
                const Lanes by_target = kept.target_gradient.row(j)[heads.tile_of(b)];
                pass.linear_gradient.row(j)[b] += by_source * source[b] + by_target * target[b];
                source_sum[b] += by_source * pass.linear.row(j)[b];
                target_sum[b] += by_target * pass.linear.row(j)[b];
            }
        }
    });
}

}  // namespace

const LayerKind &gat_kind() {
    static const GatKind kind;
    return kind;
}

}  // namespace bmpaudit
