// Sums of logarithms over nodes, with bounds in the place of what is not known exactly.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace bmpaudit {

// Sums over nodes of logarithms of factors, one for each of many points.
class LogProducts {
  public:
    explicit LogProducts(int64_t num_points) : sum_(num_points, 0.0), product_(num_points, 1.0) {}

    void multiply(int64_t point, double factor, double times) {
        if (times == 1) product_[point] *= factor;
        else sum_[point] += times * std::log(factor);
    }
    double *products() { return product_.data(); }
    void add(int64_t point, double logarithm) { sum_[point] += logarithm; }
    void end_node() {
        if (++pending_ == kBlock) settle();
    }
    std::vector<double> finished() {
        settle();
        return std::move(sum_);
    }

  private:
    static constexpr int kBlock = 8;  // factors multiplied before a logarithm is taken: none is beyond e^{±80}

    void settle() {
        if (pending_ == 0) return;
        for (size_t point = 0; point < sum_.size(); ++point) {
            if (product_[point] == 1) continue;
            sum_[point] += std::log(product_[point]);
            product_[point] = 1;
        }
        pending_ = 0;
    }

    std::vector<double> sum_, product_;
    int pending_ = 0;
};

// A node whose probability is too small to be known by tables at some point, and the bound that stands for it there.
struct Doubtful {
    int32_t node;
    float log_bound;
};

// What some of the nodes add to the log-likelihood at each point.
struct PartialSums {
    std::vector<double> sum;
    std::vector<std::vector<Doubtful>> doubtful;
};

}  // namespace bmpaudit
