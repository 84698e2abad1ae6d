#include "gnn/layer.hpp"

#include <cmath>
#include <utility>

#include "gnn/matrix.hpp"

namespace bmpaudit {

namespace {

int head_stride_for(int heads) {
    if (heads > kLanes) return blocks_for(heads) * kLanes;
    int stride = 1;
    while (stride < heads) stride *= 2;
    return stride;
}

}  // namespace

LayerShape::LayerShape(int inputs_each_part, int channels, int heads, int tall_parts, int wide_parts)
    : inputs(inputs_each_part * tall_parts), channels(channels), heads(heads), head_stride(head_stride_for(heads)),
      blocks(blocks_for(channels * head_stride)), tile_blocks(blocks_for(head_stride)), tall_parts(tall_parts),
      wide_parts(wide_parts) {}

Parameter::Parameter(int64_t rows, int blocks) {
    for (Matrix *matrix : {&value, &gradient, &first_moment, &second_moment}) matrix->reshape(rows, blocks);
}

void Parameter::clear() {
    for (Matrix *matrix : {&value, &gradient, &first_moment, &second_moment}) matrix->fill_zero();
}

Layer::Layer(const LayerShape &shape, std::vector<int> input_row, int num_vectors, int norm_vectors)
    : shape(shape), input_row(std::move(input_row)), weight(shape.inputs, shape.linear_blocks()),
      vectors(num_vectors, Parameter(1, shape.blocks)), bias(1, shape.blocks),
      norm(norm_vectors, Parameter(1, shape.blocks)) {}

int64_t Layer::num_weights() const {
    return static_cast<int64_t>(shape.units()) * num_inputs() * shape.tall_parts * shape.wide_parts;
}

int64_t Layer::num_parameters() const {
    return num_weights() + static_cast<int64_t>(shape.units()) * static_cast<int64_t>(vectors.size() + 1 + norm.size());
}

namespace {

constexpr float kEpsilon = 1e-5f, kMomentum = 0.1f;  // PyTorch's
constexpr int kScale = 0, kShift = 1, kMean = 2, kVariance = 3;

Lanes inverse_root(Lanes variance) { return 1.0f / sqrt_lanes(variance + kEpsilon); }

void normalise_batch(Layer &layer, Matrix &rows, KeptNorm &kept) {
    const int64_t num_rows = rows.rows();
    const int blocks = rows.blocks();
    const float share = 1.0f / static_cast<float>(num_rows);
    Matrix mean, variance;
    mean.reshape(1, blocks);
    variance.reshape(1, blocks);
    sum_of_rows(rows, mean);
    kept.normalised.reshape(num_rows, blocks);
    kept.inverse_deviation.reshape(1, blocks);
    for (int b = 0; b < blocks; ++b) mean.row(0)[b] *= share;
    for (int64_t i = 0; i < num_rows; ++i)
        for (int b = 0; b < blocks; ++b) {
            const Lanes from_mean = rows.row(i)[b] - mean.row(0)[b];
            rows.row(i)[b] = from_mean;
            kept.normalised.row(i)[b] = from_mean * from_mean;
        }
    sum_of_rows(kept.normalised, variance);
    // The running variance is that of a sample: of one node there is none, and the model fails.
    const float unbiased = static_cast<float>(num_rows) / static_cast<float>(num_rows - 1);
    for (int b = 0; b < blocks; ++b) {
        const Lanes of_batch = variance.row(0)[b] * share;
        kept.inverse_deviation.row(0)[b] = inverse_root(of_batch);
        Lanes &running_mean = layer.norm[kMean].value.row(0)[b], &running_variance = layer.norm[kVariance].value.row(0)[b];
        running_mean += kMomentum * (mean.row(0)[b] - running_mean);
        running_variance += kMomentum * (of_batch * unbiased - running_variance);
    }
    const Lanes *scale = layer.norm[kScale].value.row(0), *shift = layer.norm[kShift].value.row(0);
    for (int64_t i = 0; i < num_rows; ++i)
        for (int b = 0; b < blocks; ++b) {
            const Lanes normalised = rows.row(i)[b] * kept.inverse_deviation.row(0)[b];
            kept.normalised.row(i)[b] = normalised;
            rows.row(i)[b] = normalised * scale[b] + shift[b];
        }
}

// 1 in the lanes of units, 0 in padding.
Matrix unit_lanes(const LayerShape &shape) {
    Matrix lanes;
    lanes.reshape(1, shape.blocks);
    for (int unit = 0; unit < shape.units(); ++unit) lanes.floats(0)[shape.lane(unit)] = 1.0f;
    return lanes;
}

// `kept` may be null.
void normalise_rows(const Layer &layer, Matrix &rows, KeptNorm *kept) {
    const int blocks = rows.blocks();
    const float share = 1.0f / static_cast<float>(layer.shape.units());
    const Matrix is_unit = unit_lanes(layer.shape);
    const Lanes *scale = layer.norm[kScale].value.row(0), *shift = layer.norm[kShift].value.row(0);
    if (kept != nullptr) {
        kept->normalised.reshape(rows.rows(), blocks);
        kept->inverse_deviation.reshape(rows.rows(), 1);
    }
    for (int64_t i = 0; i < rows.rows(); ++i) {
        Lanes *row = rows.row(i), sum = {}, squares = {};
        for (int b = 0; b < blocks; ++b) sum += row[b];
        const float mean = share * sum_lanes(sum);
        for (int b = 0; b < blocks; ++b) {
            row[b] = (row[b] - mean) * is_unit.row(0)[b];
            squares += row[b] * row[b];
        }
        const Lanes inverse = inverse_root(splat(share * sum_lanes(squares)));
        if (kept != nullptr) kept->inverse_deviation.row(i)[0] = inverse;
        for (int b = 0; b < blocks; ++b) {
            const Lanes normalised = row[b] * inverse;
            if (kept != nullptr) kept->normalised.row(i)[b] = normalised;
            row[b] = normalised * scale[b] + shift[b];
        }
    }
}

}  // namespace

Norm norm_of(const std::string &name) {
    static const Choices<Norm> norms = {{"batch", Norm::batch}, {"layer", Norm::layer}, {"none", Norm::none}};
    return chosen("norm", name, norms);
}

int norm_vectors(Norm norm) { return norm == Norm::none ? 0 : norm == Norm::layer ? 2 : 4; }

void normalise(Norm norm, Layer &layer, Matrix &rows, KeptNorm &kept) {
    if (norm == Norm::batch) normalise_batch(layer, rows, kept);
    else normalise_rows(layer, rows, &kept);
}

void normalise_trained(Norm norm, const Layer &layer, Matrix &rows) {
    if (norm == Norm::layer) {
        normalise_rows(layer, rows, nullptr);
        return;
    }
    for (int b = 0; b < rows.blocks(); ++b) {
        const auto of = [&](int vector) { return layer.norm[vector].value.row(0)[b]; };
        const Lanes mean = of(kMean), slope = of(kScale) * inverse_root(of(kVariance)), shift = of(kShift);
        for (int64_t i = 0; i < rows.rows(); ++i) rows.row(i)[b] = (rows.row(i)[b] - mean) * slope + shift;
    }
}

void normalise_backward(Norm norm, Layer &layer, const KeptNorm &kept, Matrix &gradient) {
    const int blocks = gradient.blocks();
    const int64_t num_rows = gradient.rows();
    Parameter &scale = layer.norm[kScale], &shift = layer.norm[kShift];
    sum_of_rows(gradient, shift.gradient);
    for (int b = 0; b < blocks; ++b) {
        Lanes sum = {};
        for (int64_t i = 0; i < num_rows; ++i) sum += gradient.row(i)[b] * kept.normalised.row(i)[b];
        scale.gradient.row(0)[b] = sum;
    }
    const float share = 1.0f / static_cast<float>(norm == Norm::batch ? num_rows : layer.shape.units());
    const Matrix is_unit = unit_lanes(layer.shape);
    for (int64_t i = 0; i < num_rows; ++i) {
        Lanes *row = gradient.row(i);
        const Lanes *normalised = kept.normalised.row(i), *by_unit = scale.value.row(0);
        if (norm == Norm::batch) {
            for (int b = 0; b < blocks; ++b) {
                const Lanes means = share * (shift.gradient.row(0)[b] + normalised[b] * scale.gradient.row(0)[b]);
                row[b] = by_unit[b] * kept.inverse_deviation.row(0)[b] * (row[b] - means);
            }
            continue;
        }
        Lanes sum = {}, weighted = {};
        for (int b = 0; b < blocks; ++b) {
            row[b] *= by_unit[b];
            sum += row[b];
            weighted += row[b] * normalised[b];
        }
        const float mean = share * sum_lanes(sum), slope = share * sum_lanes(weighted);
        for (int b = 0; b < blocks; ++b)
            row[b] = kept.inverse_deviation.row(i)[0] * (row[b] - mean - normalised[b] * slope) * is_unit.row(0)[b];
    }
}

bool is_adam(const std::string &name) {
    static const Choices<bool> optimizers = {{"adam", true}, {"sgd", false}};
    return chosen("optimizer", name, optimizers);
}

Schedule schedule_of(const std::string &name) {
    static const Choices<Schedule> schedules = {
        {"constant", Schedule::constant}, {"cosine", Schedule::cosine}, {"step", Schedule::step}};
    return chosen("schedule", name, schedules);
}

double Optimizer::learning_rate(int epoch) const {
    const int64_t done = epoch - 1, all = training_.epochs;
    const double rate = training_.learning_rate;
    if (training_.schedule == Schedule::cosine)
        return rate * (1.0 + std::cos(3.141592653589793 * static_cast<double>(done) / static_cast<double>(all))) / 2.0;
    if (training_.schedule == Schedule::step) return rate * (done < all / 2 ? 1.0 : done < 3 * all / 4 ? 0.1 : 0.01);
    return rate;
}

void Optimizer::begin_step(int64_t step, int epoch) {
    const double rate = learning_rate(epoch);
    step_size_ = static_cast<float>(rate);
    if (!training_.uses_adam) return;
    step_size_ = static_cast<float>(rate / (1.0 - std::pow(kBeta1, static_cast<double>(step))));
    inverse_root_correction_ = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(kBeta2, static_cast<double>(step))));
}

Optimizer::LaneStep Optimizer::lane_step(Parameter &parameter) const {
    LaneStep step;
    step.value_ = parameter.value.row(0);
    step.mean_ = parameter.first_moment.row(0);
    step.square_ = parameter.second_moment.row(0);
    step.decay_ = static_cast<float>(training_.weight_decay);
    step.step_size_ = step_size_;
    step.inverse_root_correction_ = inverse_root_correction_;
    step.uses_adam_ = training_.uses_adam;
    return step;
}

void Optimizer::step(Parameter &parameter) const {
    const LaneStep step = lane_step(parameter);
    const Lanes *gradient = parameter.gradient.row(0);
    for (int64_t at = 0; at < parameter.value.rows() * parameter.value.blocks(); ++at) step(at, gradient[at]);
}

}  // namespace bmpaudit
