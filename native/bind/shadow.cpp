// The trainer of shadow models for Python.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bind/bindings.hpp"
#include "gnn/shadow.hpp"

namespace bmpaudit {

using namespace nb::literals;

namespace {

constexpr int kMostUnits = 1 << 20, kMostLayers = 1 << 11;
constexpr int32_t kMostClasses = kMostUnits, kMostFeatures = 1 << 30;
constexpr int kMostHops = 1 << 10;
constexpr int64_t kMostEntries = (int64_t{1} << 32) - 1;  // of sparse features: their places have 32 bits

template <typename T> std::vector<T> copy_of(const Vector<T> &array) { return {array.data(), array.data() + array.size()}; }

void new_layer_settings(LayerSettings *self, const std::string &kind, int channels, int heads,
                        const std::string &initialisation, bool drops_input, bool drops_attention,
                        const std::string &aggregation, bool root_weight, int hops, double alpha,
                        const std::string &norm, int residual) {
    check_range("channels", channels, 1, kMostUnits);
    check_range("heads", heads, 1, kMostUnits);
    check_range("channels * heads", static_cast<int64_t>(channels) * heads, int64_t{1}, int64_t{kMostUnits});
    check_range("hops", hops, 1, kMostHops);
    check_range("residual", residual, 0, kMostLayers);
    if (!(alpha > 0 && alpha <= 1)) refuse(PyExc_ValueError, "alpha must be in (0, 1], got ", alpha);
    new (self) LayerSettings{make_layer_kind(kind, {aggregation, root_weight, hops, alpha}), channels, heads,
                             initialisation_of(initialisation), drops_input, drops_attention, norm_of(norm), residual};
}

void new_model_settings(ModelSettings *self, const std::vector<LayerSettings> &layers, const std::string &activation,
                        double dropout) {
    check_range("the number of layers", static_cast<int64_t>(layers.size()), int64_t{1}, int64_t{kMostLayers});
    check_interval("dropout", dropout, 0, 1, false);
    if (layers.front().drops_input && layers.front().kind->input_parts().has_largest)
        refuse(PyExc_ValueError, "features cannot be dropped before their largest are taken");
    if (layers.back().norm != Norm::none) refuse(PyExc_ValueError, "norm must be none in the last layer");
    for (size_t l = 0; l < layers.size(); ++l) {
        if (layers[l].residual == 0) continue;
        const int64_t before = static_cast<int64_t>(l) - layers[l].residual;  // the layer whose output goes in again
        if (before < 0 || l + 1 == layers.size() || layers[before].channels != layers[l].channels ||
            layers[before].heads != layers[l].heads)
            refuse(PyExc_ValueError, "residual must be 0 in layer ", l, ", which has no input of its own width so far back");
    }
    new (self) ModelSettings{layers, activation_of(activation), dropout};
}

void new_training_settings(TrainingSettings *self, int epochs, double learning_rate, double weight_decay,
                           const std::string &optimizer, const std::string &schedule, double label_smoothing,
                           double drop_edge, double validation_share, int patience, int batch_size,
                           const std::vector<int> &neighbors) {
    check_at_least("epochs", epochs, 0);
    check_not_negative("learning_rate", learning_rate);
    check_not_negative("weight_decay", weight_decay);
    check_interval("label_smoothing", label_smoothing, 0, 1, false);
    check_interval("drop_edge", drop_edge, 0, 1, false);
    check_interval("validation_share", validation_share, 0, 1, false);
    check_at_least("patience", patience, 0);
    check_at_least("batch_size", batch_size, 0);
    check_range("the number of neighbors", static_cast<int64_t>(neighbors.size()), int64_t{0}, int64_t{kMostHops});
    for (const int most : neighbors) check_at_least("neighbors", most, NeighbourBatches::kAll);
    new (self) TrainingSettings{epochs,          learning_rate, weight_decay,     is_adam(optimizer), schedule_of(schedule),
                                label_smoothing, drop_edge,     validation_share, patience,           batch_size,
                                neighbors};
}

// The arrays of a graph: copies of those whose values are used as indices, so that a later change does no harm.
struct GraphArrays {
    Adjacency graph;
    int32_t num_features;
    std::vector<int64_t> x_indptr;
    std::vector<int32_t> x_indices;
    std::vector<float> x_values;
    Vector<float> x_dense;
    bool is_sparse;
    std::vector<int32_t> labels;

