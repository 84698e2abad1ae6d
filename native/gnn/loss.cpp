#include "gnn/loss.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace bmpaudit {

CrossEntropy::CrossEntropy(int num_classes, const std::vector<int32_t> &labels, double smoothing)
    : num_classes_(num_classes), labels_(labels),
      share_(1.0f / static_cast<float>(labels.size() - std::count(labels.begin(), labels.end(), -1))),
      of_label_(share_ * static_cast<float>(1.0 - smoothing)),
      of_each_(share_ * static_cast<float>(smoothing / num_classes)) {}

void CrossEntropy::to_gradient(Matrix &rows) const {
    ClassColumns classes(num_classes_);
    for (int64_t from = 0; from < rows.rows(); from += kLanes) {
        classes.load(rows, from);
        to_gradient(from, num_classes_, &classes[0]);
        for (int b = 0; b < rows.blocks(); ++b) {
            Lanes tile[kLanes];
            for (int c = 0; c < kLanes; ++c) tile[c] = classes[b * kLanes + c];
            transpose(tile);
            for (int i = 0; i < classes.num_rows(); ++i) rows.row(from + i)[b] = tile[i];
        }
    }
}

double mean_cross_entropy(const Matrix &logits, int num_classes, const std::vector<int32_t> &rows,
                          const std::vector<int32_t> &labels) {
    double total = 0;
    for (const int32_t i : rows) {
        const float *o = logits.floats(i);
        const double largest = *std::max_element(o, o + num_classes);
        double sum = 0;
        for (int c = 0; c < num_classes; ++c) sum += std::exp(o[c] - largest);
        total += largest + std::log(sum) - o[labels[i]];
    }
    return total / static_cast<double>(rows.size());
}

void label_margins(const Matrix &logits, int num_classes, const int32_t *labels, float *margins) {
    ClassColumns columns(num_classes);
    for (int64_t from = 0; from < logits.rows(); from += kLanes) {
        columns.load(logits, from);
        IntLanes label = {};
        std::memcpy(&label, labels + from, columns.num_rows() * sizeof(int32_t));
        Lanes own = {}, top = splat(-INFINITY), total = {};
        for (int c = 0; c < num_classes; ++c) {
            own = select(label == c, columns[c], own);
            top = max_lanes(top, select(label == c, splat(-INFINITY), columns[c]));
        }
        for (int first = 0; first < num_classes; first += kLanes) {
            Lanes weights[kLanes] = {};
            for (int c = first; c < std::min(first + kLanes, num_classes); ++c)
                weights[c - first] = select(label == c, Lanes{}, exp_lanes(columns[c] - top));
            for (int by = kLanes / 2; by > 0; by /= 2)
                for (int c = 0; c < by; ++c) weights[c] += weights[c + by];
            total += weights[0];
        }
        for (int i = 0; i < columns.num_rows(); ++i) margins[from + i] = own[i] - (top[i] + std::log(total[i]));
    }
}

void Head::begin(const Matrix &rows, const CrossEntropy &loss, const Layer &layer) {
    const int num_classes = loss.num_classes(), inputs = rows.blocks() * kLanes;
    padded_classes_ = num_classes;
    if (num_classes > kMostTogether) padded_classes_ = (num_classes + kMostTogether - 1) / kMostTogether * kMostTogether;
    bias_.assign(padded_classes_, 0.0f);
    weight_.assign(static_cast<size_t>(inputs) * padded_classes_, 0.0f);
    bias_gradient_.assign(padded_classes_, Lanes{});
    classes_.resize(static_cast<size_t>(kTiles) * padded_classes_);
    last_tile_.assign(inputs, Lanes{});
    for (Matrix *matrix : {&transposed_, &gradient_}) {
        matrix->reshape(padded_classes_, rows.blocks());
        matrix->fill_zero();
    }
    for (int c = 0; c < num_classes; ++c) {
        bias_[c] = layer.bias.value.floats(0)[c];
        for (int k = 0; k < inputs; ++k)
            weight_[static_cast<size_t>(k) * padded_classes_ + c] = transposed_.floats(c)[k] = layer.weight.value.floats(k)[c];
    }
}

void Head::save_gradients(int num_classes, Layer &layer) const {
    for (int c = 0; c < num_classes; ++c) {
        layer.bias.gradient.floats(0)[c] = sum_lanes(bias_gradient_[c]);
        for (int k = 0; k < gradient_.blocks() * kLanes; ++k) layer.weight.gradient.floats(k)[c] = gradient_.floats(c)[k];
    }
}

