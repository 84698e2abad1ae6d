// Attacks, and what is counted of their scores, for Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>

#include "attack/gaussian.hpp"
#include "attack/node_test.hpp"
#include "attack/rows.hpp"
#include "attack/scores.hpp"
#include "attack/student.hpp"
#include "bind/bindings.hpp"

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

// Prior parameters of the Student attack, with the arrays of Python held on to.
struct Priors {
    Array<const double, 3> level;
    Array<const double, 2> shift, weights, dof, other_share;
    Array<const double, 4> scale;
    Array<const double, 3> log_gamma;

    Priors(nb::handle level_object, nb::handle shift_object, nb::handle weights_object, nb::handle dof_object,
           nb::handle other_share_object, nb::handle scale_object, nb::handle log_gamma_object, size_t num_features, size_t num_models)
        : level(array_of<const double, 3>(level_object, "level")), shift(array_of<const double, 2>(shift_object, "shift")),
          weights(array_of<const double, 2>(weights_object, "weights")), dof(array_of<const double, 2>(dof_object, "dof")),
          other_share(array_of<const double, 2>(other_share_object, "other_share")),
          scale(array_of<const double, 4>(scale_object, "scale")),
          log_gamma(array_of<const double, 3>(log_gamma_object, "log_gamma")) {
        const size_t num_sets = level.shape(0);
        check_at_least("the number of priors", static_cast<int64_t>(num_sets), 1);
        check_shape(level, "level", {num_sets, 2, num_features});
        check_shape(shift, "shift", {num_sets, num_features});
        check_shape(weights, "weights", {num_sets, 2});
        check_shape(dof, "dof", {num_sets, 2});
        check_shape(other_share, "other_share", {num_sets, 2});
        check_shape(scale, "scale", {num_sets, 2, num_features, num_features});
        check_shape(log_gamma, "log_gamma", {num_sets, 2, num_models + 1});
        const auto is_finite = [](double value) { return std::isfinite(value); };
        check_each("level", level.data(), level.size(), "be finite", is_finite);
        check_each("shift", shift.data(), shift.size(), "be finite", is_finite);
        check_each("scale", scale.data(), scale.size(), "be finite", is_finite);
        check_each("log_gamma", log_gamma.data(), log_gamma.size(), "be finite", is_finite);
        check_each("weights", weights.data(), weights.size(), "be positive and finite",
                   [](double value) { return std::isfinite(value) && value > 0; });
        check_each("dof", dof.data(), dof.size(), "be finite and above the number of features + 1", [&](double value) {
            return std::isfinite(value) && value > static_cast<double>(num_features) + 1;
        });
        check_each("other_share", other_share.data(), other_share.size(), "be in [0, 1]",
                   [](double value) { return value >= 0 && value <= 1; });
        for (size_t matrix = 0; matrix < 2 * num_sets; ++matrix) check_positive_definite(matrix, num_features);
    }
    StudentPriors view() const {
        return {static_cast<int>(level.shape(2)), static_cast<int64_t>(log_gamma.shape(2)), level.data(), shift.data(),
                weights.data(), dof.data(), other_share.data(), scale.data(), log_gamma.data()};
    }

  private:
    void check_positive_definite(size_t matrix, size_t size) const {
        const double *entries = scale.data() + matrix * size * size;
        double lower[kMaxStudentFeatures][kMaxStudentFeatures];
        for (size_t v = 0; v < size; ++v)
            for (size_t w = 0; w <= v; ++w) {
                double rest = entries[v * size + w];
                for (size_t u = 0; u < w; ++u) rest -= lower[v][u] * lower[w][u];
                if (v == w && !(rest > 0)) refuse(PyExc_ValueError, "scale must be positive definite, got matrix ", matrix);
                lower[v][w] = v == w ? std::sqrt(rest) : rest / lower[w][w];
            }
    }
};

