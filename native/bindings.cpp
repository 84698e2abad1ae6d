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

#include "attack.hpp"
#include "beta_regions.hpp"
#include "node_leakage.hpp"
#include "mhaar.hpp"
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

// Runs work(poll) without Python's lock; poll(done) tells the progress and whether to stop, because of Ctrl-C or because
// the progress raised. Which it was is raised here, once all threads are back.
template <typename Work> void with_progress(const nb::object &progress, Work work) {
    std::unique_ptr<nb::python_error> interruption;
    {
        nb::gil_scoped_release release;
        work([&](int64_t done) {
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
}

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
                with_progress(progress, [&](const auto &poll) { self.engine.run(batch, results, num_threads, poll); });
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

    m.def(
        "challenge_models",
        [](Output<const float, 2> statistics, Output<const uint8_t, 2> member,
           std::optional<Output<const float, 2>> fitting_statistics, std::optional<Output<const uint8_t, 2>> fitting_member,
           Input<double> log_prior_odds, Input<uint8_t> is_fittable, bool pooled_variance, double min_sigma,
           double threshold, int num_threads, Output<int64_t, 3> errors, std::optional<Output<double, 2>> scores) {
            const auto num_nodes = static_cast<int64_t>(member.shape(1));
            const auto num_models = [](const auto &flags) { return static_cast<int64_t>(flags.shape(0)); };
            const ModelTable challenged{statistics.data(), member.data(), num_models(member), num_nodes};
            const NodePriors priors{log_prior_odds.data(), is_fittable.data()};
            const DecisionRule rule{pooled_variance, min_sigma, threshold};
            int64_t *rows = errors.data();
            const ErrorTotals totals{rows, rows + num_nodes, rows + 2 * num_nodes, rows + 3 * num_nodes};
            double *score = scores ? scores->data() : nullptr;
            nb::gil_scoped_release release;
            if (fitting_statistics && fitting_member) {
                const ModelTable fitting{fitting_statistics->data(), fitting_member->data(), num_models(*fitting_member),
                                         num_nodes};
                challenge_others(fitting, challenged, priors, rule, num_threads, totals, score);
            } else {
                challenge_left_out(challenged, priors, rule, num_threads, totals, score);
            }
        },
        "statistics"_a.noconvert(), "member"_a.noconvert(), "fitting_statistics"_a.noconvert().none(),
        "fitting_member"_a.noconvert().none(), "log_prior_odds"_a.noconvert(), "is_fittable"_a.noconvert(),
        "pooled_variance"_a, "min_sigma"_a, "threshold"_a, "num_threads"_a, "errors"_a.noconvert(),
        "scores"_a.noconvert().none(),
        "Fills `errors` (weak or strong, false positives or negatives, node) and `scores` (model, node); without fitting "
        "models, each model is challenged with hypotheses fitted on all others.");

    m.def(
        "grid_log_likelihood",
        [](nb::ndarray<const double, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu> counts, Input<double> log_prior_odds,
           Input<double> epsilon_left, Input<double> epsilon_right, double depth, double strength, int num_threads) {
            auto result = new_array<double>({epsilon_left.shape(0), epsilon_right.shape(0)});
            const CountsTable table{reinterpret_cast<const NodeCounts *>(counts.data()), log_prior_odds.data(),
                                    static_cast<int64_t>(counts.shape(0))};
            nb::gil_scoped_release release;
            grid_log_likelihood(table, epsilon_left.data(), static_cast<int64_t>(epsilon_left.shape(0)), epsilon_right.data(),
                                static_cast<int64_t>(epsilon_right.shape(0)), depth, strength, num_threads, result.data());
            return result;
        },
        "counts"_a.noconvert(), "log_prior_odds"_a.noconvert(), "epsilon_left"_a.noconvert(), "epsilon_right"_a.noconvert(),
        "depth"_a, "strength"_a, "num_threads"_a, "Log-likelihood on a grid, shape (num_left, num_right).");
    m.def(
        "log_likelihood",
        [](nb::ndarray<const double, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu> counts, Input<double> log_prior_odds,
           Input<double> epsilon_left, Input<double> epsilon_right, Input<double> cutoff, double strength,
           int num_threads) {
            auto result = new_array<double>({epsilon_left.shape(0)});
            const CountsTable table{reinterpret_cast<const NodeCounts *>(counts.data()), log_prior_odds.data(),
                                    static_cast<int64_t>(counts.shape(0))};
            nb::gil_scoped_release release;
            log_likelihood(table, epsilon_left.data(), epsilon_right.data(), static_cast<int64_t>(epsilon_left.shape(0)),
                           cutoff.data(), strength, num_threads, result.data());
            return result;
        },
        "counts"_a.noconvert(), "log_prior_odds"_a.noconvert(), "epsilon_left"_a.noconvert(), "epsilon_right"_a.noconvert(),
        "cutoff"_a.noconvert(), "strength"_a, "num_threads"_a,
        "Log-likelihood of each pair (ε_L, ε_R), shape (num_points,); counts are rows (n0, n1, A, B).");

    m.def(
        "leakage_quantiles",
        [](nb::ndarray<const double, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu> counts, Input<double> probabilities,
           int num_threads) {
            auto result = new_array<double>({2, counts.shape(0), probabilities.shape(0)});
            const int64_t num_nodes = static_cast<int64_t>(counts.shape(0));
            const int64_t num_probabilities = static_cast<int64_t>(probabilities.shape(0));
            nb::gil_scoped_release release;
            leakage_quantiles(reinterpret_cast<const NodeCounts *>(counts.data()), num_nodes, probabilities.data(),
                              num_probabilities, num_threads, result.data(), result.data() + num_nodes * num_probabilities);
            return result;
        },
        "counts"_a.noconvert(), "probabilities"_a.noconvert(), "num_threads"_a,
        "Quantiles of e_R - log η and of e_L + log η, shape (2, K, num_probabilities); probabilities in (0, 1).");

    m.def(
        "run_mhaar",
        [](nb::ndarray<const double, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu> counts, Input<double> log_prior_odds,
           bool bounds_left, bool bounds_right, bool is_joint, double prior_mean, double prior_variance, double strength,
           std::optional<std::pair<double, double>> strength_prior, std::optional<double> tau_variance, int num_auxiliary,
           int64_t num_iterations, int64_t burn_in, uint64_t seed, uint64_t purpose, int num_threads,
           Output<double, 3> draws, Output<double, 1> acceptance, nb::object progress) {
            const auto [strength_a, strength_b] = strength_prior.value_or(std::pair<double, double>{0, 0});
            const MhaarSettings settings{
                bounds_left, bounds_right, is_joint, prior_mean, prior_variance, strength, strength_prior.has_value(),
                strength_a, strength_b, tau_variance.has_value(), tau_variance.value_or(0.0), num_auxiliary,
                num_iterations, burn_in, seed, purpose};
            const CountsTable table{reinterpret_cast<const NodeCounts *>(counts.data()), log_prior_odds.data(),
                                    static_cast<int64_t>(counts.shape(0))};
            with_progress(progress, [&](const auto &poll) {
                run_mhaar(table, settings, static_cast<int>(draws.shape(0)), num_threads, {draws.data(), acceptance.data()},
                          poll);
            });
        },
        "counts"_a.noconvert(), "log_prior_odds"_a.noconvert(), "bounds_left"_a, "bounds_right"_a, "is_joint"_a,
        "prior_mean"_a, "prior_variance"_a, "strength"_a, "strength_prior"_a.none(), "tau_variance"_a.none(),
        "num_auxiliary"_a, "num_iterations"_a, "burn_in"_a, "seed"_a, "purpose"_a, "num_threads"_a, "draws"_a.noconvert(),
        "acceptance"_a.noconvert(), "progress"_a,
        "Algorithm 3: fills draws (num_chains, num_kept, num_parameters) and the acceptance rate of each chain.");
}
