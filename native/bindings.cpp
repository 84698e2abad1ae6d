// The one place where Python and C++ meet. Arguments were validated in Python; arrays are shared, not copied.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "samplers.hpp"
#include "shadow.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace bmpaudit;

namespace {

template <typename T> using Input = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T, size_t N> nb::ndarray<nb::numpy, T, nb::ndim<N>> new_array(const size_t (&shape)[N]) {
    size_t size = 1;
    for (const size_t extent : shape) size *= extent;
    auto data = std::make_unique<T[]>(size);  // zeros
    T *pointer = data.release();
    nb::capsule owner(pointer, [](void *memory) noexcept { delete[] static_cast<T *>(memory); });
    return nb::ndarray<nb::numpy, T, nb::ndim<N>>(pointer, N, shape, owner);
}

Adjacency adjacency(const Input<int64_t> &indptr, const Input<int32_t> &indices) {
    return {indptr.data(), indices.data(), static_cast<int32_t>(indptr.shape(0)) - 1};
}

template <typename T> nb::ndarray<nb::numpy, T, nb::ndim<1>> to_array(const std::vector<T> &values) {
    auto array = new_array<T>({values.size()});
    std::copy(values.begin(), values.end(), array.data());
    return array;
}

template <typename T, size_t N> using Output = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

// An engine together with the arrays it reads.
class EngineWithArrays {
  public:
    EngineWithArrays(Input<int64_t> indptr, Input<int32_t> indices, std::optional<Input<int64_t>> x_indptr,
                     std::optional<Input<int32_t>> x_indices, std::optional<Input<float>> x_values,
                     std::optional<Input<float>> x_dense, int32_t num_features, Input<int32_t> labels, int num_classes,
                     ModelSettings model, TrainingSettings training)
        : integers64_{indptr, x_indptr.value_or(Input<int64_t>())},
          integers32_{indices, x_indices.value_or(Input<int32_t>()), labels},
          floats_{x_values.value_or(Input<float>()), x_dense.value_or(Input<float>())},
          engine(adjacency(indptr, indices),
                 FeatureView{num_features, x_indptr ? x_indptr->data() : nullptr, x_indices ? x_indices->data() : nullptr,
                             x_values ? x_values->data() : nullptr, x_dense ? x_dense->data() : nullptr},
                 labels.data(), num_classes, model, training) {}

  private:
    std::vector<Input<int64_t>> integers64_;
    std::vector<Input<int32_t>> integers32_;
    std::vector<Input<float>> floats_;

  public:
    const ShadowEngine engine;
};

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "C++ kernels of bmpaudit.";

    nb::class_<Sampler>(m, "Sampler", "Draws training samples; made for one graph, whose arrays it keeps alive.")
        .def(
            "sample",
            [](const Sampler &sampler, nb::capsule bit_generator) {
                NumpyBits random(static_cast<const NumpyBitGenerator *>(bit_generator.data("BitGenerator")));
                std::vector<uint8_t> member(sampler.num_nodes());
                sampler.draw(random, member.data());
                size_t size = 0;
                for (const uint8_t flag : member) size += flag;
                auto nodes = new_array<int64_t>({size});
                int64_t *out = nodes.data();
                for (int32_t node = 0; node < sampler.num_nodes(); ++node)
                    if (member[node]) *out++ = node;
                return nodes;
            },
            "bit_generator"_a, "Node ids of one sample, ascending, drawn with a NumPy bit generator's capsule.")
        .def(
            "memberships",
            [](const Sampler &sampler, uint64_t seed, uint64_t purpose, uint64_t first, int64_t count, int num_threads) {
                auto member = new_array<uint8_t>({static_cast<size_t>(count), static_cast<size_t>(sampler.num_nodes())});
                nb::gil_scoped_release release;
                draw_memberships(sampler, {seed, purpose, first, count}, num_threads, member.data());
                return member;
            },
            "seed"_a, "purpose"_a, "first"_a, "count"_a, "num_threads"_a,
            "Flags (count, num_nodes) of the samples first, ..., first + count - 1.")
        .def(
            "counts",
            [](const Sampler &sampler, uint64_t seed, uint64_t purpose, uint64_t first, int64_t count, int num_threads) {
                auto counts = new_array<int64_t>({static_cast<size_t>(sampler.num_nodes())});
                nb::gil_scoped_release release;
                count_memberships(sampler, {seed, purpose, first, count}, num_threads, counts.data());
                return counts;
            },
            "seed"_a, "purpose"_a, "first"_a, "count"_a, "num_threads"_a,
            "How many of the samples first, ..., first + count - 1 hold each node.");

    nb::class_<GroupedSubset, Sampler>(m, "GroupedSubset")
        .def(
            "__init__",
            [](GroupedSubset *self, Input<int32_t> group, std::vector<int32_t> take) {
                new (self) GroupedSubset(group.data(), static_cast<int32_t>(group.shape(0)), std::move(take));
            },
            "group"_a.noconvert(), "take"_a);
    nb::class_<IndependentCoins, Sampler>(m, "IndependentCoins")
        .def(nb::init<int32_t, double>(), "num_nodes"_a, "probability"_a);
    nb::class_<WeightedSubset, Sampler>(m, "WeightedSubset")
        .def(
            "__init__",
            [](WeightedSubset *self, Input<double> weights, int32_t take) {
                new (self) WeightedSubset({weights.data(), weights.data() + weights.shape(0)}, take);
            },
            "weights"_a.noconvert(), "take"_a);
    nb::class_<Snowball, Sampler>(m, "Snowball")
        .def(
            "__init__",
            [](Snowball *self, Input<int64_t> indptr, Input<int32_t> indices, int32_t target, int32_t fan_out,
               bool restart) { new (self) Snowball(adjacency(indptr, indices), target, fan_out, restart); },
            "indptr"_a.noconvert(), "indices"_a.noconvert(), "target"_a, "fan_out"_a, "restart"_a, nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 3>());
    nb::class_<RandomWalks, Sampler>(m, "RandomWalks")
        .def(
            "__init__",
            [](RandomWalks *self, Input<int64_t> indptr, Input<int32_t> indices, int32_t num_roots, int32_t walk_length) {
                new (self) RandomWalks(adjacency(indptr, indices), num_roots, walk_length);
            },
            "indptr"_a.noconvert(), "indices"_a.noconvert(), "num_roots"_a, "walk_length"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());

