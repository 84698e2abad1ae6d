// Adam and stochastic gradient descent, as PyTorch has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layer.hpp"

namespace bmpaudit {

// How the learning rate goes on: as it is; down to 0 by half a cosine; or a tenth of it after half of the epochs and a
// hundredth after three quarters.
enum class Schedule { constant, cosine, step };

// A schedule by its name; std::invalid_argument if there is none.
Schedule schedule_of(const std::string &name);

struct TrainingSettings {
    int epochs;
    double learning_rate;
    double weight_decay;
    bool uses_adam;  // else plain gradient descent
    Schedule schedule;
    double label_smoothing;  // share of each label that all classes get in equal parts
    double drop_edge;        // share of the edges that each epoch leaves out
    double validation_share;  // of a sample's nodes; 0: all are learnt from, and all epochs trained
    int patience;             // epochs without a lower loss of validation after which training ends; 0: all are trained
    int batch_size;           // 0: all nodes at once
    std::vector<int> neighbors;  // taken of each node at most, hop by hop; -1: all
};

// Whether the optimiser of this name is Adam; std::invalid_argument if there is no such optimiser.
bool is_adam(const std::string &name);

class Optimizer {
  public:
    explicit Optimizer(const TrainingSettings &training) : training_(training) {}
    // Both count from 1.
    void begin_step(int64_t step, int epoch);
    void step(Parameter &parameter) const;

    // The step of single lanes, in the same pass that computed their gradient. It holds what it needs by value, so that
    // an inner loop keeps it in registers.
    class LaneStep {
      public:
        // `at` counts lanes from the parameter's first row on.
        void operator()(int64_t at, Lanes gradient) const {
            const Lanes value = value_[at], g = gradient + decay_ * value;
            if (!uses_adam_) {
                value_[at] = value - step_size_ * g;
                return;
            }
            // 1 - β is rounded once, from double: 1.0f - 0.999f would be off by 5e-5.
            const Lanes mean = mean_[at] + static_cast<float>(1.0 - kBeta1) * (g - mean_[at]);
            const Lanes square = static_cast<float>(kBeta2) * square_[at] + static_cast<float>(1.0 - kBeta2) * (g * g);
            value_[at] = value - step_size_ * mean / (sqrt_lanes(square) * inverse_root_correction_ + kEpsilon);
            mean_[at] = mean;
            square_[at] = square;
        }

      private:
        friend class Optimizer;
        Lanes *value_, *mean_, *square_;
        float decay_, step_size_, inverse_root_correction_;
        bool uses_adam_;
    };
    LaneStep lane_step(Parameter &parameter) const;

  private:
    double learning_rate(int epoch) const;

    static constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
    static constexpr float kEpsilon = 1e-8f;

    TrainingSettings training_;
    float step_size_ = 0, inverse_root_correction_ = 0;
};

}  // namespace bmpaudit
