#include "optimizer.hpp"

#include <cmath>

#include "choices.hpp"

namespace bmpaudit {

bool is_adam(const std::string &name) {
    static const Choices<bool> optimizers = {{"adam", true}, {"sgd", false}};
    return chosen("optimizer", name, optimizers);
}

Schedule schedule_of(const std::string &name) {
    static const Choices<Schedule> schedules = {
        {"constant", Schedule::constant}, {"cosine", Schedule::cosine}, {"step", Schedule::step}};
    return chosen("schedule", name, schedules);
}

double Optimizer::learning_rate(int epoch) const {
    const int64_t done = epoch - 1, all = training_.epochs;
    const double rate = training_.learning_rate;
    if (training_.schedule == Schedule::cosine)
        return rate * (1.0 + std::cos(3.141592653589793 * static_cast<double>(done) / static_cast<double>(all))) / 2.0;
    if (training_.schedule == Schedule::step) return rate * (done < all / 2 ? 1.0 : done < 3 * all / 4 ? 0.1 : 0.01);
    return rate;
}

void Optimizer::begin_step(int64_t step, int epoch) {
    const double rate = learning_rate(epoch);
    step_size_ = static_cast<float>(rate);
    if (!training_.uses_adam) return;
    step_size_ = static_cast<float>(rate / (1.0 - std::pow(kBeta1, static_cast<double>(step))));
    inverse_root_correction_ = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(kBeta2, static_cast<double>(step))));
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
