// The attack for Python.
#include <nanobind/stl/optional.h>

#include <optional>

#include "attack.hpp"
#include "bindings.hpp"

namespace bmpaudit {

using namespace nb::literals;

namespace {

// Arrays of one set of models, with those of Python held on to.
struct Models {
    Array<const float, 2> statistics;
    Array<const uint8_t, 2> member;

    Models(nb::handle statistics_object, nb::handle member_object, const std::string &prefix)
        : statistics(array_of<const float, 2>(statistics_object, (prefix + "statistics").c_str())),
          member(array_of<const uint8_t, 2>(member_object, (prefix + "member").c_str())) {
        check_shape(statistics, (prefix + "statistics").c_str(), {member.shape(0), member.shape(1)});
        check_flags((prefix + "member").c_str(), member);
    }
    ModelTable table() const {
        return {statistics.data(), member.data(), static_cast<int64_t>(member.shape(0)),
                static_cast<int64_t>(member.shape(1))};
    }
};

void challenge(nb::handle statistics, nb::handle member, nb::handle fitting_statistics, nb::handle fitting_member,
               nb::handle log_prior_odds_object, nb::handle is_fittable_object, bool pooled_variance, double min_sigma,
               double threshold, int num_threads, nb::handle errors_object, nb::handle scores_object) {
    const Models challenged(statistics, member, "");
    const size_t num_models = challenged.member.shape(0), num_nodes = challenged.member.shape(1);
    if (fitting_statistics.is_none() != fitting_member.is_none())
        refuse(PyExc_TypeError, "fitting_statistics and fitting_member must both be arrays or both be None");
    std::optional<Models> fitting;
    if (!fitting_member.is_none()) {
        fitting.emplace(fitting_statistics, fitting_member, "fitting_");
        check_shape(fitting->member, "fitting_member", {fitting->member.shape(0), num_nodes});
    }
    const auto log_prior_odds = vector_of<double>(log_prior_odds_object, "log_prior_odds");
    const auto is_fittable = vector_of<uint8_t>(is_fittable_object, "is_fittable");
    check_shape(log_prior_odds, "log_prior_odds", {num_nodes});
    check_shape(is_fittable, "is_fittable", {num_nodes});
    check_flags("is_fittable", is_fittable);
    for (size_t node = 0; node < num_nodes; ++node)
        if (is_fittable.data()[node] && std::isnan(log_prior_odds.data()[node]))
            refuse(PyExc_ValueError, "log_prior_odds must not be NaN where a node is fittable, got NaN at node ", node);
    check_not_negative("min_sigma", min_sigma);
    if (std::isnan(threshold)) refuse(PyExc_ValueError, "threshold must not be NaN");
    check_num_threads(num_threads);
    const auto errors = array_of<int64_t, 3>(errors_object, "errors");
    check_shape(errors, "errors", {2, 2, num_nodes});
    Array<double, 2> scores;
    if (!scores_object.is_none()) {
        scores = array_of<double, 2>(scores_object, "scores");
        check_shape(scores, "scores", {num_models, num_nodes});
    }

    const NodePriors priors{log_prior_odds.data(), is_fittable.data()};
    const DecisionRule rule{pooled_variance, min_sigma, threshold};
    int64_t *rows = errors.data();
    const ErrorTotals totals{rows, rows + num_nodes, rows + 2 * num_nodes, rows + 3 * num_nodes};
    double *score = scores_object.is_none() ? nullptr : scores.data();
    interruptible([&](const Poll &poll) {
        if (fitting) challenge_others(fitting->table(), challenged.table(), priors, rule, num_threads, poll, totals, score);
        else challenge_left_out(challenged.table(), priors, rule, num_threads, poll, totals, score);
    });
}

}  // namespace

void bind_attack(nb::module_ &module) {
    module.def(
        "challenge_models", &challenge, "statistics"_a, "member"_a, "fitting_statistics"_a.none(),
        "fitting_member"_a.none(), "log_prior_odds"_a, "is_fittable"_a, "pooled_variance"_a, "min_sigma"_a, "threshold"_a,
        "num_threads"_a, "errors"_a, "scores"_a.none(),
        "Fills `errors` (weak or strong, false positives or negatives, node) and `scores` (model, node); without fitting "
        "models, each model is challenged with hypotheses fitted on all others.");
}

}  // namespace bmpaudit