void score_student(nb::handle features_object, nb::handle member_object, nb::handle challenged_object,
                   nb::handle set_of_object, nb::handle level, nb::handle shift, nb::handle weights, nb::handle dof,
                   nb::handle other_share, nb::handle scale, nb::handle log_gamma, int num_threads, nb::handle scores_object) {
    const auto features = array_of<const float, 3>(features_object, "features");
    const auto member = array_of<const uint8_t, 2>(member_object, "member");
    const size_t num_features = features.shape(0), num_fitting = features.shape(1), num_nodes = features.shape(2);
    check_range<int64_t>("the number of features", static_cast<int64_t>(num_features), 1, kMaxStudentFeatures);
    check_shape(member, "member", {num_fitting, num_nodes});
    check_flags("member", member);
    Array<const float, 3> challenged = features;
    if (!challenged_object.is_none()) {
        challenged = array_of<const float, 3>(challenged_object, "challenged");
        check_shape(challenged, "challenged", {num_features, challenged.shape(1), num_nodes});
    }
    const size_t num_models = challenged.shape(1);
    const Priors priors(level, shift, weights, dof, other_share, scale, log_gamma, num_features, num_fitting);
    const auto set_of = vector_of<int64_t>(set_of_object, "set_of");
    check_shape(set_of, "set_of", {num_models});
    const int64_t num_sets = static_cast<int64_t>(priors.level.shape(0));
    check_each("set_of", set_of.data(), set_of.size(), "be the number of a prior",
               [&](int64_t set) { return set >= 0 && set < num_sets; });
    check_num_threads(num_threads);
    const auto scores = array_of<double, 2>(scores_object, "scores");
    check_shape(scores, "scores", {num_models, num_nodes});

    const auto table = [](const Array<const float, 3> &array) {
        return FeatureTable{array.data(), static_cast<int64_t>(array.shape(1)), static_cast<int64_t>(array.shape(2))};
    };
    const FeatureTable fitting = table(features), asked = table(challenged);
    interruptible([&](const Poll &poll) {
        student_scores(fitting, member.data(), challenged_object.is_none() ? nullptr : &asked, set_of.data(),
                       priors.view(), num_threads, poll, scores.data());
    });
}

void average_neighbours(nb::handle indptr, nb::handle indices, nb::handle values_object, int num_threads,
                        nb::handle means_object) {
    const Adjacency graph = adjacency_of(indptr, indices);
    const auto values = array_of<const float, 2>(values_object, "values");
    const auto means = array_of<float, 2>(means_object, "means");
    check_shape(values, "values", {values.shape(0), static_cast<size_t>(graph.num_nodes())});
    check_shape(means, "means", {values.shape(0), values.shape(1)});
    check_num_threads(num_threads);
    interruptible([&](const Poll &poll) {
        neighbour_means(graph, values.data(), static_cast<int64_t>(values.shape(0)), num_threads, poll, means.data());
    });
}

void sum_features(nb::handle features_object, nb::handle member_object, nb::handle center_object, nb::handle fold_of_object,
                  int num_threads, nb::handle sums_object) {
    const auto features = array_of<const float, 3>(features_object, "features");
    const auto member = array_of<const uint8_t, 2>(member_object, "member");
    const size_t num_features = features.shape(0), num_models = features.shape(1), num_nodes = features.shape(2);
    check_range<int64_t>("the number of features", static_cast<int64_t>(num_features), 1, kMaxStudentFeatures);
    check_at_least("the number of models", static_cast<int64_t>(num_models), 1);
    check_shape(member, "member", {num_models, num_nodes});
    check_flags("member", member);
    const auto center = array_of<const double, 2>(center_object, "center");
    check_shape(center, "center", {num_features, num_nodes});
    const auto fold_of = vector_of<int64_t>(fold_of_object, "fold_of");
    check_shape(fold_of, "fold_of", {num_models});
    const auto sums = array_of<double, 5>(sums_object, "sums");
    check_shape(sums, "sums", {sums.shape(0), 2, num_nodes, num_features + 1, num_features + 1});
    const auto num_folds = static_cast<int64_t>(sums.shape(0));
    check_each("fold_of", fold_of.data(), fold_of.size(), "be the number of a fold",
               [&](int64_t fold) { return fold >= 0 && fold < num_folds; });
    check_num_threads(num_threads);
    const FeatureTable table{features.data(), static_cast<int64_t>(num_models), static_cast<int64_t>(num_nodes)};
    interruptible([&](const Poll &poll) {
        student_sums(table, static_cast<int>(num_features), member.data(), center.data(), fold_of.data(), num_threads, poll,
                     sums.data());
    });
}

