#include "optimizer.hpp"

#include <cmath>

#include "choices.hpp"

namespace bmpaudit {

namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
constexpr float kAdamEpsilon = 1e-8f;

}  // namespace

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

void Optimizer::step(Parameter &parameter) const {
    const int64_t size = parameter.value.rows() * parameter.value.blocks();
    if (size == 0) return;
    const float decay = static_cast<float>(training_.weight_decay);
    Lanes *value = parameter.value.row(0);
    const Lanes *gradient = parameter.gradient.row(0);
    if (!training_.uses_adam) {
        for (int64_t k = 0; k < size; ++k) value[k] -= step_size_ * (gradient[k] + decay * value[k]);
        return;
    }
    Lanes *first = parameter.first_moment.row(0), *second = parameter.second_moment.row(0);
    for (int64_t k = 0; k < size; ++k) {
        const Lanes g = gradient[k] + decay * value[k];
        // 1 - β is rounded once, from double: 1.0f - 0.999f would be off by 5e-5.
        first[k] += static_cast<float>(1.0 - kBeta1) * (g - first[k]);
        second[k] = static_cast<float>(kBeta2) * second[k] + static_cast<float>(1.0 - kBeta2) * (g * g);
        value[k] -= step_size_ * first[k] / (sqrt_lanes(second[k]) * inverse_root_correction_ + kAdamEpsilon);
    }
}

}  // namespace bmpaudit
