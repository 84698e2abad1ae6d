// Estimators for Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <utility>

#include "bind/bindings.hpp"
#include "estimate/likelihood.hpp"
#include "estimate/mhaar.hpp"
#include "estimate/node_rates.hpp"

namespace bmpaudit {

using namespace nb::literals;

namespace {

constexpr double kLargestCount = 0x1.0p40;  // beyond it, the integrals take too long
constexpr double kLargestFinite = std::numeric_limits<double>::max();

Array<const double, 2> counts_of(nb::handle object) {
    const auto counts = array_of<const double, 2>(object, "counts");
    check_shape(counts, "counts", {counts.shape(0), 4});
    for (size_t row = 0; row < counts.shape(0); ++row) {
        const double *node = counts.data() + 4 * row;
        for (int side = 0; side < 2; ++side)
            if (!(node[2 + side] >= 0 && node[2 + side] <= node[side] && node[side] <= kLargestCount))
                refuse(PyExc_ValueError, "counts must be rows (n0, n1, A, B) with 0 <= A <= n0 <= 2^40 and "
                       "0 <= B <= n1 <= 2^40, got (", node[0], ", ", node[1], ", ", node[2], ", ", node[3], ") in row ", row);
    }
    return counts;
}

const NodeCounts *nodes_of(const Array<const double, 2> &counts) {
    return reinterpret_cast<const NodeCounts *>(counts.data());
}

// Counts and prior odds, with the arrays of Python held on to.
struct Counts {
    Array<const double, 2> counts;
    Vector<double> log_prior_odds;

    Counts(nb::handle counts_object, nb::handle log_prior_odds_object)
        : counts(counts_of(counts_object)), log_prior_odds(vector_of<double>(log_prior_odds_object, "log_prior_odds")) {
        check_shape(log_prior_odds, "log_prior_odds", {counts.shape(0)});
        check_not_nan("log_prior_odds", log_prior_odds);
    }
    CountsTable table() const {
        return {nodes_of(counts), log_prior_odds.data(), static_cast<int64_t>(counts.shape(0))};
    }
    int64_t num_nodes() const { return static_cast<int64_t>(counts.shape(0)); }
};

// The same with how many nodes each row stands for.
struct WeightedRows : Counts {
    Vector<double> times;

    WeightedRows(nb::handle counts_object, nb::handle log_prior_odds_object, nb::handle times_object)
        : Counts(counts_object, log_prior_odds_object), times(vector_of<double>(times_object, "times")) {
        check_shape(times, "times", {counts.shape(0)});
        check_each("times", times.data(), times.size(), "be positive and finite",
                   [](double value) { return value > 0 && value < std::numeric_limits<double>::infinity(); });
    }
    WeightedCounts weighted() const { return {table(), times.data()}; }
};

Vector<double> values_of(nb::handle object, const char *name) {
    const auto values = vector_of<double>(object, name);
    check_not_nan(name, values);
    return values;
}

NewArray<double, 2> grid(nb::handle counts_object, nb::handle log_prior_odds, nb::handle times, nb::handle left_object,
                         nb::handle right_object, double depth, double strength, int num_threads, nb::handle progress) {
    const WeightedRows counts(counts_object, log_prior_odds, times);
    const auto left = values_of(left_object, "epsilon_left"), right = values_of(right_object, "epsilon_right");
    const auto num_left = static_cast<int64_t>(left.size()), num_right = static_cast<int64_t>(right.size());
    check_interval("depth", depth, 0, std::numeric_limits<double>::infinity(), true);
    check_interval("strength", strength, 0, 1, false);
    check_num_threads(num_threads);
    checked_size("the grid", {num_left, num_right}, likelihood_bytes_each_point(counts.num_nodes()));
    auto result = new_array<double>("the grid", {left.size(), right.size()});
    interruptible(progress, [&](const Poll &poll) {
        grid_log_likelihood(counts.weighted(), left.data(), num_left, right.data(), num_right, depth, strength, num_threads,
                            poll, result.data());
    });
    return result;
}

// ε_L and ε_R of some points.
struct Points {
    Vector<double> left, right;

