#include "layer.hpp"

#include <utility>

namespace bmpaudit {

namespace {

int head_stride_for(int heads) {
    if (heads > kLanes) return blocks_for(heads) * kLanes;
    int stride = 1;
    while (stride < heads) stride *= 2;
    return stride;
}

}  // namespace

LayerShape::LayerShape(int inputs_each_part, int channels, int heads, int tall_parts, int wide_parts)
    : inputs(inputs_each_part * tall_parts), channels(channels), heads(heads), head_stride(head_stride_for(heads)),
      blocks(blocks_for(channels * head_stride)), tile_blocks(blocks_for(head_stride)), tall_parts(tall_parts),
      wide_parts(wide_parts) {}

Parameter::Parameter(int64_t rows, int blocks) {
    for (Matrix *matrix : {&value, &gradient, &first_moment, &second_moment}) matrix->reshape(rows, blocks);
}

void Parameter::clear() {
    for (Matrix *matrix : {&value, &gradient, &first_moment, &second_moment}) matrix->fill_zero();
}

Layer::Layer(const LayerShape &shape, std::vector<int> input_row, int num_vectors, int norm_vectors)
    : shape(shape), input_row(std::move(input_row)), weight(shape.inputs, shape.linear_blocks()),
      vectors(num_vectors, Parameter(1, shape.blocks)), bias(1, shape.blocks),
      norm(norm_vectors, Parameter(1, shape.blocks)) {}

int64_t Layer::num_weights() const {
    return static_cast<int64_t>(shape.units()) * num_inputs() * shape.tall_parts * shape.wide_parts;
}

int64_t Layer::num_parameters() const {
    return num_weights() + static_cast<int64_t>(shape.units()) * static_cast<int64_t>(vectors.size() + 1 + norm.size());
}

}  // namespace bmpaudit
