#include "hops.hpp"

#include "matrix_products.hpp"

namespace bmpaudit {

void propagate_hops(const SparseProduct &matrix, int hops, float alpha, const Matrix &start, Matrix &result, Matrix &scratch) {
    const Matrix *from = &start;
    const Lanes *origin = start.row(0);
    const int64_t blocks = start.blocks();
    for (int left = hops - 1; left >= 0; --left) {
        Matrix &target = left % 2 == 0 ? result : scratch;  // the last step ends in the result
        target.reshape(start.rows(), start.blocks());
        const RowPointers to(target, 0);
        matrix.multiply(*from, target, [=](int64_t i, int first, auto width, const Lanes *sums) {
            for (int b = 0; b < decltype(width)::value; ++b)
                to(i)[first + b] = (1.0f - alpha) * sums[b] + alpha * origin[i * blocks + first + b];
        });
        from = &target;
    }
}

}  // namespace bmpaudit
