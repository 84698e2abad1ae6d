#include "neighbours.hpp"

namespace bmpaudit {

void neighbour_means(const Adjacency &graph, const float *values, int64_t num_rows, int num_threads, const Poll &poll,
                     float *means) {
    const int64_t num_nodes = graph.num_nodes();
    run_tasks(num_rows, num_threads, poll, [&](int64_t row, Worker &worker) {
        worker.checkpoint();
        const float *from = values + row * num_nodes;
        float *to = means + row * num_nodes;
        for (int32_t node = 0; node < num_nodes; ++node) {
            const int32_t *around = graph.neighbors(node);
            const int32_t degree = graph.degree(node);
            double sum = 0;
            for (int32_t k = 0; k < degree; ++k) sum += from[around[k]];
            to[node] = degree == 0 ? 0.0f : static_cast<float>(sum / degree);
        }
    });
}

}  // namespace bmpaudit
