// Counting and sorting of scores, for Python.
#include <nanobind/stl/pair.h>

#include "bindings.hpp"
#include "scores.hpp"

namespace bmpaudit {

using namespace nb::literals;

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
}

}  // namespace bmpaudit
