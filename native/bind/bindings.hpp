// What the files that bind kernels to Python share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/samplers.hpp"
#include "core/threads.hpp"

namespace bmpaudit {

namespace nb = nanobind;

template <typename T, size_t N> using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <typename T> using Vector = Array<const T, 1>;

// Checks of what Python passes in, so that no call can make a kernel read or write out of bounds, loop for ever or take
// more memory than there is. A wrong call raises TypeError, ValueError or MemoryError with one line that says why.

// Raises an exception of a Python type with a message made of parts.
template <typename... Parts> [[noreturn]] void refuse(PyObject *type, const Parts &...parts) {
    std::ostringstream message;
    (message << ... << parts);
    PyErr_SetString(type, message.str().c_str());
    throw nb::python_error();
}

template <typename T> const char *type_name() {
    if constexpr (std::is_same_v<T, int64_t>) return "int64";
    else if constexpr (std::is_same_v<T, int32_t>) return "int32";
    else if constexpr (std::is_same_v<T, uint8_t>) return "uint8";
    else if constexpr (std::is_same_v<T, float>) return "float32";
    else return "float64";
}

// What something is, for a message.
std::string described(nb::handle object);

// An array as it is, without a copy; T is const where it is only read.
template <typename T, size_t N> Array<T, N> array_of(nb::handle object, const char *name) {
    using Value = std::remove_const_t<T>;
    Array<T, N> array;
    const bool is_bytes = PyBytes_Check(object.ptr()) || PyByteArray_Check(object.ptr());
    if (is_bytes || !nb::try_cast(object, array, false)) {
        PyErr_Clear();
        refuse(PyExc_TypeError, name, " must be a ", std::is_const_v<T> ? "" : "writable ", "C-contiguous array of ",
               type_name<Value>(), " with ", N, N == 1 ? " dimension" : " dimensions", ", got ", described(object));
    }
    if (reinterpret_cast<uintptr_t>(array.data()) % alignof(Value) != 0)
        refuse(PyExc_ValueError, name, " must be aligned in memory");
    return array;
}

template <typename T> Vector<T> vector_of(nb::handle object, const char *name) { return array_of<const T, 1>(object, name); }

template <typename AnyArray>
void check_shape(const AnyArray &array, const char *name, std::initializer_list<size_t> wanted) {
    const auto listed = [](const std::vector<size_t> &extents) {
        std::string text = "(";
        for (const size_t extent : extents) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
        return text + (extents.size() == 1 ? ",)" : ")");
    };
    std::vector<size_t> shape;
    for (size_t axis = 0; axis < array.ndim(); ++axis) shape.push_back(array.shape(axis));
    if (shape != std::vector<size_t>(wanted))
        refuse(PyExc_ValueError, name, " must have shape ", listed(wanted), ", got ", listed(shape));
}

template <typename T> void check_range(const char *name, T value, T low, T high) {
    if (value < low) refuse(PyExc_ValueError, name, " must be at least ", low, ", got ", value);
    if (value > high) refuse(PyExc_ValueError, name, " must be at most ", high, ", got ", value);
}
inline void check_at_least(const char *name, int64_t value, int64_t low) {
    check_range<int64_t>(name, value, low, std::numeric_limits<int64_t>::max());
}
inline void check_num_threads(int num_threads) { check_at_least("num_threads", num_threads, 1); }

inline void check_positive(const char *name, double value) {
    if (!(std::isfinite(value) && value > 0)) refuse(PyExc_ValueError, name, " must be positive and finite, got ", value);
}
inline void check_not_negative(const char *name, double value) {
    if (!(std::isfinite(value) && value >= 0))
        refuse(PyExc_ValueError, name, " must be finite and at least 0, got ", value);
}
inline void check_finite(const char *name, double value) {
    if (!std::isfinite(value)) refuse(PyExc_ValueError, name, " must be finite, got ", value);
}
// For NaN too: in [low, high), or in [low, high] if closed.
inline void check_interval(const char *name, double value, double low, double high, bool is_closed) {
    if (!(value >= low && (is_closed ? value <= high : value < high)))
        refuse(PyExc_ValueError, name, " must be in [", low, ", ", high, is_closed ? "]" : ")", ", got ", value);
}

// Every value satisfies a condition, else: "<name> must <wanted>, got <value> at <position>".
template <typename T, typename Condition>
void check_each(const char *name, const T *values, size_t size, const char *wanted, Condition is_right) {
    for (size_t i = 0; i < size; ++i)
        if (!is_right(values[i])) refuse(PyExc_ValueError, name, " must ", wanted, ", got ", +values[i], " at position ", i);
}
template <typename AnyArray> void check_flags(const char *name, const AnyArray &flags) {
    check_each(name, flags.data(), flags.size(), "hold only 0 and 1", [](uint8_t flag) { return flag <= 1; });
}
inline void check_not_nan(const char *name, const Vector<double> &values) {
    check_each(name, values.data(), values.size(), "not be NaN", [](double value) { return !std::isnan(value); });
}

// Refuses what does not fit into this machine's memory.
void check_memory(const char *what, double bytes);
// The product of some extents as a number of items of a size, if so many bytes fit into this machine's memory.
int64_t checked_size(const char *what, std::initializer_list<int64_t> extents, int64_t bytes_each);

// Rows of a compressed matrix: `indptr` rises from 0 to the number of indices, and these are in [0, num_columns).
void check_rows(const char *indptr_name, const Vector<int64_t> &indptr, const char *indices_name,
                const Vector<int32_t> &indices, int64_t num_rows, int64_t num_columns);

// A copy of the graph, so that a later change of the arrays does no harm.
Adjacency adjacency_of(nb::handle indptr, nb::handle indices);

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
