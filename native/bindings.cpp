// The one place where Python and C++ meet. Arguments were validated in Python; arrays are shared, not copied.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "samplers.hpp"

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
}