    GraphArrays(nb::handle indptr, nb::handle indices, nb::handle sparse_indptr, nb::handle sparse_indices,
                nb::handle sparse_values, nb::handle dense, int32_t num_features, nb::handle labels_object, int num_classes,
                const ModelSettings &model)
        : graph(adjacency_of(indptr, indices)), num_features(num_features), is_sparse(dense.is_none()) {
        const int32_t num_nodes = graph.num_nodes();
        check_range("num_features", num_features, 1, kMostFeatures);
        check_range("num_classes", num_classes, 1, kMostClasses);
        const LayerSettings &last = model.layers.back();
        if (last.channels != num_classes || last.heads != 1)
            refuse(PyExc_ValueError, "the last layer must have ", num_classes, " channels, one for each class, and one head, got ",
                   last.channels, " and ", last.heads);
        const auto labels_array = vector_of<int32_t>(labels_object, "labels");
        check_shape(labels_array, "labels", {static_cast<size_t>(num_nodes)});
        for (int32_t node = 0; node < num_nodes; ++node)
            if (labels_array.data()[node] < 0 || labels_array.data()[node] >= num_classes)
                refuse(PyExc_ValueError, "labels must be in [0, ", num_classes, "), got ", labels_array.data()[node],
                       " at node ", node);
        labels = copy_of<int32_t>(labels_array);
        if (!is_sparse) {
            if (!sparse_indptr.is_none() || !sparse_indices.is_none() || !sparse_values.is_none())
                refuse(PyExc_TypeError, "features must be either sparse or dense, got both");
            x_dense = vector_of<float>(dense, "x_dense");
            check_shape(x_dense, "x_dense", {static_cast<size_t>(num_nodes) * static_cast<size_t>(num_features)});
            return;
        }
        const auto x_indptr_array = vector_of<int64_t>(sparse_indptr, "x_indptr");
        const auto x_indices_array = vector_of<int32_t>(sparse_indices, "x_indices");
        check_rows("x_indptr", x_indptr_array, "x_indices", x_indices_array, num_nodes, num_features);
        check_range("the number of x_indices", static_cast<int64_t>(x_indices_array.size()), int64_t{0}, kMostEntries);
        x_indptr = copy_of<int64_t>(x_indptr_array);
        x_indices = copy_of<int32_t>(x_indices_array);
        if (sparse_values.is_none()) return;
        const auto x_values_array = vector_of<float>(sparse_values, "x_values");
        check_shape(x_values_array, "x_values", {x_indices.size()});
        x_values = copy_of<float>(x_values_array);
    }
    FeatureView features() const {
        return {num_features, x_indptr.data(), x_indices.data(), x_values.empty() ? nullptr : x_values.data(),
                is_sparse ? nullptr : x_dense.data()};
    }
};

// An engine together with the arrays it reads.
class EngineWithArrays {
  public:
    EngineWithArrays(nb::handle indptr, nb::handle indices, nb::handle x_indptr, nb::handle x_indices, nb::handle x_values,
                     nb::handle x_dense, int32_t num_features, nb::handle labels, int num_classes, ModelSettings model,
                     TrainingSettings training)
        : arrays_(indptr, indices, x_indptr, x_indices, x_values, x_dense, num_features, labels, num_classes, model),
          bytes_each_model_(bytes_each_model(arrays_, model, training)),
          engine(arrays_.graph, arrays_.features(), arrays_.labels.data(), num_classes, model, training) {}

    Adjacency same_nodes(const char *what, const std::pair<nb::object, nb::object> &arrays) const {
        Adjacency graph = adjacency_of(arrays.first, arrays.second);
        if (graph.num_nodes() != engine.num_nodes())
            refuse(PyExc_ValueError, what, " must be of the graph's ", engine.num_nodes(), " nodes, got ", graph.num_nodes());
        return graph;
    }

