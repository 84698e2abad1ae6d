#include "optimizer.hpp"

#include <cmath>

#include "choices.hpp"

namespace bmpaudit {

bool is_adam(const std::string &name) {
    static const Choices<bool> optimizers = {{"adam", true}, {"sgd", false}};
    return chosen("optimizer", name, optimizers);
}

void Optimizer::begin_step(int epoch) {
    step_size_ = static_cast<float>(training_.learning_rate);
    if (!training_.uses_adam) return;
    step_size_ = static_cast<float>(training_.learning_rate / (1.0 - std::pow(kBeta1, epoch)));
    inverse_root_correction_ = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(kBeta2, epoch)));
}

Optimizer::LaneStep Optimizer::lane_step(Parameter &parameter) const {
    LaneStep step;
    step.value_ = parameter.value.row(0);
    step.mean_ = parameter.first_moment.row(0);
    step.square_ = parameter.second_moment.row(0);
    step.decay_ = static_cast<float>(training_.weight_decay);
    step.step_size_ = step_size_;
    step.inverse_root_correction_ = inverse_root_correction_;
    step.uses_adam_ = training_.uses_adam;
    return step;
}

void Optimizer::step(Parameter &parameter) const {
    const LaneStep step = lane_step(parameter);
    const Lanes *gradient = parameter.gradient.row(0);
    for (int64_t at = 0; at < parameter.value.rows() * parameter.value.blocks(); ++at) step(at, gradient[at]);
}

}  // namespace bmpaudit
