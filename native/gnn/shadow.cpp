#include "gnn/shadow.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "gnn/loss.hpp"

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

// One thread's network and scratch memory.
class ShadowEngine::Trainer {
  public:
    // `graphs` are those of the batch's queries.
    Trainer(const ShadowEngine &engine, const std::vector<const ShownGraph *> &graphs)
        : engine_(engine), graphs_(graphs), network_(engine.features_, engine.num_classes_, engine.model_, engine.training_),
          training_(network_, engine.features_, engine.model_, engine.training_) {}

    void run(const ShadowBatch &batch, const ShadowResults &results, int64_t model, Worker &worker) {
        const auto index = static_cast<uint64_t>(batch.indices[model]);
        const uint8_t *member = batch.member + model * engine_.num_nodes();
        const Adjacency &graph = batch.graphs.empty() ? engine_.graph_ : batch.graphs[model];
        sample_.induce(graph, member, place_, engine_.model_.edge_matrices());
        float *kept = results.weights == nullptr ? nullptr : results.weights + model * network_.num_parameters();
        const bool is_kept = kept != nullptr && !std::isnan(*kept);
        bool is_trained = true;
        if (is_kept) {
            network_.load(kept);
        } else {
            PhiloxBits weights = stream(batch.seed, Purpose::weights, index);
            TrainingStreams streams(batch.seed, index);
            network_.initialise(weights);
            is_trained = training_.run(sample_, engine_.labels_, streams, worker);
        }
        if (!is_trained || !network_.is_finite()) {
            results.state[model] = static_cast<uint8_t>(ModelState::failed);
            return;
        }
        if (kept != nullptr && !is_kept) network_.save(kept);
        try {
            score(batch, results, model, member, worker);
        } catch (const Stopped &) {  // a model that is not finished leaves nothing behind
            forget(batch, results, model);
            throw;
        }
        const bool is_usable = all_margins_finite(batch, results, model);
        if (!is_usable) forget(batch, results, model);
        results.state[model] = static_cast<uint8_t>(is_usable ? ModelState::trained : ModelState::failed);
    }

  private:
    void score(const ShadowBatch &batch, const ShadowResults &results, int64_t model, const uint8_t *member,
               Worker &worker) {
        const std::map<double, Layer> noisy = noisy_last_layers(batch, model);
        const auto last_layer = [&](const View &view) {
            return view.noise_std == 0 ? &network_.last_layer() : &noisy.at(view.noise_std);
        };
        // First the whole graph, whose clean answers give the accuracy. Views of the same graph share its passes.
        std::vector<Query> queries = {{&engine_.whole_, {&network_.last_layer()}}};
        const auto query_of = [&](const ShownGraph *shown) {
            auto query = std::find_if(queries.begin(), queries.end(), [&](const Query &q) { return q.shown == shown; });
            return query == queries.end() ? queries.insert(query, {shown, {}}) : query;
        };
        for (const View &view : batch.views) {
            auto &lasts = query_of(graphs_[view.query])->last_layers;
            if (std::find(lasts.begin(), lasts.end(), last_layer(view)) == lasts.end()) lasts.push_back(last_layer(view));
        }
        if (results.embeddings != nullptr)
            for (const ShownGraph *shown : graphs_) {
                auto &lasts = query_of(shown)->last_layers;
                if (lasts.empty()) lasts.push_back(&network_.last_layer());
            }
        network_.score(queries, worker, [&](size_t q, size_t which, const Matrix &logits) {
            if (q == 0 && which == 0)
                keep_accuracy(results.train_accuracy[model], results.held_out_accuracy[model], member, logits, nullptr);
            if (results.embeddings != nullptr && which == 0) keep_embeddings(batch, results, model, queries[q].shown);
            for (size_t v = 0; v < batch.views.size(); ++v) {
                const View &view = batch.views[v];
                if (graphs_[view.query] == queries[q].shown && last_layer(view) == queries[q].last_layers[which])
                    keep_view(results, static_cast<int64_t>(v) * batch.num_models + model, member, logits);
            }
        });
    }

    // By standard deviation; all of one draw of noise.
    std::map<double, Layer> noisy_last_layers(const ShadowBatch &batch, int64_t model) const {
        std::map<double, Layer> noisy;
        std::vector<double> normals;
        for (const View &view : batch.views) {
            if (view.noise_std == 0 || noisy.count(view.noise_std) > 0) continue;
            if (normals.empty()) {
                PhiloxBits random = stream(batch.seed, Purpose::noise, static_cast<uint64_t>(batch.indices[model]));
                normals = network_.draw_noise(random);
            }
            noisy.emplace(view.noise_std, network_.noisy_last_layer(normals, view.noise_std));
        }
        return noisy;
    }

