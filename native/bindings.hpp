// What the files that bind kernels to Python share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "checks.hpp"
#include "threads.hpp"

namespace bmpaudit {

void bind_samplers(nb::module_ &module);
void bind_shadow(nb::module_ &module);
void bind_attack(nb::module_ &module);
void bind_scores(nb::module_ &module);
void bind_estimation(nb::module_ &module);

template <typename T, size_t N> using NewArray = nb::ndarray<nb::numpy, T, nb::ndim<N>>;

// A new array of zeros for Python; `what` it holds, should it be too large.
template <typename T, size_t N> NewArray<T, N> new_array(const char *what, const size_t (&shape)[N]) {
    int64_t size = 1;
    for (const size_t extent : shape) size = checked_size(what, {size, static_cast<int64_t>(extent)}, sizeof(T));
    T *data = std::make_unique<T[]>(size).release();
    nb::capsule owner(data, [](void *memory) noexcept { delete[] static_cast<T *>(memory); });
    return NewArray<T, N>(data, N, shape, owner);
}

template <typename T> NewArray<T, 1> to_array(const std::vector<T> &values) {
    auto array = new_array<T>("the result", {values.size()});
    std::copy(values.begin(), values.end(), array.data());
    return array;
}

// Runs work(poll) without Python's lock. The poll looks for Ctrl-C and calls progress(done), unless that is None; what
// either raises stops the work, and is raised here once all threads are back.
template <typename Work> void interruptible(nb::handle progress, Work work) {
    if (!progress.is_none() && !PyCallable_Check(progress.ptr()))
        refuse(PyExc_TypeError, "progress must be a function, got ", described(progress));
    std::unique_ptr<nb::python_error> interruption;
    {
        nb::gil_scoped_release release;
        work([&](int64_t done) {
            nb::gil_scoped_acquire acquire;
            try {
                if (PyErr_CheckSignals() != 0) throw nb::python_error();
                if (!progress.is_none()) progress(done);
            } catch (nb::python_error &error) {
                interruption = std::make_unique<nb::python_error>(std::move(error));
            }
            return interruption != nullptr;
        });
    }
    if (interruption) throw nb::python_error(std::move(*interruption));
}
template <typename Work> void interruptible(Work work) { interruptible(nb::none(), work); }

}  // namespace bmpaudit
