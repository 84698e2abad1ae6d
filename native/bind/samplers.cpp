// Samplers for Python.
#include <nanobind/stl/vector.h>

#include <limits>

#include "bind/bindings.hpp"
#include "core/samplers.hpp"

namespace bmpaudit {

using namespace nb::literals;

namespace {

constexpr int64_t kMostNodes = std::numeric_limits<int32_t>::max() - 1;

// Calls draw(random, member, worker) with a NumPy bit generator, which the caller keeps alive. Python's lock is held: the
// generator is in use. Returns who is in the sample.
template <typename Draw>
std::vector<uint8_t> draw_with(const Sampler &sampler, nb::handle bit_generator, Draw draw) {
    if (!nb::isinstance(bit_generator, nb::module_::import_("numpy.random").attr("BitGenerator")))
        refuse(PyExc_TypeError, "bit_generator must be a numpy.random.BitGenerator, got ", described(bit_generator));
    const auto capsule = nb::cast<nb::capsule>(bit_generator.attr("capsule"));
    NumpyBits random(static_cast<const NumpyBitGenerator *>(capsule.data("BitGenerator")));
    std::vector<uint8_t> member(sampler.num_nodes());
    const Poll poll = [](int64_t) { return PyErr_CheckSignals() != 0; };
    const auto task = [&](int64_t, Worker &worker) { draw(random, member.data(), worker); };
    if (!run_tasks(1, 1, poll, task)) throw nb::python_error();
    return member;
}

// One sample, ascending.
nb::object draw_sample(const Sampler &sampler, nb::handle bit_generator) {
    const auto member = draw_with(sampler, bit_generator, [&](RandomBits &random, uint8_t *flags, Worker &worker) {
        sampler.draw(random, flags, worker);
    });
    size_t size = 0;
    for (const uint8_t flag : member) size += flag;
    auto nodes = new_array<int64_t>("a sample", {size});
    int64_t *out = nodes.data();
    for (int32_t node = 0; node < sampler.num_nodes(); ++node)
        if (member[node]) *out++ = node;
    return nb::cast(nodes);
}

// The edges that one sample was walked along.
nb::object draw_walked_edges(const Snowball &sampler, nb::handle bit_generator) {
    std::vector<std::pair<int32_t, int32_t>> edges;
    draw_with(sampler, bit_generator, [&](RandomBits &random, uint8_t *flags, Worker &worker) {
        edges = sampler.walked_edges(random, flags, worker);
    });
    auto pairs = new_array<int64_t>("edges", {edges.size(), size_t{2}});
    int64_t *out = pairs.data();
    for (const auto &[node, neighbor] : edges) {
        *out++ = node;
        *out++ = neighbor;
    }
    return nb::cast(pairs);
}

StreamRange streams_of(uint64_t seed, uint64_t purpose, uint64_t first, int64_t count, int num_threads) {
    check_at_least("count", count, 0);
    check_num_threads(num_threads);
    if (first > std::numeric_limits<uint64_t>::max() - static_cast<uint64_t>(count))
        refuse(PyExc_ValueError, "first + count must be below 2^64, got first=", first, " and count=", count);
    return {seed, purpose, first, count};
}

void new_grouped_subset(GroupedSubset *self, nb::handle group_object, std::vector<int32_t> take) {
    const auto group = vector_of<int32_t>(group_object, "group");
    check_range("the number of nodes", static_cast<int64_t>(group.size()), int64_t{1}, kMostNodes);
    const auto num_groups = static_cast<int32_t>(take.size());
    std::vector<int64_t> sizes(take.size(), 0);
    for (size_t node = 0; node < group.size(); ++node) {
        const int32_t number = group.data()[node];
        if (number < 0 || number >= num_groups)
            refuse(PyExc_ValueError, "group must be in [0, ", num_groups, "), the number of groups in take, got ", number,
                   " at node ", node);
        ++sizes[number];
    }
    for (size_t number = 0; number < take.size(); ++number)
        if (take[number] < 0 || take[number] > sizes[number])
            refuse(PyExc_ValueError, "take must be in [0, ", sizes[number], "], the size of group ", number, ", got ",
                   take[number]);
    new (self) GroupedSubset(group.data(), static_cast<int32_t>(group.size()), std::move(take));
}

void new_independent_coins(IndependentCoins *self, int64_t num_nodes, double probability) {
    check_range("num_nodes", num_nodes, int64_t{1}, kMostNodes);
    check_interval("probability", probability, 0, 1, true);
    new (self) IndependentCoins(static_cast<int32_t>(num_nodes), probability);
}

void new_weighted_subset(WeightedSubset *self, nb::handle weights_object, int64_t take) {
    const auto weights = vector_of<double>(weights_object, "weights");
    check_range("the number of nodes", static_cast<int64_t>(weights.size()), int64_t{1}, kMostNodes);
    check_each("weights", weights.data(), weights.size(), "be positive and finite",
               [](double weight) { return weight > 0 && std::isfinite(weight); });
    check_range("take", take, int64_t{1}, static_cast<int64_t>(weights.size()));
    new (self) WeightedSubset({weights.data(), weights.data() + weights.size()}, static_cast<int32_t>(take));
}

void new_snowball(Snowball *self, nb::handle indptr, nb::handle indices, int64_t target, int32_t fan_out, bool restart,
                  bool any_order) {
    Adjacency graph = adjacency_of(indptr, indices);
    check_range("target", target, int64_t{1}, static_cast<int64_t>(graph.num_nodes()));
    check_at_least("fan_out", fan_out, 1);
    new (self) Snowball(std::move(graph), static_cast<int32_t>(target), fan_out, restart, any_order);
}

void new_random_walks(RandomWalks *self, nb::handle indptr, nb::handle indices, int32_t num_roots, int32_t walk_length) {
    Adjacency graph = adjacency_of(indptr, indices);
    check_at_least("num_roots", num_roots, 1);
    check_at_least("walk_length", walk_length, 0);
    new (self) RandomWalks(std::move(graph), num_roots, walk_length);
}

}  // namespace

void bind_samplers(nb::module_ &module) {
    nb::class_<Sampler>(module, "Sampler", "Draws training samples from one graph, of which it keeps a copy.")
        .def("sample", &draw_sample, "bit_generator"_a,
             "Node ids of one sample, ascending, drawn with a NumPy bit generator, whose lock the caller holds.")
        .def(
            "memberships",
            [](const Sampler &sampler, uint64_t seed, uint64_t purpose, uint64_t first, int64_t count, int num_threads) {
                const StreamRange streams = streams_of(seed, purpose, first, count, num_threads);
                auto member = new_array<uint8_t>(
                    "memberships", {static_cast<size_t>(count), static_cast<size_t>(sampler.num_nodes())});
                interruptible([&](const Poll &poll) { draw_memberships(sampler, streams, num_threads, poll, member.data()); });
                return member;
            },
            "seed"_a, "purpose"_a, "first"_a, "count"_a, "num_threads"_a,
            "Flags (count, num_nodes) of the samples first, ..., first + count - 1.")
        .def(
            "counts",
            [](const Sampler &sampler, uint64_t seed, uint64_t purpose, uint64_t first, int64_t count, int num_threads) {
                const StreamRange streams = streams_of(seed, purpose, first, count, num_threads);
                auto counts = new_array<int64_t>("counts", {static_cast<size_t>(sampler.num_nodes())});
                interruptible([&](const Poll &poll) { count_memberships(sampler, streams, num_threads, poll, counts.data()); });
                return counts;
            },
            "seed"_a, "purpose"_a, "first"_a, "count"_a, "num_threads"_a,
            "How many of the samples first, ..., first + count - 1 hold each node.");

    nb::class_<GroupedSubset, Sampler>(module, "GroupedSubset").def("__init__", &new_grouped_subset, "group"_a, "take"_a);
    nb::class_<IndependentCoins, Sampler>(module, "IndependentCoins")
        .def("__init__", &new_independent_coins, "num_nodes"_a, "probability"_a);
    nb::class_<WeightedSubset, Sampler>(module, "WeightedSubset")
        .def("__init__", &new_weighted_subset, "weights"_a, "take"_a);
    nb::class_<Snowball, Sampler>(module, "Snowball")
        .def("__init__", &new_snowball, "indptr"_a, "indices"_a, "target"_a, "fan_out"_a, "restart"_a,
             "any_order"_a)
        .def("walked_edges", &draw_walked_edges, "bit_generator"_a,
             "The edges (number, 2) along which the sample is drawn that `sample` gives with the same generator.");
    nb::class_<RandomWalks, Sampler>(module, "RandomWalks")
        .def("__init__", &new_random_walks, "indptr"_a, "indices"_a, "num_roots"_a, "walk_length"_a);
}

}  // namespace bmpaudit