    nb::enum_<Architecture>(m, "Architecture")
        .value("mlp", Architecture::mlp)
        .value("gcn", Architecture::gcn)
        .value("gat", Architecture::gat);
    nb::enum_<Activation>(m, "Activation").value("relu", Activation::relu).value("elu", Activation::elu);
    nb::enum_<Optimizer>(m, "Optimizer").value("adam", Optimizer::adam).value("sgd", Optimizer::sgd);
    nb::class_<ModelSettings>(m, "ModelSettings")
        .def(nb::init<Architecture, int, int, int, Activation, double, bool, bool, bool>(), "architecture"_a, "hidden"_a,
             "heads"_a, "layers"_a, "activation"_a, "dropout"_a, "drops_input"_a, "drops_attention"_a, "drops_hidden"_a);
    nb::class_<TrainingSettings>(m, "TrainingSettings")
        .def(nb::init<int, double, double, Optimizer>(), "epochs"_a, "learning_rate"_a, "weight_decay"_a, "optimizer"_a);

    nb::class_<EngineWithArrays>(m, "ShadowEngine", "Trains shadow models on one graph, whose arrays it keeps alive.")
        .def(nb::init<Input<int64_t>, Input<int32_t>, std::optional<Input<int64_t>>, std::optional<Input<int32_t>>,
                      std::optional<Input<float>>, std::optional<Input<float>>, int32_t, Input<int32_t>, int,
                      ModelSettings, TrainingSettings>(),
             "indptr"_a.noconvert(), "indices"_a.noconvert(), "x_indptr"_a.noconvert().none(),
             "x_indices"_a.noconvert().none(), "x_values"_a.noconvert().none(), "x_dense"_a.noconvert().none(),
             "num_features"_a, "labels"_a.noconvert(), "num_classes"_a, "model"_a, "training"_a)
        .def(
            "run",
            [](const EngineWithArrays &self, Output<const uint8_t, 2> member, Input<int64_t> indices, uint64_t seed,
               const std::vector<std::pair<bool, bool>> &views, double noise_std, int num_threads,
               Output<float, 3> statistics, std::optional<Output<float, 4>> logits, Output<uint8_t, 1> state,
               Output<float, 1> train_accuracy, Output<float, 1> held_out_accuracy, nb::object progress) {
                const int64_t num_models = static_cast<int64_t>(member.shape(0));
                ShadowBatch batch{member.data(), indices.data(), num_models, seed, {}, noise_std};
                for (const auto &[full_edges, noisy] : views) batch.views.push_back({full_edges, noisy});
                const ShadowResults results{statistics.data(), logits ? logits->data() : nullptr, state.data(),
                                            train_accuracy.data(), held_out_accuracy.data()};
                std::unique_ptr<nb::python_error> interruption;
                {
                    nb::gil_scoped_release release;
                    self.engine.run(batch, results, num_threads, [&](int64_t done) {
                        nb::gil_scoped_acquire acquire;
                        if (interruption) return true;
                        try {
                            if (PyErr_CheckSignals() != 0) throw nb::python_error();
                            progress(done);
                        } catch (nb::python_error &error) {
                            interruption = std::make_unique<nb::python_error>(std::move(error));
                        }
                        return interruption != nullptr;
                    });
                }
                if (interruption) throw nb::python_error(std::move(*interruption));
            },
            "member"_a.noconvert(), "indices"_a.noconvert(), "seed"_a, "views"_a, "noise_std"_a, "num_threads"_a,
            "statistics"_a.noconvert(), "logits"_a.noconvert().none(), "state"_a.noconvert(),
            "train_accuracy"_a.noconvert(), "held_out_accuracy"_a.noconvert(), "progress"_a,
            "Fills the output arrays; an exception of a signal or of `progress` stops the work and is raised at the end.")
        .def_prop_ro("num_parameters", [](const EngineWithArrays &self) { return self.engine.num_parameters(); })
        .def(
            "initial_parameters",
            [](const EngineWithArrays &self, uint64_t seed, uint64_t index) {
                return to_array(self.engine.initial_parameters(seed, index));
            },
            "seed"_a, "index"_a)
        .def(
            "gradient",
            [](const EngineWithArrays &self, Input<float> parameters, Input<uint8_t> member) {
                return to_array(self.engine.gradient(parameters.data(), member.data()));
            },
            "parameters"_a.noconvert(), "member"_a.noconvert())
        .def(
            "trained_parameters",
            [](const EngineWithArrays &self, Input<float> parameters, Input<uint8_t> member) {
                return to_array(self.engine.trained_parameters(parameters.data(), member.data()));
            },
            "parameters"_a.noconvert(), "member"_a.noconvert());
}
