// Gauss-Legendre quadrature.
#pragma once

#include <array>
#include <cmath>
#include <utility>

namespace bmpaudit {

// Nodes and weights of Gauss-Legendre quadrature on [-1, 1], by Newton's method on the Legendre polynomial.
template <int n> struct GaussLegendre {
    std::array<double, n> node, weight;
    GaussLegendre() {
        for (int i = 0; i < n; ++i) {
            double x = std::cos(3.141592653589793 * (i + 0.75) / (n + 0.5)), slope = 1;
            for (int round = 0; round < 20; ++round) {
                double previous = 1, value = x;
                for (int k = 2; k <= n; ++k) previous = std::exchange(value, ((2 * k - 1) * x * value - (k - 1) * previous) / k);
                slope = n * (x * value - previous) / (x * x - 1);
                const double step = value / slope;
                x -= step;
                if (std::abs(step) < 1e-16) break;
            }
            node[i] = x;
            weight[i] = 2 / ((1 - x * x) * slope * slope);
        }
    }
};

}  // namespace bmpaudit
