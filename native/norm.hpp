// Normalisation of a layer's output: over the nodes of a batch, as torch.nn.BatchNorm1d, or over the units of each node, as
// torch.nn.LayerNorm.
#pragma once

#include <string>

#include "layer.hpp"

namespace bmpaudit {

enum class Norm { none, batch, layer };

// A normalisation by its name; std::invalid_argument if there is none.
Norm norm_of(const std::string &name);

// Numbers that it has for each unit: scale and shift, and of a batch the running mean and variance.
int norm_vectors(Norm norm);

// In training, in place; a batch moves the running mean and variance.
void normalise(Norm norm, Layer &layer, Matrix &rows, KeptNorm &kept);
// Of a trained model, in place.
void normalise_trained(Norm norm, const Layer &layer, Matrix &rows);
// From the gradient of what was normalised to that of what was given, in place, and to those of scale and shift.
void normalise_backward(Norm norm, Layer &layer, const KeptNorm &kept, Matrix &gradient);

}  // namespace bmpaudit