    void run(nb::handle member_object, nb::handle indices_object, uint64_t seed,
             const std::vector<std::pair<nb::object, nb::object>> &queries,
             const std::vector<std::pair<int64_t, double>> &views, int num_threads, nb::handle statistics_object,
             nb::handle logits_object, nb::handle state_object, nb::handle train_accuracy_object,
             nb::handle held_out_accuracy_object, nb::handle view_train_accuracy_object,
             nb::handle view_held_out_accuracy_object, nb::handle progress, nb::handle weights_object,
             nb::handle embeddings_object, nb::handle right_object,
             const std::vector<std::pair<nb::object, nb::object>> &graphs) const {
        const auto num_nodes = static_cast<size_t>(engine.num_nodes());
        const auto member = array_of<const uint8_t, 2>(member_object, "member");
        const size_t num_models = member.shape(0);
        check_shape(member, "member", {num_models, num_nodes});
        check_flags("member", member);
        const auto indices = vector_of<int64_t>(indices_object, "indices");
        check_shape(indices, "indices", {num_models});
        check_each("indices", indices.data(), indices.size(), "be at least 0", [](int64_t index) { return index >= 0; });
        ShadowBatch batch{member.data(), indices.data(), static_cast<int64_t>(num_models), seed, {}, {}, {}};
        for (const auto &query : queries) batch.queries.push_back(same_nodes("a query", query));
        if (!graphs.empty() && graphs.size() != num_models)
            refuse(PyExc_ValueError, "graphs must be one for each of ", num_models, " models, or none, got ", graphs.size());
        for (const auto &graph : graphs) batch.graphs.push_back(same_nodes("graphs", graph));
        for (const auto &[query, noise_std] : views) {
            if (query < 0 || query >= static_cast<int64_t>(queries.size()))
                refuse(PyExc_ValueError, "views must name queries in [0, ", queries.size(), "), got ", query);
            check_not_negative("noise_std", noise_std);
            batch.views.push_back({query, noise_std});
        }
        check_num_threads(num_threads);
        const auto statistics = array_of<float, 3>(statistics_object, "statistics");
        check_shape(statistics, "statistics", {views.size(), num_models, num_nodes});
        Array<float, 4> logits;
        if (!logits_object.is_none()) {
            logits = array_of<float, 4>(logits_object, "logits");
            check_shape(logits, "logits",
                        {views.size(), num_models, num_nodes, static_cast<size_t>(engine.num_classes())});
        }
        const auto state = array_of<uint8_t, 1>(state_object, "state");
        const auto train_accuracy = array_of<float, 1>(train_accuracy_object, "train_accuracy");
        const auto held_out_accuracy = array_of<float, 1>(held_out_accuracy_object, "held_out_accuracy");
        check_shape(state, "state", {num_models});
        check_shape(train_accuracy, "train_accuracy", {num_models});
        check_shape(held_out_accuracy, "held_out_accuracy", {num_models});
        const auto view_train_accuracy = array_of<float, 2>(view_train_accuracy_object, "view_train_accuracy");
        const auto view_held_out_accuracy = array_of<float, 2>(view_held_out_accuracy_object, "view_held_out_accuracy");
        check_shape(view_train_accuracy, "view_train_accuracy", {views.size(), num_models});
        check_shape(view_held_out_accuracy, "view_held_out_accuracy", {views.size(), num_models});
        Array<uint8_t, 3> right;
        if (!right_object.is_none()) {
            right = array_of<uint8_t, 3>(right_object, "right");
            check_shape(right, "right", {views.size(), num_models, num_nodes});
        }
        Array<float, 2> weights;
        if (!weights_object.is_none()) {
            weights = array_of<float, 2>(weights_object, "weights");
            check_shape(weights, "weights", {num_models, static_cast<size_t>(engine.num_parameters())});
        }
        Array<float, 4> embeddings;
        if (!embeddings_object.is_none()) {
            if (engine.num_hidden() == 0) refuse(PyExc_ValueError, "a model without a hidden layer has no embeddings");
            embeddings = array_of<float, 4>(embeddings_object, "embeddings");
            check_shape(embeddings, "embeddings",
                        {queries.size(), num_models, num_nodes, static_cast<size_t>(engine.num_hidden())});
        }
        check_memory("training on so many threads",
                     bytes_each_model_ * num_workers(static_cast<int64_t>(num_models), num_threads));

        const ShadowResults results{statistics.data(), logits_object.is_none() ? nullptr : logits.data(), state.data(),
                                    train_accuracy.data(), held_out_accuracy.data(), view_train_accuracy.data(),
                                    view_held_out_accuracy.data(), right_object.is_none() ? nullptr : right.data(),
                                    weights_object.is_none() ? nullptr : weights.data(),
                                    embeddings_object.is_none() ? nullptr : embeddings.data()};
        interruptible(progress, [&](const Poll &poll) { engine.run(batch, results, num_threads, poll); });
    }