    template <typename Visit> void visit_margins(const ShadowBatch &batch, int64_t model, Visit visit) const {
        for (size_t v = 0; v < batch.views.size(); ++v) {
            const int64_t slot = static_cast<int64_t>(v) * batch.num_models + model;
            for (int32_t node = 0; node < engine_.num_nodes(); ++node) visit(slot * engine_.num_nodes() + node);
        }
    }

    bool all_margins_finite(const ShadowBatch &batch, const ShadowResults &results, int64_t model) const {
        bool finite = true;
        visit_margins(batch, model, [&](int64_t at) { finite &= std::isfinite(results.statistics[at]); });
        return finite;
    }

    void forget(const ShadowBatch &batch, const ShadowResults &results, int64_t model) const {
        const float nothing = std::numeric_limits<float>::quiet_NaN();
        visit_margins(batch, model, [&](int64_t at) {
            results.statistics[at] = nothing;
            if (results.right != nullptr) results.right[at] = 0;
            if (results.logits != nullptr)
                std::fill_n(results.logits + at * engine_.num_classes_, engine_.num_classes_, nothing);
        });
        results.train_accuracy[model] = results.held_out_accuracy[model] = nothing;
        if (results.weights != nullptr)
            std::fill_n(results.weights + model * network_.num_parameters(), network_.num_parameters(), nothing);
        for (size_t v = 0; v < batch.views.size(); ++v) {
            const int64_t slot = static_cast<int64_t>(v) * batch.num_models + model;
            results.view_train_accuracy[slot] = results.view_held_out_accuracy[slot] = nothing;
        }
    }

    void keep_embeddings(const ShadowBatch &batch, const ShadowResults &results, int64_t model,
                         const ShownGraph *shown) const {
        const int64_t num_nodes = engine_.num_nodes(), units = engine_.num_hidden();
        for (size_t q = 0; q < graphs_.size(); ++q) {
            if (graphs_[q] != shown) continue;
            float *kept = results.embeddings + (static_cast<int64_t>(q) * batch.num_models + model) * num_nodes * units;
            for (int64_t node = 0; node < num_nodes; ++node)
                std::copy_n(network_.embeddings().floats(node), units, kept + node * units);
        }
    }

    void keep_view(const ShadowResults &results, int64_t slot, const uint8_t *member, const Matrix &logits) const {
        const int32_t num_nodes = engine_.num_nodes();
        keep_accuracy(results.view_train_accuracy[slot], results.view_held_out_accuracy[slot], member, logits,
                      results.right == nullptr ? nullptr : results.right + slot * num_nodes);
        const int num_classes = engine_.num_classes_;
        label_margins(logits, num_classes, engine_.labels_, results.statistics + slot * num_nodes);
        if (results.logits == nullptr) return;
        float *kept = results.logits + slot * num_nodes * num_classes;
        for (int32_t node = 0; node < num_nodes; ++node)
            std::copy_n(logits.floats(node), num_classes, kept + static_cast<int64_t>(node) * num_classes);
    }

    // On the sample and on all other nodes; and of each node whether it is right, unless that is null.
    void keep_accuracy(float &train, float &held_out, const uint8_t *member, const Matrix &logits,
                       uint8_t *each) const {
        int64_t right[2] = {0, 0}, total[2] = {0, 0};
        for_predicted_classes(logits, engine_.num_classes_, [&](int64_t node, int32_t predicted) {
            const int side = member[node] != 0;
            ++total[side];
            const bool is_right = predicted == engine_.labels_[node];
            right[side] += is_right;
            if (each != nullptr) each[node] = is_right;
        });
        const float undefined = std::numeric_limits<float>::quiet_NaN();
        train = total[1] > 0 ? static_cast<float>(right[1]) / total[1] : undefined;
        held_out = total[0] > 0 ? static_cast<float>(right[0]) / total[0] : undefined;
    }

    const ShadowEngine &engine_;
    const std::vector<const ShownGraph *> &graphs_;
    Network network_;
    Training training_;
    TrainingGraph sample_;
    std::vector<int32_t> place_;
};

