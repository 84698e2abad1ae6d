// The module that Python imports, once for each instruction set, and the checks that its functions share.
#include <unistd.h>

#include "bind/bindings.hpp"

namespace bmpaudit {

namespace {

constexpr int64_t kMostNodes = std::numeric_limits<int32_t>::max() - 1;

double physical_memory() {
    const auto pages = static_cast<double>(sysconf(_SC_PHYS_PAGES)), size = static_cast<double>(sysconf(_SC_PAGESIZE));
    return pages > 0 && size > 0 ? pages * size : std::numeric_limits<double>::infinity();
}

}  // namespace

std::string described(nb::handle object) {
    const auto text = [&](const char *attribute) {
        const nb::object value = object.attr(attribute);
        return std::string(nb::str(nb::handle(value)).c_str());
    };
    if (nb::hasattr(object, "dtype") && nb::hasattr(object, "shape"))
        return "an array of " + text("dtype") + " of shape " + text("shape");
    return std::string("an object of type ") + Py_TYPE(object.ptr())->tp_name;
}

void check_memory(const char *what, double bytes) {
    static const double memory = physical_memory();
    constexpr double kGibibyte = 0x1.0p30;
    if (bytes > memory)
        refuse(PyExc_MemoryError, what, " would take ", bytes / kGibibyte, " GiB, and this machine has ", memory / kGibibyte);
}

int64_t checked_size(const char *what, std::initializer_list<int64_t> extents, int64_t bytes_each) {
    int64_t size = 1;
    double bytes = static_cast<double>(bytes_each);
    for (const int64_t extent : extents) bytes *= static_cast<double>(extent);
    check_memory(what, bytes);
    for (const int64_t extent : extents)
        if (__builtin_mul_overflow(size, extent, &size)) refuse(PyExc_MemoryError, what, " has too many items");
    return size;
}

void check_rows(const char *indptr_name, const Vector<int64_t> &indptr, const char *indices_name,
                const Vector<int32_t> &indices, int64_t num_rows, int64_t num_columns) {
    check_shape(indptr, indptr_name, {static_cast<size_t>(num_rows) + 1});
    const int64_t *start = indptr.data();
    const auto num_entries = static_cast<int64_t>(indices.size());
    if (start[0] != 0) refuse(PyExc_ValueError, indptr_name, " must begin with 0, got ", start[0]);
    for (int64_t row = 0; row < num_rows; ++row)
        if (start[row + 1] < start[row])
            refuse(PyExc_ValueError, indptr_name, " must not decrease, got ", start[row], " and then ", start[row + 1],
                   " at position ", row + 1);
    if (start[num_rows] != num_entries)
        refuse(PyExc_ValueError, indptr_name, " must end with the number of ", indices_name, ", ", num_entries, ", got ",
               start[num_rows]);
    for (int64_t row = 0; row < num_rows; ++row)
        check_range("the number of entries in a row", start[row + 1] - start[row], int64_t{0}, kMostNodes);
    for (int64_t entry = 0; entry < num_entries; ++entry)
        if (indices.data()[entry] < 0 || indices.data()[entry] >= num_columns)
            refuse(PyExc_ValueError, indices_name, " must be in [0, ", num_columns, "), got ", indices.data()[entry],
                   " at position ", entry);
}

Adjacency adjacency_of(nb::handle indptr_object, nb::handle indices_object) {
    const auto indptr = vector_of<int64_t>(indptr_object, "indptr");
    const auto indices = vector_of<int32_t>(indices_object, "indices");
    const int64_t num_nodes = static_cast<int64_t>(indptr.size()) - 1;
    check_range("the number of nodes", num_nodes, int64_t{1}, kMostNodes);
    check_rows("indptr", indptr, "indices", indices, num_nodes, num_nodes);
    return {{indptr.data(), indptr.data() + indptr.size()}, {indices.data(), indices.data() + indices.size()}};
}

}  // namespace bmpaudit

NB_MODULE(BMPAUDIT_INSTRUCTION_SET, m) {
    m.doc() = "C++ kernels of bmpaudit, compiled for one instruction set.";
    nanobind::set_leak_warnings(false);  // objects that live until Python ends are no mistake
    bmpaudit::bind_samplers(m);
    bmpaudit::bind_shadow(m);
    bmpaudit::bind_attack(m);
    bmpaudit::bind_scores(m);
    bmpaudit::bind_estimation(m);
}