void weigh_covariances(nb::handle start_object, nb::handle freedom_object, nb::handle scatter_object, nb::handle own_object,
                       nb::handle other_object, nb::handle shares_object, nb::handle candidates_object, int num_threads,
                       nb::handle likelihood_object) {
    const auto start = vector_of<int64_t>(start_object, "start");
    const auto freedom = vector_of<double>(freedom_object, "freedom");
    const auto scatter = array_of<const double, 3>(scatter_object, "scatter");
    const auto own = array_of<const double, 3>(own_object, "own");
    const auto other = array_of<const double, 3>(other_object, "other");
    const auto shares = vector_of<double>(shares_object, "shares");
    const auto candidates = vector_of<double>(candidates_object, "candidates");
    const size_t num_nodes = freedom.size(), num_problems = own.shape(0), num_features = own.shape(1);
    check_range<int64_t>("the number of features", static_cast<int64_t>(num_features), 1, kMaxStudentFeatures);
    check_shape(own, "own", {num_problems, num_features, num_features});
    check_shape(scatter, "scatter", {num_nodes, num_features, num_features});
    check_shape(other, "other", {num_nodes, num_features, num_features});
    check_shape(start, "start", {num_problems + 1});
    if (start.data()[0] != 0 || start.data()[num_problems] != static_cast<int64_t>(num_nodes))
        refuse(PyExc_ValueError, "start must begin with 0 and end with the number of nodes, ", num_nodes);
    for (size_t problem = 0; problem < num_problems; ++problem)
        if (start.data()[problem + 1] < start.data()[problem]) refuse(PyExc_ValueError, "start must not decrease");
    check_num_threads(num_threads);
    const auto likelihood = array_of<double, 3>(likelihood_object, "likelihood");
    check_shape(likelihood, "likelihood", {num_problems, shares.size(), candidates.size()});
    const CovarianceProblems problems{static_cast<int>(num_features), static_cast<int64_t>(num_problems), start.data(),
                                      freedom.data(), scatter.data(), own.data(), other.data()};
    interruptible([&](const Poll &poll) {
        covariance_likelihood(problems, shares.data(), static_cast<int64_t>(shares.size()), candidates.data(),
                              static_cast<int64_t>(candidates.size()), num_threads, poll, likelihood.data());
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
    module.def("neighbour_means", &average_neighbours, "indptr"_a, "indices"_a, "values"_a, "num_threads"_a, "means"_a,
               "Fills `means` (row, node) with the mean of `values` (row, node) over each node's neighbours.");
    module.def("student_sums", &sum_features, "features"_a, "member"_a, "center"_a, "fold_of"_a, "num_threads"_a, "sums"_a,
               "Adds to `sums` (fold, side, node, V + 1, V + 1) the products of (1, features less center) over models.");
    module.def("covariance_likelihood", &weigh_covariances, "start"_a, "freedom"_a, "scatter"_a, "own"_a, "other"_a, "shares"_a,
               "candidates"_a, "num_threads"_a, "likelihood"_a,
               "Adds to `likelihood` (problem, share, candidate) the log-likelihood of scatters under inverse Wishart priors.");
    module.def(
        "student_scores", &score_student, "features"_a, "member"_a, "challenged"_a.none(), "set_of"_a, "level"_a, "shift"_a,
        "weights"_a, "dof"_a, "other_share"_a, "scale"_a, "log_gamma"_a, "num_threads"_a, "scores"_a,
        "Fills `scores` (model, node) with log-likelihood ratios of the Student attack; without challenged models, each "
        "model is challenged with a fit on all others.");
}

// Counting and sorting of scores, for Python.

namespace {

// Whether something is an array of float32, to be worked on as such; otherwise it has to be one of float64.
template <size_t N> bool is_single(nb::handle object) {
    Array<const float, N> array;
    const bool is_it = nb::try_cast(object, array, false);
    PyErr_Clear();
    return is_it;
}

template <typename T> void check_no_nan(const char *name, const T *values, size_t size) {
    check_each(name, values, size, "not be NaN", [](T value) { return !std::isnan(value); });
}

// Scores and memberships, with the arrays of Python held on to.
template <typename T> struct Table {
    Array<const T, 2> scores;
    Array<const uint8_t, 2> member;

    Table(nb::handle scores_object, nb::handle member_object)
        : scores(array_of<const T, 2>(scores_object, "scores")), member(array_of<const uint8_t, 2>(member_object, "member")) {
        check_shape(member, "member", {scores.shape(0), scores.shape(1)});
        check_flags("member", member);
    }
    ScoreTable<T> view() const {
        return {scores.data(), member.data(), static_cast<int64_t>(scores.shape(0)), static_cast<int64_t>(scores.shape(1))};
    }
};

template <typename T> void sort_typed(nb::handle values_object) {
    const auto values = array_of<T, 1>(values_object, "values");
    check_no_nan("values", values.data(), values.size());
    nb::gil_scoped_release release;
    sort_numbers(values.data(), static_cast<int64_t>(values.size()));
}
void sort(nb::handle values) { is_single<1>(values) ? sort_typed<float>(values) : sort_typed<double>(values); }

std::pair<NewArray<double, 1>, NewArray<double, 1>> sides(nb::handle scores_object, nb::handle member_object, int num_threads) {
    const Table<double> table(scores_object, member_object);
    check_no_nan("scores", table.scores.data(), table.scores.size());
    check_num_threads(num_threads);
    const size_t size = table.scores.size();
    size_t num_in = 0;
    for (size_t i = 0; i < size; ++i) num_in += table.member.data()[i];
    auto out = new_array<double>("the scores of non-members", {size - num_in});
    auto in = new_array<double>("the scores of members", {num_in});
    interruptible([&](const Poll &poll) {
        sort_by_side(table.scores.data(), table.member.data(), static_cast<int64_t>(size), num_threads, poll, out.data(), in.data());
    });
    return {out, in};
}

int64_t pairs(nb::handle out_object, nb::handle in_object) {
    const auto out = vector_of<double>(out_object, "out"), in = vector_of<double>(in_object, "in_");
    nb::gil_scoped_release release;
    return pairs_in_order(out.data(), static_cast<int64_t>(out.size()), in.data(), static_cast<int64_t>(in.size()));
}

template <typename T>
void roc_typed(nb::handle scores, nb::handle member, double rate, int num_threads, nb::handle auc_object, nb::handle tpr_object) {
    const Table<T> table(scores, member);
    check_no_nan("scores", table.scores.data(), table.scores.size());
    check_interval("rate", rate, 0, 1, true);
    check_num_threads(num_threads);
    const auto auc = array_of<double, 1>(auc_object, "auc"), tpr = array_of<double, 1>(tpr_object, "tpr");
    check_shape(auc, "auc", {table.scores.shape(0)});
    check_shape(tpr, "tpr", {table.scores.shape(0)});
    interruptible([&](const Poll &poll) {
        roc_within_models(table.view(), rate, num_threads, poll, auc.data(), tpr.data());
    });
}
void roc(nb::handle scores, nb::handle member, double rate, int num_threads, nb::handle auc, nb::handle tpr) {
    (is_single<2>(scores) ? roc_typed<float> : roc_typed<double>)(scores, member, rate, num_threads, auc, tpr);
}

template <typename T>
void count_typed(nb::handle scores, nb::handle member, nb::handle thresholds_object, int num_threads, nb::handle counts_object,
                 nb::handle members_object, nb::handle probability_object) {
    const Table<T> table(scores, member);
    const auto thresholds = vector_of<T>(thresholds_object, "thresholds");
    for (size_t k = 1; k < thresholds.size(); ++k)
        if (!(thresholds.data()[k - 1] <= thresholds.data()[k]))
            refuse(PyExc_ValueError, "thresholds must ascend, got ", thresholds.data()[k - 1], " and then ", thresholds.data()[k]);
    check_num_threads(num_threads);
    const auto counts = array_of<int64_t, 2>(counts_object, "counts"), members = array_of<int64_t, 2>(members_object, "members");
    check_shape(counts, "counts", {table.scores.shape(0), thresholds.size() + 1});
    check_shape(members, "members", {table.scores.shape(0), thresholds.size() + 1});
    Array<double, 2> probability;
    if (!probability_object.is_none()) {
        probability = array_of<double, 2>(probability_object, "probability");
        check_shape(probability, "probability", {table.scores.shape(0), thresholds.size() + 1});
    }
    double *sums = probability_object.is_none() ? nullptr : probability.data();
    interruptible([&](const Poll &poll) {
        count_by_threshold(table.view(), thresholds.data(), static_cast<int64_t>(thresholds.size()), num_threads, poll,
                           counts.data(), members.data(), sums);
    });
}
void count(nb::handle scores, nb::handle member, nb::handle thresholds, int num_threads, nb::handle counts, nb::handle members,
           nb::handle probability) {
    (is_single<2>(scores) ? count_typed<float> : count_typed<double>)(scores, member, thresholds, num_threads, counts, members, probability);
}

template <typename T>
void named_typed(nb::handle scores, nb::handle member, double high, double low, int num_threads, nb::handle named_object) {
    const Table<T> table(scores, member);
    check_num_threads(num_threads);
    const auto named = array_of<int64_t, 2>(named_object, "named");
    check_shape(named, "named", {4, table.scores.shape(1)});
    interruptible([&](const Poll &poll) {
        count_named_nodes(table.view(), static_cast<T>(high), static_cast<T>(low), num_threads, poll, named.data());
    });
}
void named(nb::handle scores, nb::handle member, double high, double low, int num_threads, nb::handle named) {
    (is_single<2>(scores) ? named_typed<float> : named_typed<double>)(scores, member, high, low, num_threads, named);
}

void decisions(nb::handle scores, nb::handle member, nb::handle log_prior_odds_object, double threshold, int num_threads,
               nb::handle errors_object) {
    const Table<double> table(scores, member);
    const auto log_prior_odds = vector_of<double>(log_prior_odds_object, "log_prior_odds");
    check_shape(log_prior_odds, "log_prior_odds", {table.scores.shape(1)});
    check_num_threads(num_threads);
    const auto errors = array_of<int64_t, 2>(errors_object, "errors");
    check_shape(errors, "errors", {2, table.scores.shape(1)});
    interruptible([&](const Poll &poll) {
        count_decisions(table.view(), log_prior_odds.data(), threshold, num_threads, poll, errors.data());
    });
}

void interpolate(nb::handle values_object, nb::handle from_object, nb::handle to_object, nb::handle function_of_object, int num_threads) {
    const auto values = array_of<float, 2>(values_object, "values");
    const auto from = vector_of<double>(from_object, "from_");
    const auto to = array_of<const double, 2>(to_object, "to");
    const auto function_of = vector_of<int64_t>(function_of_object, "function_of");
    check_at_least("the number of points", static_cast<int64_t>(from.size()), 1);
    check_shape(to, "to", {to.shape(0), from.size()});
    check_shape(function_of, "function_of", {values.shape(0)});
    const auto num_functions = static_cast<int64_t>(to.shape(0));
    check_each("function_of", function_of.data(), function_of.size(), "be the number of a function",
               [&](int64_t number) { return number >= 0 && number < num_functions; });
    check_no_nan("values", values.data(), values.size());
    for (size_t k = 1; k < from.size(); ++k)
        if (!(from.data()[k - 1] < from.data()[k]))
            refuse(PyExc_ValueError, "from_ must ascend, got ", from.data()[k - 1], " and then ", from.data()[k]);
    check_num_threads(num_threads);
    interruptible([&](const Poll &poll) {
        interpolate_rows(values.data(), static_cast<int64_t>(values.shape(0)), static_cast<int64_t>(values.shape(1)), from.data(),
                         to.data(), static_cast<int64_t>(from.size()), function_of.data(), num_threads, poll);
    });
}

void surest(nb::handle scores_object, nb::handle log_prior_odds_object, nb::handle is_asked_object, int num_threads,
            nb::handle node_object, nb::handle value_object) {
    const auto scores = array_of<const double, 2>(scores_object, "scores");
    const auto log_prior_odds = vector_of<double>(log_prior_odds_object, "log_prior_odds");
    const auto is_asked = vector_of<uint8_t>(is_asked_object, "is_asked");
    const size_t num_models = scores.shape(0), num_nodes = scores.shape(1);
    check_shape(log_prior_odds, "log_prior_odds", {num_nodes});
    check_shape(is_asked, "is_asked", {num_nodes});
    check_num_threads(num_threads);
    const auto node = array_of<int64_t, 2>(node_object, "node");
    const auto value = array_of<double, 2>(value_object, "value");
    check_shape(node, "node", {4, num_models});
    check_shape(value, "value", {4, num_models});
    const ScoreTable<double> table{scores.data(), nullptr, static_cast<int64_t>(num_models), static_cast<int64_t>(num_nodes)};
    interruptible([&](const Poll &poll) {
        find_surest(table, log_prior_odds.data(), is_asked.data(), num_threads, poll, node.data(), value.data());
    });
}

void row_members(nb::handle indptr_object, nb::handle indices_object, nb::handle values_object, nb::handle rows_object,
                 nb::handle state_object, nb::handle noise_object, nb::handle mean_object, nb::handle variance_object,
                 nb::handle log_odds_object, nb::handle temperatures_object, bool with_spread, int num_threads,
                 nb::handle statistic_object, nb::handle coefficient_object, nb::handle residual_object) {
    const auto rows = array_of<const float, 3>(rows_object, "rows");
    const auto state = array_of<const uint8_t, 2>(state_object, "state");
    const size_t num_models = rows.shape(0), num_features = rows.shape(1), num_classes = rows.shape(2);
    const size_t num_nodes = state.shape(1);
    const auto indptr = vector_of<int64_t>(indptr_object, "indptr");
    const auto indices = vector_of<int32_t>(indices_object, "indices");
    check_rows("indptr", indptr, "indices", indices, static_cast<int64_t>(num_nodes), static_cast<int64_t>(num_features));
    const auto values = vector_of<float>(values_object, "values");
    const auto noise = vector_of<float>(noise_object, "noise");
    const auto mean = array_of<const float, 2>(mean_object, "mean");
    const auto variance = vector_of<float>(variance_object, "variance");
    const auto log_odds = vector_of<float>(log_odds_object, "log_odds");
    const auto temperatures = vector_of<float>(temperatures_object, "temperatures");
    check_at_least("the number of classes", static_cast<int64_t>(num_classes), 1);
    check_shape(state, "state", {num_models, num_nodes});
    check_shape(values, "values", {indices.size()});
    check_shape(noise, "noise", {num_features});
    check_shape(mean, "mean", {num_nodes, num_classes});
    check_shape(variance, "variance", {num_nodes});
    check_shape(log_odds, "log_odds", {num_nodes});
    const auto is_finite = [](float value) { return std::isfinite(value); };
    const auto is_positive = [](float value) { return std::isfinite(value) && value > 0; };
    check_each("rows", rows.data(), rows.size(), "be finite", is_finite);
    check_each("state", state.data(), state.size(), "be 0, 1 or 2", [](uint8_t value) { return value <= kUnknown; });
    check_each("values", values.data(), values.size(), "be finite", is_finite);
    check_each("noise", noise.data(), noise.size(), "be positive and finite", is_positive);
    check_each("mean", mean.data(), mean.size(), "be finite", is_finite);
    check_each("variance", variance.data(), variance.size(), "be positive and finite", is_positive);
    check_each("log_odds", log_odds.data(), log_odds.size(), "be finite", is_finite);
    check_each("temperatures", temperatures.data(), temperatures.size(), "be finite", is_finite);
    check_num_threads(num_threads);
    Array<float, 2> statistic, residual;
    Array<float, 3> coefficient;
    RowAnswers answers{nullptr, nullptr, nullptr};
    if (!statistic_object.is_none()) {
        statistic = array_of<float, 2>(statistic_object, "statistic");
        check_shape(statistic, "statistic", {num_models, num_nodes});
        answers.statistic = statistic.data();
    }
    if (!coefficient_object.is_none()) {
        coefficient = array_of<float, 3>(coefficient_object, "coefficient");
        check_shape(coefficient, "coefficient", {num_models, num_nodes, num_classes});
        check_each("coefficient", coefficient.data(), coefficient.size(), "be finite", is_finite);
        answers.coefficient = coefficient.data();
    }
    if (!residual_object.is_none()) {
        residual = array_of<float, 2>(residual_object, "residual");
        check_shape(residual, "residual", {num_models, num_features});
        answers.residual = residual.data();
    }
    const RowModel model{static_cast<int64_t>(num_nodes), static_cast<int64_t>(num_features), static_cast<int64_t>(num_classes),
                         indptr.data(), indices.data(), values.data(), noise.data(), mean.data(), variance.data(),
                         log_odds.data()};
    const RowTable table{static_cast<int64_t>(num_models), rows.data(), state.data()};
    interruptible([&](const Poll &poll) {
        infer_members(model, table, temperatures.data(), static_cast<int64_t>(temperatures.size()), with_spread,
                      num_threads, poll, answers);
    });
}

void node_test(nb::handle statistics_object, nb::handle member_object, nb::handle order_object, int num_threads,
               nb::handle z_object, nb::handle num_reached_object, nb::handle totals_object) {
    const auto statistics = array_of<const float, 3>(statistics_object, "statistics");
    const auto member = array_of<const uint8_t, 2>(member_object, "member");
    const auto order = array_of<const int64_t, 2>(order_object, "order");
    const size_t num_queries = statistics.shape(0), num_models = statistics.shape(1), num_nodes = statistics.shape(2);
    check_range<int64_t>("the number of models", static_cast<int64_t>(num_models), 2, kMostRankedModels);
    check_shape(member, "member", {num_models, num_nodes});
    check_flags("member", member);
    check_no_nan("statistics", statistics.data(), statistics.size());
    check_shape(order, "order", {order.shape(0), num_models});
    check_each("order", order.data(), order.size(), "be the number of a model",
               [&](int64_t model) { return model >= 0 && model < static_cast<int64_t>(num_models); });
    check_num_threads(num_threads);
    const auto z = array_of<double, 2>(z_object, "z");
    check_shape(z, "z", {num_queries, num_nodes});
    const auto num_reached = array_of<int64_t, 1>(num_reached_object, "num_reached");
    check_shape(num_reached, "num_reached", {num_nodes});
    const auto totals = array_of<double, 2>(totals_object, "totals");
    const size_t num_arrangements = order.shape(0);
    check_shape(totals, "totals", {3, num_arrangements});
    const Arrangements models{statistics.data(), member.data(), order.data(), static_cast<int64_t>(num_queries),
                              static_cast<int64_t>(num_models), static_cast<int64_t>(num_nodes),
                              static_cast<int64_t>(num_arrangements)};
    double *rows = totals.data();
    interruptible([&](const Poll &poll) {
        test_nodes(models, num_threads, poll, z.data(), num_reached.data(),
                   {rows, rows + num_arrangements, rows + 2 * num_arrangements});
    });
}

}  // namespace

void bind_scores(nb::module_ &module) {
    module.def("sort_numbers", &sort, "values"_a, "Sorts an array in place, ascending.");
    module.def("sort_by_side", &sides, "scores"_a, "member"_a, "num_threads"_a,
               "Scores of non-members and of members, each ascending.");
    module.def("pairs_in_order", &pairs, "out"_a, "in_"_a,
               "The number of pairs with out < in, plus that with out <= in; both arrays ascend.");
    module.def("roc_within_models", &roc, "scores"_a, "member"_a, "rate"_a, "num_threads"_a, "auc"_a, "tpr"_a,
               "Fills `auc` and `tpr` (model) with the area under the curve and the true positive rate at a false positive rate.");
    module.def("count_by_threshold", &count, "scores"_a, "member"_a, "thresholds"_a, "num_threads"_a, "counts"_a, "members"_a,
               "probability"_a.none(),
               "Adds to `counts` and `members` (model, place) the nodes that have reached just so many of the thresholds, and "
               "to `probability` the sum of 1/(1 + e^-score).");
    module.def("count_named_nodes", &named, "scores"_a, "member"_a, "high"_a, "low"_a, "num_threads"_a, "named"_a,
               "Adds to `named` (4, node) members and non-members from `high` on, then up to `low`.");
    module.def("count_decisions", &decisions, "scores"_a, "member"_a, "log_prior_odds"_a, "threshold"_a, "num_threads"_a, "errors"_a,
               "Fills `errors` (false positives or negatives, node) of the decisions \"member\" above the threshold.");
    module.def("interpolate_rows", &interpolate, "values"_a, "from_"_a, "to"_a, "function_of"_a, "num_threads"_a,
               "Replaces the numbers of each row by a piecewise linear function of them.");
    module.def("find_surest", &surest, "scores"_a, "log_prior_odds"_a, "is_asked"_a, "num_threads"_a, "node"_a, "value"_a,
               "Fills `node` and `value` (4, model): highest and lowest log-odds, highest and lowest score.");
    module.def("infer_members", &row_members, "indptr"_a, "indices"_a, "values"_a, "rows"_a, "state"_a, "noise"_a, "mean"_a,
               "variance"_a, "log_odds"_a, "temperatures"_a, "with_spread"_a, "num_threads"_a, "statistic"_a.none(),
               "coefficient"_a.none(), "residual"_a.none(),
               "Mean-field inference of members from class rows; fills `statistic` (model, node), `coefficient` (model, node, "
               "class) and `residual` (model, feature), each unless None.");
    module.def("test_nodes", &node_test, "statistics"_a, "member"_a, "order"_a, "num_threads"_a, "z"_a,
               "num_reached"_a, "totals"_a,
               "Fills `z` (query, node), adds to `num_reached` (node), and to `totals` (largest, sum, squares; arrangement).");
}

}  // namespace bmpaudit
