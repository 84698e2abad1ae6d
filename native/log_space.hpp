// Sums and differences of numbers given by their logarithms.
#pragma once

#include <cmath>
#include <limits>
#include <utility>

namespace bmpaudit {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline double log1mexp(double x) {  // log(1 - e^x) for x < 0
    return x > -0.6931471805599453 ? std::log(-std::expm1(x)) : std::log1p(-std::exp(x));
}

inline double log_difference(double larger, double smaller) {  // log(e^larger - e^smaller)
    if (smaller == -kInfinity) return larger;
    return larger > smaller ? larger + log1mexp(smaller - larger) : -kInfinity;
}

inline double log_sum(double x, double y) {
    if (x < y) std::swap(x, y);
    return y == -kInfinity ? x : x + std::log1p(std::exp(y - x));
}

}  // namespace bmpaudit