void Head::learn(const Matrix &rows, const CrossEntropy &loss, Layer &layer, Matrix &rows_gradient) {
    begin(rows, loss, layer);
    rows_gradient.reshape(rows.rows(), rows.blocks());
    constexpr std::integral_constant<int, 1> one{};
    switch (padded_classes_) {
    case 1: learn_in<1>(one, rows, loss, rows_gradient); break;
    case 2: learn_in<2>(one, rows, loss, rows_gradient); break;
    case 3: learn_in<3>(one, rows, loss, rows_gradient); break;
    case 4: learn_in<4>(one, rows, loss, rows_gradient); break;
    case 5: learn_in<5>(one, rows, loss, rows_gradient); break;
    case 6: learn_in<6>(one, rows, loss, rows_gradient); break;
    case 7: learn_in<7>(one, rows, loss, rows_gradient); break;
    case 8: learn_in<8>(one, rows, loss, rows_gradient); break;
    default: learn_in<kMostTogether>(padded_classes_ / kMostTogether, rows, loss, rows_gradient);
    }
    save_gradients(loss.num_classes(), layer);
}

template <int Q, typename Groups>
void Head::learn_in(Groups groups, const Matrix &rows, const CrossEntropy &loss, Matrix &rows_gradient) {
    const int blocks = rows.blocks(), padded = Q * groups;
    for (int64_t first = 0; first < rows.rows(); first += kTiles * kLanes) {
        const int64_t end = std::min(rows.rows(), first + kTiles * kLanes);
        Lanes *classes = classes_.data();
        for (int64_t from = first; from < end; from += kLanes, classes += padded) {
            const Lanes *tile = rows.row(from);
            if (end - from < kLanes) tile = std::copy_n(tile, (end - from) * blocks, last_tile_.data()) - (end - from) * blocks;
            multiply<Q>(groups, tile, blocks, classes);
        }
        classes = classes_.data();
        for (int64_t from = first; from < end; from += kLanes, classes += padded) {
            if constexpr (std::is_same_v<Groups, int>) {
                loss.to_gradient(from, loss.num_classes(), classes);
                std::fill(classes + loss.num_classes(), classes + padded, Lanes{});
            } else {
                loss.to_gradient(from, std::integral_constant<int, Q>{}, classes);
            }
            for (int c = 0; c < padded; ++c) bias_gradient_[c] += classes[c];
        }
        for (int b = 0; b < blocks; ++b) turn_back<Q>(groups, end - first, b, rows.row(first) + b, rows_gradient.row(first) + b);
    }
}

template <int Q, typename Groups>
void Head::multiply(Groups groups, const Lanes *tile, int blocks, Lanes *classes) const {
    const int padded = Q * groups;
    for (int c = 0; c < padded; ++c) classes[c] = splat(bias_[c]);
    const float *weight = weight_.data();
    for (int b = 0; b < blocks; ++b, weight += kLanes * padded) {
        Lanes columns[kLanes];
        for (int i = 0; i < kLanes; ++i) columns[i] = tile[i * blocks + b];
        transpose(columns);
        for (int group = 0; group < groups; ++group) {
            Lanes sums[Q];
            for (int q = 0; q < Q; ++q) sums[q] = classes[group * Q + q];
            for (int k = 0; k < kLanes; ++k)
                for (int q = 0; q < Q; ++q) sums[q] += weight[k * padded + group * Q + q] * columns[k];
            for (int q = 0; q < Q; ++q) classes[group * Q + q] = sums[q];
        }
    }
}

template <int Q, typename Groups>
void Head::turn_back(Groups groups, int64_t num_rows, int b, const Lanes *rows, Lanes *rows_gradient) {
    const int64_t blocks = transposed_.blocks(), padded = Q * groups;
    for (int group = 0; group < groups; ++group) {
        Lanes weight[Q], gradient[Q];
        for (int q = 0; q < Q; ++q) {
            weight[q] = transposed_.row(group * Q + q)[b];
            gradient[q] = gradient_.row(group * Q + q)[b];
        }
        const auto *classes = reinterpret_cast<const float *>(classes_.data() + group * Q);
        for (int64_t i = 0; i < num_rows; ++i) {
            const float *of_row = classes + i / kLanes * padded * kLanes + i % kLanes;
            const Lanes row = rows[i * blocks];
            Lanes sum = {};
            for (int q = 0; q < Q; ++q) {
                const float of_class = of_row[q * kLanes];
                gradient[q] += of_class * row;
                sum += of_class * weight[q];
            }
            rows_gradient[i * blocks] = group == 0 ? sum : rows_gradient[i * blocks] + sum;
        }
        for (int q = 0; q < Q; ++q) gradient_.row(group * Q + q)[b] = gradient[q];
    }
}

}  // namespace bmpaudit