    NewArray<float, 1> gradient(nb::handle parameters, nb::handle member) const {
        return with_sample(parameters, member, [&](const float *values, const uint8_t *flags, const Poll &poll) {
            return engine.gradient(values, flags, poll);
        });
    }
    NewArray<float, 1> trained_parameters(nb::handle parameters, nb::handle member, uint64_t seed, uint64_t index) const {
        return with_sample(parameters, member, [&](const float *values, const uint8_t *flags, const Poll &poll) {
            return engine.trained_parameters(values, flags, seed, index, poll);
        });
    }
    NewArray<float, 2> logits(nb::handle parameters_object, nb::handle query_indptr, nb::handle query_indices) const {
        const auto parameters = vector_of<float>(parameters_object, "parameters");
        check_shape(parameters, "parameters", {static_cast<size_t>(engine.num_parameters())});
        const Adjacency query = adjacency_of(query_indptr, query_indices);
        if (query.num_nodes() != engine.num_nodes())
            refuse(PyExc_ValueError, "a query must be of the graph's ", engine.num_nodes(), " nodes, got ", query.num_nodes());
        std::vector<float> values;
        interruptible([&](const Poll &poll) { values = engine.logits(parameters.data(), query, poll); });
        const size_t shape[] = {static_cast<size_t>(engine.num_nodes()), static_cast<size_t>(engine.num_classes())};
        auto array = new_array<float>("the logits", shape);
        std::copy(values.begin(), values.end(), array.data());
        return array;
    }

  private:
    // What a thread takes to train and score one model, roughly.
    static double bytes_each_model(const GraphArrays &arrays, const ModelSettings &model, const TrainingSettings &training) {
        constexpr double kMatricesEachParameter = 4, kMatricesEachPass = 10, kPassesEachEdge = 2;
        // The sample's features by row and by column, with values, places and coins; or in tiles.
        constexpr double kFloatsEachEntry = 10;
        // A graph of the sample, with its matrices.
        constexpr double kFloatsEachEdge = 10;
        const double num_nodes = arrays.graph.num_nodes(), num_edges = static_cast<double>(arrays.graph.indices.size());
        const FeatureCount features(arrays.features(), arrays.graph.num_nodes());
        const double entries = static_cast<double>(features.entries);
        double gathered = 0;
        if (model.layers.front().kind->input_parts().has_largest)
            gathered = std::min(entries * num_edges / num_nodes, num_nodes * arrays.num_features);
        double floats = (entries + gathered) * (features.is_sparse ? kFloatsEachEntry : 1);
        if (training.validation_share > 0) floats *= 2;  // once more, without coins
        const int graphs = 1 + (training.drop_edge > 0) + (training.batch_size > 0);
        floats += kFloatsEachEdge * graphs * (num_edges + num_nodes);
        double inputs = arrays.num_features;
        for (const LayerSettings &layer : model.layers) {
            const LayerShape shape = layer.shape(1);
            const double lanes = static_cast<double>(shape.blocks) * kLanes;
            const double weights = inputs * shape.tall_parts * lanes * shape.wide_parts;
            floats += kMatricesEachParameter * weights;
            floats += kMatricesEachPass * num_nodes * lanes * std::max(shape.tall_parts, shape.wide_parts);
            floats += kPassesEachEdge * (num_edges + num_nodes) * layer.kind->blocks_each_edge(shape) * kLanes;
            inputs = lanes;
        }
        check_memory("a model", floats * sizeof(float));
        return floats * sizeof(float);
    }

