#include "gnn/network.hpp"

#include <algorithm>
#include <utility>

#include "gnn/layer.hpp"
#include "gnn/loss.hpp"
#include "gnn/matrix.hpp"

namespace bmpaudit {

Activation activation_of(const std::string &name) {
    static const Choices<Activation> activations = {{"elu", Activation::elu}, {"relu", Activation::relu}};
    return chosen("activation", name, activations);
}

Initialisation initialisation_of(const std::string &name) {
    static const Choices<Initialisation> laws = {{"fan_in", Initialisation::fan_in}, {"glorot", Initialisation::glorot}};
    return chosen("initialisation", name, laws);
}

EdgeMatrices ModelSettings::edge_matrices() const {
    EdgeMatrices matrices;
    for (const LayerSettings &layer : layers) matrices = matrices | layer.kind->edge_matrices();
    return matrices;
}

FeatureLayout ModelSettings::feature_layout(int num_features) const {
    const LayerSettings &first = layers.front();
    return {first.shape(num_features).linear_blocks(), first.kind->input_parts(), first.drops_input && dropout > 0};
}

void ShownGraph::show(const Adjacency &edges, const GraphFeatures &features, const ModelSettings &model) {
    const std::vector<uint8_t> everyone(edges.num_nodes(), 1);
    std::vector<int32_t> place;
    graph.induce(edges, everyone.data(), place, model.edge_matrices());
    FeatureLayout layout = model.feature_layout(features.num_features());
    if (!layout.parts.has_largest) return;
    layout.is_dropped = false;
    gathered = std::make_unique<SampleFeatures>(features, layout);
    gathered->begin(graph, Uses::many);
}

Network::Network(const GraphFeatures &features, int num_classes, const ModelSettings &model, const TrainingSettings &training)
    : features_(features), num_classes_(num_classes), model_(model),
      label_smoothing_(training.label_smoothing), optimizer_(training),
      passes_(model.layers.size()), scoring_(model.layers.size()),
      sample_(features, model.feature_layout(features.num_features())) {
    int inputs = features.num_features();
    std::vector<int> input_row(inputs);
    for (int k = 0; k < inputs; ++k) input_row[k] = k;
    for (size_t l = 0; l < model.layers.size(); ++l) {
        const LayerShape shape = model.layers[l].shape(inputs);
        layers_.emplace_back(shape, input_row, kind(l).num_vectors(), norm_vectors(model.layers[l].norm));
        inputs = shape.blocks * kLanes;
        input_row.resize(shape.units());
        for (int unit = 0; unit < shape.units(); ++unit) input_row[unit] = shape.lane(unit);
        passes_[l].kept = kind(l).make_kept();
        scoring_[l].kept = kind(l).make_kept();
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
    const auto uniform = [&](int64_t count, double bound) {
        for (int64_t k = 0; k < count; ++k) flat.push_back(static_cast<float>((2.0 * random.unit() - 1.0) * bound));
    };
    for (size_t l = 0; l < layers_.size(); ++l) {
        const Layer &layer = layers_[l];
        const int units = layer.shape.units();
        const bool is_glorot = model_.layers[l].initialisation == Initialisation::glorot;
        const double fan_in_bound = 1.0 / std::sqrt(static_cast<double>(layer.num_inputs()));
        uniform(layer.num_weights(), is_glorot ? std::sqrt(6.0 / (units + layer.num_inputs())) : fan_in_bound);
        uniform(static_cast<int64_t>(units) * layer.vectors.size(), std::sqrt(6.0 / kind(l).vector_fan(layer.shape)));
        if (is_glorot) flat.insert(flat.end(), units, 0.0f);
        else uniform(units, fan_in_bound);
        // Scale and shift, running mean and variance.
        for (size_t vector = 0; vector < layer.norm.size(); ++vector)
            flat.insert(flat.end(), units, vector == 0 || vector == 3 ? 1.0f : 0.0f);
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

void Network::keep() {
    size_t number = 0;
    const auto keep = [&](const Parameter &parameter) {
        if (number == kept_.size()) kept_.emplace_back();
        kept_[number++] = parameter.value;
    };
    for (const Layer &layer : layers_) visit_parameters(layer, keep);
}

void Network::restore() {
    auto next = kept_.begin();
    for (Layer &layer : layers_) visit_parameters(layer, [&](Parameter &parameter) { parameter.value = *next++; });
}

void Network::multiply_input(const TrainingGraph &graph, size_t l, const Layer &layer, Pass &pass) const {
    if (gathers(l)) gather_largest(graph, pass.input, kind(l).input_parts(), pass.gathered);
    const Matrix &input = multiplied(l, pass);
    rows_times_weight(input.rows(), layer.shape.inputs, [&](int64_t i) { return input.floats(i); }, layer.weight.value,
                      pass.linear);
}

void Network::multiply_shown(const ShownGraph &shown, size_t l, const Layer &layer) {
    Pass &pass = scoring_[l];
    if (l > 0) multiply_input(shown.graph, l, layer, pass);
    else if (shown.gathered != nullptr) shown.gathered->times(layer.weight.value, pass.linear);
    else features_.times(layer.weight.value, pass.linear);
}

void Network::propagate_shown(const TrainingGraph &graph, size_t l) {
    propagate(graph, l, layers_[l], scoring_[l], nullptr);
    if (has_norm(l)) normalise_trained(model_.layers[l].norm, layers_[l], scoring_[l].output);
    activate(l + 1, scoring_, nullptr);
}

const Matrix &Network::evaluate(const TrainingGraph &sample, const SampleFeatures &features, Worker &worker) {
    const size_t last = layers_.size() - 1;
    for (size_t l = 0; l <= last; ++l) {
        worker.checkpoint();
        if (l == 0) features.times(layers_[0].weight.value, scoring_[0].linear);
        else multiply_input(sample, l, layers_[l], scoring_[l]);
        if (l < last) propagate_shown(sample, l);
    }
    propagate(sample, last, layers_[last], scoring_[last], nullptr);
    return scoring_[last].output;
}

void Network::activate(size_t l, std::vector<Pass> &passes, RandomBits *dropout) const {
    Matrix &output = passes[l - 1].output;
    Pass &next = passes[l];
    const size_t from = residual_from(l - 1);
    const bool keeps_slope = dropout != nullptr && (from > 0 || model_.activation != Activation::relu);
    next.has_slope = keeps_slope;
    const bool drops_here = dropout != nullptr && drops_input(l);
    PhiloxBits unused(0, 0, 0);
    CoinFlips keep(drops_here ? *dropout : unused, 1.0 - model_.dropout);
    const float scale = next.input_scale = drops_here ? static_cast<float>(1.0 / keep.probability()) : 1.0f;
    std::swap(next.input, output);  // in place: what a pass writes and reads again is more than a core's own caches hold
    const int64_t size = next.input.rows() * next.input.blocks();
    Lanes *input = next.input.row(0);
    const auto kept = [&] { return drops_here ? only(keep.next_sixteen(), splat(scale)) : splat(1.0f); };
    const bool is_relu = model_.activation == Activation::relu;
    if (is_relu && from == 0) {
        for (int64_t at = 0; at < size; ++at) {
            const Lanes z = input[at];
            input[at] = select(z > 0.0f, z, select(z == z, Lanes{}, z)) * kept();
        }
        return;
    }
    if (keeps_slope) next.input_slope.reshape(next.input.rows(), next.input.blocks());
    Lanes *slope = next.input_slope.row(0);
    if (from > 0) {
        next.input_kept.reshape(next.input.rows(), next.input.blocks());
        const Lanes *residual = passes[from].input.row(0);
        Lanes *factors = next.input_kept.row(0);
        for (int64_t at = 0; at < size; ++at) {
            const Lanes z = input[at], power = is_relu ? Lanes{} : exp_lanes(z), factor = kept();
            const Lanes below = is_relu ? select(z == z, Lanes{}, z) : power - 1.0f;
            input[at] = (select(z > 0.0f, z, below) + residual[at]) * factor;
            if (keeps_slope) slope[at] = select(z > 0.0f, splat(1.0f), power) * factor;
            factors[at] = factor;
        }
        return;
    }
    for (int64_t at = 0; at < size; ++at) {
        const Lanes z = input[at], power = exp_lanes(z), factor = kept();
        input[at] = select(z > 0.0f, z, power - 1.0f) * factor;
        if (dropout != nullptr) slope[at] = select(z > 0.0f, splat(1.0f), power) * factor;
    }
}

Lanes Network::slope_at_input(const Pass &pass, int64_t i, int b) const {
    if (pass.has_slope) return pass.input_slope.row(i)[b];
    return select(pass.input.row(i)[b] > 0.0f, splat(pass.input_scale), Lanes{});
}

void Network::propagate(const TrainingGraph &graph, size_t l, const Layer &layer, Pass &pass, RandomBits *dropout) const {
    const EdgeSettings edges{dropout != nullptr, drops_attention(l) ? dropout : nullptr, model_.dropout};
    kind(l).propagate(graph, layer, edges, pass);
}

void Network::step(const TrainingGraph &graph, const std::vector<int32_t> &labels, const StepNumber &number,
                   RandomBits &random, Worker &worker) {
    forward(graph, &random, worker);
    optimizer_.begin_step(number.step, number.epoch);
    backward(graph, labels, true, worker);
}

bool Network::has_head() const {
    const size_t last = layers_.size() - 1;
    const LayerShape &shape = layers_[last].shape;
    return last > 0 && kind(last).is_linear() && (!goes_along_edges(last) || shape.inputs <= shape.blocks * kLanes);
}

void Network::forward(const TrainingGraph &graph, RandomBits *dropout, Worker &worker) {
    if (drops_input(0)) sample_.drop(*dropout, model_.dropout);
    for (size_t l = 0; l < layers_.size(); ++l) {
        worker.checkpoint();
        if (l + 1 == layers_.size() && has_head()) break;
        Pass &pass = passes_[l];
        if (l == 0) sample_.times(layers_[0].weight.value, pass.linear);
        else multiply_input(graph, l, layers_[l], pass);
        propagate(graph, l, layers_[l], pass, dropout);
        if (has_norm(l)) normalise(model_.layers[l].norm, layers_[l], pass.output, pass.norm);
        if (l + 1 < layers_.size()) activate(l + 1, passes_, dropout);
    }
}

void Network::backward(const TrainingGraph &graph, const std::vector<int32_t> &labels, bool takes_step, Worker &worker) {
    const CrossEntropy loss(num_classes_, labels, label_smoothing_);
    if (!has_head()) {
        std::swap(output_gradient_, passes_.back().output);
        loss.to_gradient(output_gradient_);
    }
    for (size_t l = layers_.size(); l-- > 0;) {
        worker.checkpoint();
        Layer &layer = layers_[l];
        Pass &pass = passes_[l];
        const bool is_head = l + 1 == layers_.size() && has_head();
        if (is_head) head_backward(graph, loss);
        else kind(l).backward(graph, layer, pass, output_gradient_);
        // A batch's mean takes the bias away again. Rounding would leave a gradient that Adam scales up to whole steps.
        if (model_.layers[l].norm == Norm::batch) layer.bias.gradient.fill_zero();
        if (l == 0) {
            first_weight_backward(pass.linear_gradient, takes_step);
        } else {
            if (!is_head) hidden_weight_backward(graph, l);
            const Norm norm = model_.layers[l - 1].norm;
            if (has_norm(l - 1)) normalise_backward(norm, layers_[l - 1], passes_[l - 1].norm, output_gradient_);
            if (takes_step) optimizer_.step(layer.weight);
        }
        if (takes_step) {
            optimizer_.step(layer.bias);
            for (Parameter &vector : layer.vectors) optimizer_.step(vector);
            for (size_t vector = 0; vector < layer.norm.size() && vector < 2; ++vector) optimizer_.step(layer.norm[vector]);
        }
    }
}

void Network::head_backward(const TrainingGraph &graph, const CrossEntropy &loss) {
    const size_t last = layers_.size() - 1;
    Pass &pass = passes_[last];
    const InputParts parts = kind(last).input_parts();
    if (!goes_along_edges(last)) {
        if (gathers(last)) gather_largest(graph, pass.input, parts, pass.gathered);
        head_.learn(multiplied(last, pass), loss, layers_[last], gathered_gradient_);
        if (gathers(last)) scatter_largest(graph, pass.input, parts, pass.gathered, gathered_gradient_, output_gradient_);
        else std::swap(output_gradient_, gathered_gradient_);
        backward_through_input(last);
        return;
    }
    graph.normalised.product().multiply_into(pass.input, pass.gathered);
    head_.learn(pass.gathered, loss, layers_[last], gathered_gradient_);
    if (has_residual_input(last)) {
        graph.normalised.transposed().multiply_into(gathered_gradient_, output_gradient_);
        backward_through_input(last);
        return;
    }
    output_gradient_.reshape(graph.size(), pass.input.blocks());
    const RowPointers to(output_gradient_, 0);
    graph.normalised.transposed().multiply(
        gathered_gradient_, output_gradient_, [&, to](int64_t i, int first, auto width, const Lanes *sums) {
            for (int b = 0; b < decltype(width)::value; ++b) to(i)[first + b] = sums[b] * slope_at_input(pass, i, first + b);
        });
}

void Network::hidden_weight_backward(const TrainingGraph &graph, size_t l) {
    Layer &layer = layers_[l];
    const Pass &pass = passes_[l];
    const int64_t num_rows = pass.linear_gradient.rows();
    const int inputs = layer.shape.inputs, lanes = layer.shape.linear_blocks() * kLanes, used = layer.shape.used_lanes();
    const auto gradient_row = [&](int64_t i) { return pass.linear_gradient.floats(i); };
    // Transposed, as the lanes of the inputs are full, and those of a few classes are not.
    transposed_.reshape(lanes, blocks_for(inputs));
    transposed_rows_times(num_rows, used, gradient_row, multiplied(l, pass), transposed_);
    for (int k = 0; k < inputs; ++k)
        for (int lane = 0; lane < used; ++lane) layer.weight.gradient.floats(k)[lane] = transposed_.floats(lane)[k];
    // The gradient of the input, with the weights as they were in the forward pass.
    for (int k = 0; k < inputs; ++k)
        for (int lane = 0; lane < used; ++lane) transposed_.floats(lane)[k] = layer.weight.value.floats(k)[lane];
    if (!gathers(l) && !has_residual_input(l)) {
        output_gradient_.reshape(num_rows, transposed_.blocks());
        const RowPointers to(output_gradient_, 0);
        for_rows_times_weight(num_rows, used, gradient_row, transposed_, [&](int64_t i, int b, const Lanes &sum) {
            to(i)[b] = sum * slope_at_input(pass, i, b);
        });
        return;
    }
    if (gathers(l)) {
        rows_times_weight(num_rows, used, gradient_row, transposed_, gathered_gradient_);
        scatter_largest(graph, pass.input, kind(l).input_parts(), pass.gathered, gathered_gradient_, output_gradient_);
    } else {
        rows_times_weight(num_rows, used, gradient_row, transposed_, output_gradient_);
    }
    backward_through_input(l);
}

void Network::backward_through_input(size_t l) {
    Pass &pass = passes_[l];
    const size_t from = residual_from(l - 1);
    if (from > 0) passes_[from].residual_gradient.reshape(output_gradient_.rows(), output_gradient_.blocks());
    for (int64_t i = 0; i < output_gradient_.rows(); ++i) {
        for (int b = 0; b < output_gradient_.blocks(); ++b) {
            Lanes &gradient = output_gradient_.row(i)[b];
            if (pass.has_residual_gradient) gradient += pass.residual_gradient.row(i)[b];
            if (from > 0) passes_[from].residual_gradient.row(i)[b] = gradient * pass.input_kept.row(i)[b];
            gradient *= slope_at_input(pass, i, b);
        }
    }
    pass.has_residual_gradient = false;
    if (from > 0) passes_[from].has_residual_gradient = true;
}

void Network::first_weight_backward(const Matrix &gradient, bool takes_step) {
    Parameter &weight = layers_[0].weight;
    if (!takes_step) {
        const RowPointers to(weight.gradient, 0);
        sample_.transposed_times(gradient, weight.gradient, [to](int64_t row, int first, auto width, const Lanes *sums) {
            for (int b = 0; b < decltype(width)::value; ++b) to(row)[first + b] = sums[b];
        });
        return;
    }
    const int64_t blocks = gradient.blocks();
    const auto step = optimizer_.lane_step(weight);
    sample_.transposed_times(gradient, weight.gradient, [=](int64_t row, int first, auto width, const Lanes *sums) {
        for (int b = 0; b < decltype(width)::value; ++b) step(row * blocks + first + b, sums[b]);
    });
}

void Network::gradient_without_dropout(const TrainingGraph &graph, const std::vector<int32_t> &labels, Worker &worker) {
    PhiloxBits unused(0, 0, 0);
    begin(graph, Uses::many);
    forward(graph, &unused, worker);
    backward(graph, labels, false, worker);
}

}  // namespace bmpaudit
