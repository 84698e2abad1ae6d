#include "neighbour_max.hpp"

#include <algorithm>

namespace bmpaudit {

void gather_largest(const TrainingGraph &graph, const Matrix &input, const InputParts &parts, Matrix &gathered) {
    const int blocks = input.blocks();
    gathered.reshape(graph.size(), blocks * parts.count());
    for (int32_t i = 0; i < graph.size(); ++i) {
        const int64_t first = graph.start[i] + 1, end = graph.start[i + 1];
        Lanes *to = gathered.row(i);
        for (int b = 0; b < blocks; ++b) {
            Lanes largest = first < end ? input.row(graph.neighbors[first])[b] : Lanes{};
            for (int64_t e = first + 1; e < end; ++e) largest = max_lanes(largest, input.row(graph.neighbors[e])[b]);
            to[b] = largest;
            if (parts.has_own) to[blocks + b] = input.row(i)[b];
        }
    }
}

void scatter_largest(const TrainingGraph &graph, const Matrix &input, const InputParts &parts, const Matrix &gathered,
                     const Matrix &gathered_gradient, Matrix &input_gradient) {
    const int blocks = input.blocks();
    input_gradient.reshape(graph.size(), blocks);
    for (int32_t i = 0; i < graph.size(); ++i)
        for (int b = 0; b < blocks; ++b)
            input_gradient.row(i)[b] = parts.has_own ? gathered_gradient.row(i)[blocks + b] : Lanes{};
    for (int32_t i = 0; i < graph.size(); ++i) {
        const int64_t first = graph.start[i] + 1, end = graph.start[i + 1];
        for (int b = 0; b < blocks && first < end; ++b) {
            const Lanes largest = gathered.row(i)[b];
            const auto is_largest = [&](int64_t e) { return input.row(graph.neighbors[e])[b] == largest; };
            Lanes count = {};
            for (int64_t e = first; e < end; ++e) count += select(is_largest(e), splat(1.0f), Lanes{});
            const Lanes share = gathered_gradient.row(i)[b] / count;
            for (int64_t e = first; e < end; ++e)
                input_gradient.row(graph.neighbors[e])[b] += select(is_largest(e), share, Lanes{});
        }
    }
}

CompressedRows gather_largest(const TrainingGraph &graph, const CompressedRows &own, int32_t num_columns,
                              const InputParts &parts) {
    const bool is_binary = own.values.empty();
    CompressedRows gathered;
    std::vector<int32_t> here;                  // columns that a neighbour has
    std::vector<int64_t> times(num_columns, 0);  // how many of them have it
    std::vector<float> largest(num_columns);
    for (int32_t i = 0; i < graph.size(); ++i) {
        here.clear();
        const int64_t first = graph.start[i] + 1, end = graph.start[i + 1];
        for (int64_t e = first; e < end; ++e) {
            const int32_t j = graph.neighbors[e];
            for (int64_t at = own.start[j]; at < own.start[j + 1]; ++at) {
                const int32_t column = own.columns[at];
                const float value = is_binary ? 1.0f : own.values[at];
                if (times[column]++ == 0) here.push_back(column);
                if (times[column] == 1 || value > largest[column]) largest[column] = value;
            }
        }
        std::sort(here.begin(), here.end());
        for (const int32_t column : here) {
            const float value = times[column] < end - first ? std::max(largest[column], 0.0f) : largest[column];
            times[column] = 0;
            if (value == 0.0f) continue;
            gathered.columns.push_back(column);
            if (!is_binary) gathered.values.push_back(value);
        }
        if (parts.has_own) {
            for (int64_t at = own.start[i]; at < own.start[i + 1]; ++at) {
                gathered.columns.push_back(num_columns + own.columns[at]);
                if (!is_binary) gathered.values.push_back(own.values[at]);
            }
        }
        gathered.start.push_back(gathered.num_entries());
    }
    return gathered;
}

}  // namespace bmpaudit
