#include "training.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cross_entropy.hpp"

namespace bmpaudit {

namespace {

FeatureLayout never_dropped(FeatureLayout layout) {
    layout.is_dropped = false;
    return layout;
}

}  // namespace

Training::Training(Network &network, const GraphFeatures &features, const ModelSettings &model,
                   const TrainingSettings &settings)
    : network_(network), gathers_features_(model.feature_layout(features.num_features()).parts.has_largest),
      normalises_batches_(std::any_of(model.layers.begin(), model.layers.end(),
                                      [](const LayerSettings &layer) { return layer.norm == Norm::batch; })),
      settings_(settings), dropped_(settings.drop_edge, model.edge_matrices()),
      batches_(settings.batch_size, settings.neighbors, model.edge_matrices()),
      validation_features_(features, never_dropped(model.feature_layout(features.num_features()))) {}

bool Training::run(const TrainingGraph &sample, const int32_t *labels, TrainingStreams &streams, Worker &worker) {
    if (sample.size() < (validates() ? 2 : 1)) return false;
    labels_.clear();
    for (const int32_t node : sample.nodes) labels_.push_back(labels[node]);
    learnt_ = labels_;
    if (validates()) {
        split(sample, streams.validation);
        validation_features_.begin(sample, Uses::many);
        lowest_loss_ = std::numeric_limits<double>::infinity();
        epochs_without_ = 0;
    }
    if (drops_edges()) dropped_.begin(sample);
    if (!is_batched()) network_.begin(sample, Uses::many);
    num_steps_ = 0;
    for (int epoch = 1; epoch <= settings_.epochs; ++epoch) {
        const TrainingGraph &graph = drops_edges() ? dropped_.draw(sample, streams.edges) : sample;
        if (!run_epoch(graph, epoch, streams, worker)) return false;
        if (validates() && !is_worth_another(sample, worker)) break;
    }
    // A loss that was never finite leaves parameters that are not, by which the model is known to have failed.
    if (std::isfinite(lowest_loss_) && validates()) network_.restore();
    return true;
}

void Training::split(const TrainingGraph &sample, RandomBits &random) {
    const int64_t size = sample.size();
    const auto share = static_cast<int64_t>(std::nearbyint(settings_.validation_share * static_cast<double>(size)));
    validation_ = WordOrder().subset(random, size, std::clamp<int64_t>(share, 1, size - 1));
    for (const int32_t node : validation_) learnt_[node] = -1;
}

bool Training::run_epoch(const TrainingGraph &graph, int epoch, TrainingStreams &streams, Worker &worker) {
    if (!is_batched()) {
        if (drops_edges() && gathers_features_) network_.begin(graph, Uses::once);
        network_.step(graph, learnt_, {++num_steps_, epoch}, streams.dropout, worker);
        return true;
    }
    batches_.begin_epoch(learnt_, streams.batches);
    while (batches_.next(graph, learnt_, streams.batches)) {
        if (normalises_batches_ && batches_.graph().size() == 1) return false;  // of one node there is no variance
        network_.begin(batches_.graph(), Uses::once);
        network_.step(batches_.graph(), batches_.labels(), {++num_steps_, epoch}, streams.dropout, worker);
    }
    return true;
}

bool Training::is_worth_another(const TrainingGraph &sample, Worker &worker) {
    const Matrix &logits = network_.evaluate(sample, validation_features_, worker);
    const double loss = mean_cross_entropy(logits, network_.num_classes(), validation_, labels_);
    if (loss < lowest_loss_) {
        lowest_loss_ = loss;
        epochs_without_ = 0;
        network_.keep();
        return true;
    }
    return ++epochs_without_ != settings_.patience;
}

}  // namespace bmpaudit
