// The largest value among a node's neighbours, lane by lane: what max aggregation multiplies with a weight.
#pragma once

#include <cstdint>
#include <vector>

#include "graph_view.hpp"
#include "lanes.hpp"
#include "sparse_product.hpp"

namespace bmpaudit {

// What stands side by side in the rows that a weight is multiplied with.
struct InputParts {
    bool has_largest = false;  // of a node's neighbours; zeros where it has none
    bool has_own = true;

    int count() const { return has_largest + has_own; }
};

// Rows of [largest of the neighbours, own input], or of the first alone.
void gather_largest(const TrainingGraph &graph, const Matrix &input, const InputParts &parts, Matrix &gathered);
// From the gradient of the gathered rows to that of the input; neighbours that are equally large share, as in PyTorch.
void scatter_largest(const TrainingGraph &graph, const Matrix &input, const InputParts &parts, const Matrix &gathered,
                     const Matrix &gathered_gradient, Matrix &input_gradient);

// The same of sparse rows of so many columns, in which what is not there is 0; own columns come after those of neighbours.
CompressedRows gather_largest(const TrainingGraph &graph, const CompressedRows &own, int32_t num_columns,
                              const InputParts &parts);
// The same of one dense row: `row(i)` is where the numbers of node i begin.
template <typename Row>
void gather_largest_row(const TrainingGraph &graph, int32_t i, int32_t num_columns, const InputParts &parts, Row row,
                        std::vector<float> &gathered) {
    gathered.assign(static_cast<size_t>(num_columns) * parts.count(), 0.0f);
    const int64_t first = graph.start[i] + 1, end = graph.start[i + 1];
    for (int64_t e = first; e < end; ++e) {
        const float *from = row(graph.neighbors[e]);
        for (int32_t k = 0; k < num_columns; ++k)
            if (e == first || from[k] > gathered[k]) gathered[k] = from[k];
    }
    if (parts.has_own) std::copy_n(row(i), num_columns, gathered.begin() + num_columns);
}

}  // namespace bmpaudit
