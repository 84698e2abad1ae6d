#include "network.hpp"

#include <algorithm>
#include <utility>

#include "choices.hpp"
#include "matrix_products.hpp"

namespace bmpaudit {

namespace {

void add_to_rows(Matrix &rows, const Lanes *bias) {
    for (int64_t i = 0; i < rows.rows(); ++i)
        for (int b = 0; b < rows.blocks(); ++b) rows.row(i)[b] += bias[b];
}

}  // namespace

Activation activation_of(const std::string &name) {
    static const Choices<Activation> activations = {{"elu", Activation::elu}, {"relu", Activation::relu}};
    return chosen("activation", name, activations);
}

Network::Network(const FeatureView &features, int num_classes, const ModelSettings &model, const TrainingSettings &training)
    : features_(features), num_classes_(num_classes), model_(model), epochs_(training.epochs), optimizer_(training),
      passes_(model.layers), scoring_(model.layers) {
    int inputs = features.num_features;
    std::vector<int> input_row(inputs);
    for (int k = 0; k < inputs; ++k) input_row[k] = k;
    for (int l = 0; l < model.layers; ++l) {
        const bool is_last = l + 1 == model.layers;
        const LayerShape shape(inputs, is_last ? num_classes : model.hidden, is_last ? 1 : model.heads);
        layers_.emplace_back(shape, input_row, model.kind->num_vectors());
        inputs = shape.blocks * kLanes;
        input_row.resize(shape.units());
        for (int unit = 0; unit < shape.units(); ++unit) input_row[unit] = shape.lane(unit);
        passes_[l].kept = model.kind->make_kept();
        scoring_[l].kept = model.kind->make_kept();
    }
}

int64_t Network::num_parameters() const {
    int64_t count = 0;
    for (const Layer &layer : layers_) count += layer.num_parameters();
    return count;
}

void Network::load(const float *flat) {
    for (Layer &layer : layers_) {
        visit_parameters(layer, [](Parameter &parameter) { parameter.clear(); });
        visit_numbers(layer, [&](Parameter &parameter, int row, int lane) { parameter.value.floats(row)[lane] = *flat++; });
    }
}

void Network::save(float *flat) const {
    for (const Layer &layer : layers_)
        visit_numbers(layer, [&](const Parameter &p, int row, int lane) { *flat++ = p.value.floats(row)[lane]; });
}

void Network::save_gradient(float *flat) const {
    for (const Layer &layer : layers_)
        visit_numbers(layer, [&](const Parameter &p, int row, int lane) { *flat++ = p.gradient.floats(row)[lane]; });
}

void Network::initialise(RandomBits &random) {
    std::vector<float> flat;
    flat.reserve(num_parameters());
    for (const Layer &layer : layers_) {
        const int units = layer.shape.units();
        const auto glorot = [&](int64_t count, int fan) {
            const double bound = std::sqrt(6.0 / fan);
            for (int64_t k = 0; k < count; ++k) flat.push_back(static_cast<float>((2.0 * random.unit() - 1.0) * bound));
        };
        glorot(static_cast<int64_t>(units) * layer.num_inputs(), units + layer.num_inputs());
        glorot(static_cast<int64_t>(units) * layer.vectors.size(), model_.kind->vector_fan(layer.shape));
        flat.insert(flat.end(), units, 0.0f);
    }
    load(flat.data());
}

bool Network::is_finite() const {
    bool finite = true;
    for (const Layer &layer : layers_)
        visit_numbers(layer, [&](const Parameter &p, int row, int lane) { finite &= std::isfinite(p.value.floats(row)[lane]); });
    return finite;
}

std::vector<double> Network::draw_noise(RandomBits &random) const {
    std::vector<double> noise(layers_.back().num_parameters());
    Normals normals(random);
    for (double &value : noise) value = normals.next();
    return noise;
}

Layer Network::noisy_last_layer(const std::vector<double> &noise, double noise_std) const {
    Layer noisy = layers_.back();
    auto next = noise.begin();
    visit_numbers(noisy, [&](Parameter &parameter, int row, int lane) {
        parameter.value.floats(row)[lane] += static_cast<float>(noise_std * *next++);
    });
    return noisy;
}

void Network::begin(const TrainingGraph &graph) {
    if (!features_.is_sparse() || drops(model_.drops_input)) return;
    const bool has_values = features_.values != nullptr;
    // The sample's rows, next to each other: read once an epoch, they should come in one stream.
    kept_scale_ = 1.0f;
    kept_start_.assign(1, 0);
    kept_index_.clear();
    kept_value_.clear();
    column_start_.assign(features_.num_features + 1, 0);
    for (const int32_t node : graph.nodes) {
        const int64_t begin = features_.indptr[node], end = features_.indptr[node + 1];
        kept_index_.insert(kept_index_.end(), features_.indices + begin, features_.indices + end);
        if (has_values) kept_value_.insert(kept_value_.end(), features_.values + begin, features_.values + end);
        for (int64_t e = begin; e < end; ++e) ++column_start_[features_.indices[e] + 1];
        kept_start_.push_back(static_cast<int64_t>(kept_index_.size()));
    }
    // The same by column.
    for (int32_t f = 0; f < features_.num_features; ++f) column_start_[f + 1] += column_start_[f];
    column_node_.resize(kept_index_.size());
    column_value_.resize(kept_value_.size());
    std::vector<int64_t> next(column_start_.begin(), column_start_.end() - 1);
    for (int32_t i = 0; i < graph.size(); ++i) {
        for (int64_t e = kept_start_[i]; e < kept_start_[i + 1]; ++e) {
            const int64_t at = next[kept_index_[e]]++;
            column_node_[at] = i;
            if (has_values) column_value_[at] = kept_value_[e];
        }
    }
}

void Network::drop_inputs(const TrainingGraph &graph, RandomBits &random) {
    CoinFlips keep(random, 1.0 - model_.dropout);
    kept_scale_ = static_cast<float>(1.0 / keep.probability());
    if (!features_.is_sparse()) {
        const int width = features_.num_features;
        dense_rows_.resize(static_cast<size_t>(graph.size()) * width);
        for (int32_t i = 0; i < graph.size(); ++i) {
            const float *from = features_.dense_row(graph.nodes[i]);
            float *to = dense_rows_.data() + static_cast<int64_t>(i) * width;
            for (int k = 0; k < width; k += kLanes) {
                const uint32_t coins = keep.next_sixteen();
                for (int q = 0; q < std::min(kLanes, width - k); ++q) to[k + q] = (coins >> q & 1) ? from[k + q] * kept_scale_ : 0;
            }
        }
        return;
    }
    // Only non-zero features need a coin: dropping a zero changes nothing.
    kept_start_.assign(1, 0);
    int64_t most = 0;
    for (const int32_t node : graph.nodes) most += features_.indptr[node + 1] - features_.indptr[node];
    kept_index_.resize(most + 1);
    kept_value_.resize(features_.values == nullptr ? 0 : most + 1);
    int64_t kept = 0;
    for (const int32_t node : graph.nodes) {
        for (int64_t e = features_.indptr[node]; e < features_.indptr[node + 1]; e += kLanes) {
            const uint32_t coins = keep.next_sixteen();
            const int64_t count = std::min<int64_t>(kLanes, features_.indptr[node + 1] - e);
            for (int64_t q = 0; q < count; ++q) {
                kept_index_[kept] = features_.indices[e + q];
                if (features_.values != nullptr) kept_value_[kept] = features_.values[e + q];
                kept += coins >> q & 1;
            }
        }
        kept_start_.push_back(kept);
    }
}

void Network::sample_times_weight(const TrainingGraph &graph, Matrix &result) const {
    const Matrix &weight = layers_[0].weight.value;
    if (!features_.is_sparse()) {
        rows_times_weight(graph.size(), features_.num_features, [&](int64_t i) { return sample_row(graph, i); }, weight,
                          result);
        return;
    }
    sparse_times_weight(graph.size(), [&](int64_t i) { return std::pair(kept_start_[i], kept_start_[i + 1]); },
                        kept_index_.data(), kept_value_.empty() ? nullptr : kept_value_.data(), weight, kept_scale_, result);
}

void Network::features_times_weight(const TrainingGraph &whole, const Layer &layer, Matrix &result) const {
    const Matrix &weight = layer.weight.value;
    if (!features_.is_sparse()) {
        rows_times_weight(whole.size(), features_.num_features, [&](int64_t i) { return features_.dense_row(whole.nodes[i]); },
                          weight, result);
        return;
    }
    sparse_times_weight(whole.size(), [&](int64_t i) {
        return std::pair(features_.indptr[whole.nodes[i]], features_.indptr[whole.nodes[i] + 1]);
    }, features_.indices, features_.values, weight, 1.0f, result);
}

void Network::input_times_weight(const Matrix &input, const Layer &layer, Matrix &result) const {
    rows_times_weight(input.rows(), layer.shape.inputs, [&](int64_t i) { return input.floats(i); }, layer.weight.value, result);
}

void Network::activate(const Matrix &output, Pass &next, RandomBits *dropout) const {
    const bool drops_here = dropout != nullptr && drops(model_.drops_hidden);
    next.input.reshape(output.rows(), output.blocks());
    if (dropout != nullptr) next.input_slope.reshape(output.rows(), output.blocks());
    PhiloxBits unused(0, 0, 0);
    CoinFlips keep(drops_here ? *dropout : unused, 1.0 - model_.dropout);
    const float scale = drops_here ? static_cast<float>(1.0 / keep.probability()) : 1.0f;
    const bool is_relu = model_.activation == Activation::relu;
    for (int64_t i = 0; i < output.rows(); ++i) {
        for (int b = 0; b < output.blocks(); ++b) {
            const Lanes z = output.row(i)[b];
            const Lanes below = is_relu ? Lanes{} : exp_lanes(z);  // derivative where z is not positive
            const Lanes kept = drops_here ? scale * lanes_of_bits(keep.next_sixteen()) : splat(1.0f);
            const Lanes value = select(z > 0.0f, z, is_relu ? Lanes{} : below - 1.0f);
            next.input.row(i)[b] = select(z == z, value, z) * kept;
            if (dropout != nullptr) next.input_slope.row(i)[b] = select(z > 0.0f, splat(1.0f), below) * kept;
        }
    }
}

void Network::propagate(const TrainingGraph &graph, const Layer &layer, Pass &pass, RandomBits *dropout) const {
    const EdgeSettings edges{dropout != nullptr, drops(model_.drops_attention) ? dropout : nullptr, model_.dropout};
    model_.kind->propagate(graph, layer, edges, pass);
    add_to_rows(pass.output, layer.bias.value.row(0));
}

void Network::train(const TrainingGraph &graph, const int32_t *labels, RandomBits &random, Worker &worker) {
    begin(graph);
    for (int epoch = 1; epoch <= epochs_; ++epoch) {
        forward(graph, &random, worker);
        output_gradient(graph, labels);
        backward(graph, epoch, worker);
    }
}

void Network::forward(const TrainingGraph &graph, RandomBits *dropout, Worker &worker) {
    if (drops(model_.drops_input)) drop_inputs(graph, *dropout);
    for (size_t l = 0; l < layers_.size(); ++l) {
        worker.checkpoint();
        Pass &pass = passes_[l];
        if (l == 0) sample_times_weight(graph, pass.linear);
        else input_times_weight(pass.input, layers_[l], pass.linear);
        propagate(graph, layers_[l], pass, dropout);
        if (l + 1 < layers_.size()) activate(pass.output, passes_[l + 1], dropout);
    }
}

void Network::output_gradient(const TrainingGraph &graph, const int32_t *labels) {
    const Matrix &logits = passes_.back().output;
    const int blocks = logits.blocks();
    output_gradient_.reshape(graph.size(), blocks);
    const float share = 1.0f / static_cast<float>(graph.size());
    for (int32_t i = 0; i < graph.size(); ++i) {
        Lanes largest = splat(-INFINITY), total = {};
        for (int b = 0; b < blocks; ++b) {
            const IntLanes is_class = lane_numbers() + b * kLanes < num_classes_;
            largest = max_lanes(largest, select(is_class, logits.row(i)[b], splat(-INFINITY)));
        }
        const float top = largest_lane(largest);
        for (int b = 0; b < blocks; ++b) {
            const IntLanes is_class = lane_numbers() + b * kLanes < num_classes_;
            const Lanes weight = select(is_class, exp_lanes(logits.row(i)[b] - top), Lanes{});
            output_gradient_.row(i)[b] = weight;
            total += weight;
        }
        const float scale = share / sum_lanes(total);
        for (int b = 0; b < blocks; ++b) output_gradient_.row(i)[b] *= scale;
        output_gradient_.floats(i)[labels[graph.nodes[i]]] -= share;
    }
}

void Network::backward(const TrainingGraph &graph, int epoch, Worker &worker) {
    const bool takes_step = epoch > 0;
    if (takes_step) optimizer_.begin_step(epoch);
    for (size_t l = layers_.size(); l-- > 0;) {
        worker.checkpoint();
        Layer &layer = layers_[l];
        Pass &pass = passes_[l];
        layer.bias.gradient.fill_zero();
        for (int32_t i = 0; i < graph.size(); ++i)
            for (int b = 0; b < layer.shape.blocks; ++b) layer.bias.gradient.row(0)[b] += output_gradient_.row(i)[b];
        model_.kind->backward(graph, layer, pass, output_gradient_);
        if (l == 0) {
            first_weight_backward(graph, pass.linear_gradient, takes_step);
        } else {
            const auto input_row = [&](int64_t i) { return pass.input.floats(i); };
            transposed_rows_times(graph.size(), layer.shape.inputs, input_row, pass.linear_gradient, layer.weight.gradient);
            // The gradient of the input, with the weights as they were in the forward pass.
            const int lanes = layer.shape.blocks * kLanes;
            transposed_weight_.reshape(lanes, blocks_for(layer.shape.inputs));
            for (int k = 0; k < layer.shape.inputs; ++k)
                for (int lane = 0; lane < lanes; ++lane)
                    transposed_weight_.floats(lane)[k] = layer.weight.value.floats(k)[lane];
            const int used = (layer.shape.channels - 1) * layer.shape.head_stride + layer.shape.heads;
            rows_times_weight(graph.size(), used, [&](int64_t i) { return pass.linear_gradient.floats(i); },
                              transposed_weight_, output_gradient_);
            for (int32_t i = 0; i < graph.size(); ++i)
                for (int b = 0; b < output_gradient_.blocks(); ++b) output_gradient_.row(i)[b] *= pass.input_slope.row(i)[b];
            if (takes_step) optimizer_.step(layer.weight);
        }
        if (takes_step) {
            optimizer_.step(layer.bias);
            for (Parameter &vector : layer.vectors) optimizer_.step(vector);
        }
    }
}

void Network::first_weight_backward(const TrainingGraph &graph, const Matrix &gradient, bool takes_step) {
    Parameter &weight = layers_[0].weight;
    const int blocks = gradient.blocks();
    if (!features_.is_sparse()) {
        transposed_rows_times(graph.size(), features_.num_features, [&](int64_t i) { return sample_row(graph, i); },
                              gradient, weight.gradient);
        if (takes_step) optimizer_.step(weight);
    } else if (drops(model_.drops_input)) {
        weight.gradient.fill_zero();
        for (int32_t i = 0; i < graph.size(); ++i) {
            const Lanes *g = gradient.row(i);
            for (int64_t e = kept_start_[i]; e < kept_start_[i + 1]; ++e) {
                const float value = kept_value_.empty() ? kept_scale_ : kept_scale_ * kept_value_[e];
                Lanes *sum = weight.gradient.row(kept_index_[e]);
                for (int b = 0; b < blocks; ++b) sum[b] += value * g[b];
            }
        }
        if (takes_step) optimizer_.step(weight);
    } else {
        const float *values = column_value_.empty() ? nullptr : column_value_.data();
        for_block_groups(blocks, [&](auto width, int first) {
            for (int32_t f = 0; f < features_.num_features; ++f)
                sum_of_rows<decltype(width)::value>(column_start_[f], column_start_[f + 1], column_node_.data(), values,
                                                    gradient, first, weight.gradient.row(f) + first);
        });
        if (takes_step) optimizer_.step(weight);
    }
}

void Network::gradient_without_dropout(const TrainingGraph &graph, const int32_t *labels, Worker &worker) {
    PhiloxBits unused(0, 0, 0);
    begin(graph);
    forward(graph, &unused, worker);
    output_gradient(graph, labels);
    backward(graph, 0, worker);
}

}  // namespace bmpaudit