    template <typename Use>
    NewArray<float, 1> with_sample(nb::handle parameters_object, nb::handle member_object, Use use) const {
        const auto parameters = vector_of<float>(parameters_object, "parameters");
        const auto member = vector_of<uint8_t>(member_object, "member");
        check_shape(parameters, "parameters", {static_cast<size_t>(engine.num_parameters())});
        check_shape(member, "member", {static_cast<size_t>(engine.num_nodes())});
        check_flags("member", member);
        if (std::find(member.data(), member.data() + member.size(), 1) == member.data() + member.size())
            refuse(PyExc_ValueError, "member must hold at least one 1");
        std::vector<float> result;
        interruptible([&](const Poll &poll) { result = use(parameters.data(), member.data(), poll); });
        return to_array(result);
    }

    const GraphArrays arrays_;
    const double bytes_each_model_;

  public:
    const ShadowEngine engine;
};

}  // namespace

void bind_shadow(nb::module_ &module) {
    nb::class_<LayerSettings>(module, "LayerSettings")
        .def("__init__", &new_layer_settings, "kind"_a, "channels"_a, "heads"_a = 1, "initialisation"_a = "glorot",
             "drops_input"_a = false, "drops_attention"_a = false, "aggregation"_a = "mean", "root_weight"_a = false,
             "hops"_a = 1, "alpha"_a = 1.0, "norm"_a = "none",
             "residual"_a = 0);
    nb::class_<ModelSettings>(module, "ModelSettings")
        .def("__init__", &new_model_settings, "layers"_a, "activation"_a, "dropout"_a);
    nb::class_<TrainingSettings>(module, "TrainingSettings")
        .def("__init__", &new_training_settings, "epochs"_a, "learning_rate"_a, "weight_decay"_a, "optimizer"_a,
             "schedule"_a = "constant", "label_smoothing"_a = 0.0, "drop_edge"_a = 0.0, "validation_share"_a = 0.0,
             "patience"_a = 0, "batch_size"_a = 0, "neighbors"_a = std::vector<int>());

    nb::class_<EngineWithArrays>(module, "ShadowEngine", "Trains shadow models on one graph, of which it keeps a copy.")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, int32_t, nb::handle, int,
                      ModelSettings, TrainingSettings>(),
             "indptr"_a, "indices"_a, "x_indptr"_a.none(), "x_indices"_a.none(), "x_values"_a.none(), "x_dense"_a.none(),
             "num_features"_a, "labels"_a, "num_classes"_a, "model"_a, "training"_a)
        .def("run", &EngineWithArrays::run, "member"_a, "indices"_a, "seed"_a, "queries"_a, "views"_a, "num_threads"_a,
             "statistics"_a, "logits"_a.none(), "state"_a, "train_accuracy"_a, "held_out_accuracy"_a,
             "view_train_accuracy"_a, "view_held_out_accuracy"_a, "progress"_a.none(),
             "weights"_a.none() = nb::none(), "embeddings"_a.none() = nb::none(), "right"_a.none() = nb::none(),
             "graphs"_a = std::vector<std::pair<nb::object, nb::object>>(),
             "Fills the output arrays; an exception of a signal or of `progress` stops the work and is raised at the end.")
        .def_prop_ro("num_hidden", [](const EngineWithArrays &self) { return self.engine.num_hidden(); })
        .def_prop_ro("num_parameters", [](const EngineWithArrays &self) { return self.engine.num_parameters(); })
        .def(
            "initial_parameters",
            [](const EngineWithArrays &self, uint64_t seed, uint64_t index) {
                return to_array(self.engine.initial_parameters(seed, index));
            },
            "seed"_a, "index"_a)
        .def("gradient", &EngineWithArrays::gradient, "parameters"_a, "member"_a)
        .def("trained_parameters", &EngineWithArrays::trained_parameters, "parameters"_a, "member"_a, "seed"_a = 0,
             "index"_a = 0)
        .def("logits", &EngineWithArrays::logits, "parameters"_a, "indptr"_a, "indices"_a);
}

}  // namespace bmpaudit
