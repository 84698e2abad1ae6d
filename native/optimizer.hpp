// Adam and stochastic gradient descent, as PyTorch has them.
#pragma once

#include <string>

#include "layer.hpp"

namespace bmpaudit {

struct TrainingSettings {
    int epochs;
    double learning_rate;
    double weight_decay;
    bool uses_adam;  // else plain gradient descent
};

// Whether the optimiser of this name is Adam; std::invalid_argument if there is no such optimiser.
bool is_adam(const std::string &name);

class Optimizer {
  public:
    explicit Optimizer(const TrainingSettings &training) : training_(training) {}
    // Epochs count from 1.
    void begin_step(int epoch);
    void step(Parameter &parameter) const;

  private:
    TrainingSettings training_;
    float step_size_ = 0, inverse_root_correction_ = 0;
};

}  // namespace bmpaudit