ShadowEngine::ShadowEngine(Adjacency graph, FeatureView features, const int32_t *labels, int num_classes,
                           ModelSettings model, TrainingSettings training)
    : graph_(std::move(graph)),
      features_(features, graph_.num_nodes(), model.feature_layout(features.num_features).blocks),
      labels_(labels), num_classes_(num_classes), model_(model), training_(training) {
    whole_.show(graph_, features_, model_);
}

void ShadowEngine::run(const ShadowBatch &batch, const ShadowResults &results, int num_threads,
                       const Poll &poll) const {
    std::vector<ShownGraph> others(batch.queries.size());
    std::vector<const ShownGraph *> graphs;
    for (size_t q = 0; q < batch.queries.size(); ++q) {
        const bool is_whole = batch.queries[q].indptr == graph_.indptr && batch.queries[q].indices == graph_.indices;
        if (!is_whole) others[q].show(batch.queries[q], features_, model_);
        graphs.push_back(is_whole ? &whole_ : &others[q]);
    }
    std::vector<std::unique_ptr<Trainer>> trainers(num_workers(batch.num_models, num_threads));
    run_tasks(batch.num_models, num_threads, poll, [&](int64_t model, Worker &worker) {
        auto &trainer = trainers[worker.number()];
        if (!trainer) trainer = std::make_unique<Trainer>(*this, graphs);
        trainer->run(batch, results, model, worker);
        worker.report(1);
    });
}

int ShadowEngine::num_hidden() const {
    return model_.layers.size() < 2 ? 0 : model_.layers[model_.layers.size() - 2].shape(1).units();
}

int64_t ShadowEngine::num_parameters() const { return Network(features_, num_classes_, model_, training_).num_parameters(); }

std::vector<float> ShadowEngine::initial_parameters(uint64_t seed, uint64_t index) const {
    Network network(features_, num_classes_, model_, training_);
    PhiloxBits weights = stream(seed, Purpose::weights, index);
    network.initialise(weights);
    std::vector<float> flat(network.num_parameters());
    network.save(flat.data());
    return flat;
}

template <typename Use, typename Save>
std::vector<float> ShadowEngine::with_network(const float *parameters, const uint8_t *member, const Poll &poll, Use use,
                                              Save save) const {
    Network network(features_, num_classes_, model_, training_);
    TrainingGraph sample;
    std::vector<int32_t> place;
    sample.induce(graph_, member, place, model_.edge_matrices());
    network.load(parameters);
    run_tasks(1, 1, poll, [&](int64_t, Worker &worker) { use(network, sample, worker); });
    std::vector<float> flat(network.num_parameters());
    save(network, flat.data());
    return flat;
}

std::vector<float> ShadowEngine::gradient(const float *parameters, const uint8_t *member, const Poll &poll) const {
    return with_network(
        parameters, member, poll,
        [&](Network &network, const TrainingGraph &sample, Worker &worker) {
            std::vector<int32_t> labels;
            for (const int32_t node : sample.nodes) labels.push_back(labels_[node]);
            network.gradient_without_dropout(sample, labels, worker);
        },
        [](const Network &network, float *flat) { network.save_gradient(flat); });
}

std::vector<float> ShadowEngine::trained_parameters(const float *parameters, const uint8_t *member, uint64_t seed,
                                                    uint64_t index, const Poll &poll) const {
    return with_network(
        parameters, member, poll,
        [&](Network &network, const TrainingGraph &sample, Worker &worker) {
            TrainingStreams streams(seed, index);
            if (!Training(network, features_, model_, training_).run(sample, labels_, streams, worker))
                throw std::invalid_argument("member must hold at least two 1s: for validation, or in each batch that is normalised");
        },
        [](const Network &network, float *flat) { network.save(flat); });
}

std::vector<float> ShadowEngine::logits(const float *parameters, const Adjacency &query, const Poll &poll) const {
    Network network(features_, num_classes_, model_, training_);
    network.load(parameters);
    ShownGraph shown;
    shown.show(query, features_, model_);
    std::vector<float> result(static_cast<size_t>(num_nodes()) * num_classes_);
    run_tasks(1, 1, poll, [&](int64_t, Worker &worker) {
        network.score({{&shown, {&network.last_layer()}}}, worker, [&](size_t, size_t, const Matrix &rows) {
            for (int32_t node = 0; node < num_nodes(); ++node)
                std::copy_n(rows.floats(node), num_classes_, result.data() + static_cast<int64_t>(node) * num_classes_);
        });
    });
    return result;
}

}  // namespace bmpaudit