    Points(nb::handle left_object, nb::handle right_object)
        : left(values_of(left_object, "epsilon_left")), right(values_of(right_object, "epsilon_right")) {
        check_shape(right, "epsilon_right", {left.size()});
    }
    int64_t size() const { return static_cast<int64_t>(left.size()); }
};

NewArray<double, 1> likelihood(nb::handle counts_object, nb::handle log_prior_odds, nb::handle times,
                               nb::handle left_object, nb::handle right_object, nb::handle cutoff_object, double strength,
                               int num_threads, nb::handle progress) {
    const WeightedRows counts(counts_object, log_prior_odds, times);
    const Points points(left_object, right_object);
    const auto cutoff = vector_of<double>(cutoff_object, "cutoff");  // nothing reaches NaN
    check_shape(cutoff, "cutoff", {points.left.size()});
    check_interval("strength", strength, 0, 1, false);
    check_num_threads(num_threads);
    checked_size("the log-likelihood", {points.size()}, likelihood_bytes_each_point(counts.num_nodes()));
    auto result = new_array<double>("the log-likelihood", {points.left.size()});
    interruptible(progress, [&](const Poll &poll) {
        log_likelihood(counts.weighted(), points.left.data(), points.right.data(), points.size(), cutoff.data(), strength,
                       num_threads, poll, result.data());
    });
    return result;
}

NewArray<double, 2> node_likelihood(nb::handle counts_object, nb::handle log_prior_odds, nb::handle left_object,
                                    nb::handle right_object, double strength, int num_threads) {
    const Counts counts(counts_object, log_prior_odds);
    const Points points(left_object, right_object);
    check_interval("strength", strength, 0, 1, false);
    check_num_threads(num_threads);
    auto result = new_array<double>("the log-likelihoods", {counts.counts.shape(0), points.left.size()});
    interruptible([&](const Poll &poll) {
        node_log_likelihood(counts.table(), points.left.data(), points.right.data(), points.size(), strength, num_threads,
                            poll, result.data());
    });
    return result;
}

NewArray<double, 3> quantiles(nb::handle counts_object, nb::handle probabilities_object, int num_threads) {
    const auto counts = counts_of(counts_object);
    const auto probabilities = vector_of<double>(probabilities_object, "probabilities");
    check_each("probabilities", probabilities.data(), probabilities.size(), "be in (0, 1)",
               [](double probability) { return probability > 0 && probability < 1; });
    check_num_threads(num_threads);
    auto result = new_array<double>("the quantiles", {2, counts.shape(0), probabilities.size()});
    const auto num_nodes = static_cast<int64_t>(counts.shape(0));
    const auto num_probabilities = static_cast<int64_t>(probabilities.size());
    interruptible([&](const Poll &poll) {
        leakage_quantiles(nodes_of(counts), num_nodes, probabilities.data(), num_probabilities, num_threads, poll,
                          result.data(), result.data() + num_nodes * num_probabilities);
    });
    return result;
}

void check_settings(const MhaarSettings &settings, const Counts &counts) {
    if (counts.num_nodes() == 0) refuse(PyExc_ValueError, "counts must have at least one row");
    if (!settings.bounds_left && !settings.bounds_right)
        refuse(PyExc_ValueError, "at least one of bounds_left and bounds_right must be true");
    if (settings.is_joint && !(settings.bounds_left && settings.bounds_right))
        refuse(PyExc_ValueError, "a joint definition must bound both sides");
    check_finite("prior_mean", settings.prior_mean);
    check_positive("prior_variance", settings.prior_variance);
    check_interval("strength", settings.strength, 0, 1, false);
    if (settings.estimates_strength) {
        check_positive("strength_prior", settings.strength_a);
        check_positive("strength_prior", settings.strength_b);
    }
    if (settings.is_correlated) check_positive("tau_variance", settings.tau_variance);
    check_at_least("num_auxiliary", settings.num_auxiliary, 1);
    check_at_least("burn_in", settings.burn_in, 0);
    if (settings.num_iterations <= settings.burn_in)
        refuse(PyExc_ValueError, "num_iterations must exceed burn_in=", settings.burn_in, ", got ", settings.num_iterations);
}

void mhaar(nb::handle counts_object, nb::handle log_prior_odds, bool bounds_left, bool bounds_right, bool is_joint,
           double prior_mean, double prior_variance, double strength, std::optional<std::pair<double, double>> strength_prior,
           std::optional<double> tau_variance, int num_auxiliary, int64_t num_iterations, int64_t burn_in, uint64_t seed,
           uint64_t purpose, int num_threads, nb::handle draws_object, nb::handle acceptance_object, nb::handle progress) {
    const auto [strength_a, strength_b] = strength_prior.value_or(std::pair<double, double>{0, 0});
    const MhaarSettings settings{
        bounds_left, bounds_right, is_joint, prior_mean, prior_variance, strength, strength_prior.has_value(), strength_a,
        strength_b, tau_variance.has_value(), tau_variance.value_or(0.0), num_auxiliary, num_iterations, burn_in, seed,
        purpose};
    const Counts counts(counts_object, log_prior_odds);
    check_settings(settings, counts);
    check_num_threads(num_threads);
    const auto draws = array_of<double, 3>(draws_object, "draws");
    const auto acceptance = array_of<double, 1>(acceptance_object, "acceptance");
    const size_t num_chains = draws.shape(0), num_kept = static_cast<size_t>(num_iterations - burn_in);
    check_range("the number of chains", static_cast<int64_t>(num_chains), int64_t{0},
                static_cast<int64_t>(std::numeric_limits<int>::max()));
    check_shape(draws, "draws", {num_chains, num_kept, static_cast<size_t>(settings.num_parameters())});
    check_shape(acceptance, "acceptance", {num_chains});
    checked_size("the points of the chains",
                 {num_workers(static_cast<int64_t>(num_chains), num_threads), counts.num_nodes() + 16, num_auxiliary},
                 mhaar_bytes_each_point(settings));
    interruptible(progress, [&](const Poll &poll) {
        run_mhaar(counts.table(), settings, static_cast<int>(num_chains), num_threads, {draws.data(), acceptance.data()},
                  poll);
    });
}

}  // namespace

void bind_estimation(nb::module_ &module) {
    module.def("grid_log_likelihood", &grid, "counts"_a, "log_prior_odds"_a, "times"_a, "epsilon_left"_a, "epsilon_right"_a,
               "depth"_a, "strength"_a, "num_threads"_a, "progress"_a.none(),
               "Log-likelihood on a grid, shape (num_left, num_right); progress is called with the number of rows done.");
    module.def("log_likelihood", &likelihood, "counts"_a, "log_prior_odds"_a, "times"_a, "epsilon_left"_a,
               "epsilon_right"_a, "cutoff"_a, "strength"_a, "num_threads"_a, "progress"_a.none(),
               "Log-likelihood of each pair (ε_L, ε_R), shape (num_points,); counts are rows (n0, n1, A, B), each of which "
               "counts several times. progress is called with the number of rows done.");
    module.def("node_log_likelihood", &node_likelihood, "counts"_a, "log_prior_odds"_a, "epsilon_left"_a,
               "epsilon_right"_a, "strength"_a, "num_threads"_a, "The same for each row alone, shape (K, num_points).");
    module.def("leakage_quantiles", &quantiles, "counts"_a, "probabilities"_a, "num_threads"_a,
               "Quantiles of e_R - log η and of e_L + log η, shape (2, K, num_probabilities); probabilities in (0, 1).");
    module.def("run_mhaar", &mhaar, "counts"_a, "log_prior_odds"_a, "bounds_left"_a, "bounds_right"_a, "is_joint"_a,
               "prior_mean"_a, "prior_variance"_a, "strength"_a, "strength_prior"_a.none(), "tau_variance"_a.none(),
               "num_auxiliary"_a, "num_iterations"_a, "burn_in"_a, "seed"_a, "purpose"_a, "num_threads"_a, "draws"_a,
               "acceptance"_a, "progress"_a.none(),
               "Algorithm 3: fills draws (num_chains, num_kept, num_parameters) and the acceptance rate of each chain.");
}

}  // namespace bmpaudit
