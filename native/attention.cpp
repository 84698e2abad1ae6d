// The attention of a GAT layer, forward and backward.
#include <vector>

#include "network.hpp"

namespace bmpaudit {

namespace {

constexpr float kLeakySlope = 0.2f;
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

}  // namespace

void Network::attend(const TrainingGraph &graph, const Layer &layer, Pass &pass, RandomBits *dropout) const {
    const bool drops_here = dropout != nullptr && drops(model_.drops_attention);
    const auto num_edges = static_cast<int64_t>(graph.neighbors.size());
    pass.source_score.reshape(graph.size(), layer.shape.tile_blocks);
    pass.target_score.reshape(graph.size(), layer.shape.tile_blocks);
    pass.attention.reshape(num_edges, layer.shape.tile_blocks);
    pass.output.reshape(graph.size(), layer.shape.blocks);
    if (drops_here) pass.attention_keep.reshape(num_edges, layer.shape.tile_blocks);
    PhiloxBits unused(0, 0, 0);
    CoinFlips keep(drops_here ? *dropout : unused, 1.0 - model_.dropout);
    const float scale = static_cast<float>(1.0 / keep.probability());

    with_head_layout(layer.shape, [&](auto heads) {
        for (int32_t j = 0; j < graph.size(); ++j) {
            heads.fold(pass.linear.row(j), layer.attention_source.value.row(0), pass.source_score.row(j));
            heads.fold(pass.linear.row(j), layer.attention_target.value.row(0), pass.target_score.row(j));
        }
        for (int32_t i = 0; i < graph.size(); ++i) {
            const int64_t begin = graph.start[i], end = graph.start[i + 1];
            for (int t = 0; t < heads.tiles(); ++t) {
                Lanes largest = splat(-INFINITY), total = splat(kSoftmaxFloor);
                for (int64_t e = begin; e < end; ++e) {
                    const Lanes raw = pass.source_score.row(graph.neighbors[e])[t] + pass.target_score.row(i)[t];
                    const Lanes score = raw > 0.0f ? raw : kLeakySlope * raw;
                    pass.attention.row(e)[t] = score;
                    largest = max_lanes(largest, score);
                }
                for (int64_t e = begin; e < end; ++e) {
                    const Lanes weight = exp_lanes(pass.attention.row(e)[t] - largest);
                    pass.attention.row(e)[t] = weight;
                    total += weight;
                }
                const Lanes share = 1.0f / total;
                for (int64_t e = begin; e < end; ++e) pass.attention.row(e)[t] *= share;
                if (!drops_here) continue;
                for (int64_t e = begin; e < end; ++e) {
                    const uint32_t coins = repeat_heads(keep.next_sixteen(), layer.shape.head_stride);
                    pass.attention_keep.row(e)[t] = scale * lanes_of_bits(coins);
                }
            }
            Lanes *out = pass.output.row(i);
            for (int b = 0; b < heads.blocks(); ++b) out[b] = Lanes{};
            for (int64_t e = begin; e < end; ++e) {
                const Lanes *linear = pass.linear.row(graph.neighbors[e]);
                for (int b = 0; b < heads.blocks(); ++b) {
                    Lanes weight = pass.attention.row(e)[heads.tile_of(b)];
                    if (drops_here) weight *= pass.attention_keep.row(e)[heads.tile_of(b)];
                    out[b] += weight * linear[b];
                }
            }
        }
    });
}

void Network::attend_backward(const TrainingGraph &graph, Layer &layer, Pass &pass, const Matrix &output_gradient) const {
    const bool dropped = drops(model_.drops_attention);
    pass.linear_gradient.reshape(graph.size(), layer.shape.blocks);
    pass.source_gradient.reshape(graph.size(), layer.shape.tile_blocks);
    pass.target_gradient.reshape(graph.size(), layer.shape.tile_blocks);
    pass.linear_gradient.fill_zero();
    pass.source_gradient.fill_zero();
    layer.attention_source.gradient.fill_zero();
    layer.attention_target.gradient.fill_zero();
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
                    Lanes weight = pass.attention.row(e)[heads.tile_of(b)];
                    if (dropped) weight *= pass.attention_keep.row(e)[heads.tile_of(b)];
                    pass.linear_gradient.row(j)[b] += weight * g[b];
                }
            }
            for (int t = 0; t < tiles; ++t) {
                Lanes mean = {};
                for (int64_t e = begin; e < end; ++e) {
                    Lanes &gradient = weight_gradient[(e - begin) * tiles + t];
                    if (dropped) gradient *= pass.attention_keep.row(e)[t];
                    mean += pass.attention.row(e)[t] * gradient;
                }
                Lanes target = {};
                for (int64_t e = begin; e < end; ++e) {
                    const int32_t j = graph.neighbors[e];
                    const Lanes raw = pass.source_score.row(j)[t] + pass.target_score.row(i)[t];
                    const Lanes slope = raw > 0.0f ? splat(1.0f) : splat(kLeakySlope);
                    const Lanes score =
                        pass.attention.row(e)[t] * (weight_gradient[(e - begin) * tiles + t] - mean) * slope;
                    pass.source_gradient.row(j)[t] += score;
                    target += score;
                }
                pass.target_gradient.row(i)[t] = target;
            }
        }
        const Lanes *source = layer.attention_source.value.row(0), *target = layer.attention_target.value.row(0);
        Lanes *source_sum = layer.attention_source.gradient.row(0), *target_sum = layer.attention_target.gradient.row(0);
        for (int32_t j = 0; j < graph.size(); ++j) {
            for (int b = 0; b < heads.blocks(); ++b) {
                const Lanes by_source = pass.source_gradient.row(j)[heads.tile_of(b)];
                const Lanes by_target = pass.target_gradient.row(j)[heads.tile_of(b)];
                pass.linear_gradient.row(j)[b] += by_source * source[b] + by_target * target[b];
                source_sum[b] += by_source * pass.linear.row(j)[b];
                target_sum[b] += by_target * pass.linear.row(j)[b];
            }
        }
    });
}

}  // namespace bmpaudit
