#include "gnn/graph.hpp"

#include <algorithm>
#include <cmath>

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

void DroppedEdges::begin(const TrainingGraph &sample) {
    const CompressedRows rows = sample.rows_without_loops();
    CompressedRows transposed;
    transposed.transpose_of(rows, sample.size());
    edge_.assign(rows.num_entries(), 0);
    num_edges_ = 0;
    for (int32_t i = 0; i < sample.size(); ++i)
        for (int64_t e = rows.start[i]; e < rows.start[i + 1]; ++e)
            // Rows are ascending and the matrix symmetric, so the origin of an entry is the other direction of its edge.
            edge_[e] = rows.columns[e] > i ? num_edges_++ : edge_[transposed.origin[e]];
    left_.nodes = sample.nodes;
}

const TrainingGraph &DroppedEdges::draw(const TrainingGraph &sample, RandomBits &random) {
    is_dropped_.assign(num_edges_ + 1, 0);
    const auto count = static_cast<int64_t>(std::nearbyint(share_ * num_edges_));
    for (const int32_t edge : order_.subset(random, num_edges_, count)) is_dropped_[edge] = 1;
    left_.start.assign(1, 0);
    left_.neighbors.clear();
    const int32_t *edge = edge_.data();
    for (int32_t i = 0; i < sample.size(); ++i) {
        left_.neighbors.push_back(i);
        for (int64_t e = sample.start[i] + 1; e < sample.start[i + 1]; ++e)
            if (!is_dropped_[*edge++]) left_.neighbors.push_back(sample.neighbors[e]);
        left_.start.push_back(static_cast<int64_t>(left_.neighbors.size()));
    }
    left_.build(matrices_);
    return left_;
}

void NeighbourBatches::begin_epoch(const std::vector<int32_t> &labels, RandomBits &random) {
    std::vector<int32_t> with_label;
    for (size_t node = 0; node < labels.size(); ++node)
        if (labels[node] >= 0) with_label.push_back(static_cast<int32_t>(node));
    seeds_.clear();
    for (const int32_t k : order_.order(random, static_cast<int64_t>(with_label.size()))) seeds_.push_back(with_label[k]);
    num_done_ = 0;
    place_.assign(labels.size(), -1);
    here_.clear();
}

int32_t NeighbourBatches::place_of(int32_t node) {
    if (place_[node] < 0) {
        place_[node] = static_cast<int32_t>(here_.size());
        here_.push_back(node);
    }
    return place_[node];
}

void NeighbourBatches::expand(const TrainingGraph &graph, int32_t node, int most, RandomBits &random) {
    const int32_t *around = graph.neighbors.data() + graph.start[node] + 1;
    const int64_t degree = graph.degree(node);
    if (most == 0) return;
    if (most == kAll || degree <= most) {
        for (int64_t k = 0; k < degree; ++k) batch_.neighbors.push_back(place_of(around[k]));
        return;
    }
    for (const int32_t k : order_.subset(random, degree, most)) batch_.neighbors.push_back(place_of(around[k]));
}

bool NeighbourBatches::next(const TrainingGraph &graph, const std::vector<int32_t> &labels, RandomBits &random) {
    if (num_done_ == seeds_.size()) return false;
    for (const int32_t node : here_) place_[node] = -1;
    here_.clear();
    const size_t end = std::min(num_done_ + static_cast<size_t>(batch_size_), seeds_.size());
    labels_.clear();
    for (; num_done_ < end; ++num_done_) {
        place_of(seeds_[num_done_]);
        labels_.push_back(labels[seeds_[num_done_]]);
    }
    batch_.start.assign(1, 0);
    batch_.neighbors.clear();
    // Nodes are reached hop by hop, so the rows of the batch come in order.
    const auto add_rows_up_to = [&](size_t reached, int most) {
        for (size_t i = batch_.start.size() - 1; i < reached; ++i) {
            batch_.neighbors.push_back(static_cast<int32_t>(i));
            expand(graph, here_[i], most, random);
            batch_.start.push_back(static_cast<int64_t>(batch_.neighbors.size()));
        }
    };
    for (const int most : neighbors_) add_rows_up_to(here_.size(), most);
    add_rows_up_to(here_.size(), 0);
    labels_.resize(here_.size(), -1);
    batch_.nodes.clear();
    for (const int32_t node : here_) batch_.nodes.push_back(graph.nodes[node]);
    batch_.build(matrices_);
    return true;
}

}  // namespace bmpaudit
