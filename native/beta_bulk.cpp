#include "beta_bulk.hpp"

namespace bmpaudit {

namespace {

// What a power of s comes to on [-1, 1] if nothing beyond the degree is left of its Chebyshev series: coefficients of
// lower powers, for the powers degree + 1, degree + 2, ... Where a Taylor series needs many terms, far fewer will do.
template <int degree, int num_powers> struct LoweredPowers {
    double coefficient[num_powers][degree + 1] = {};

    LoweredPowers() {
        // 2^degree s^{degree+1} - T_{degree+1} has no power beyond the degree.
        std::array<double, degree + 2> previous{1}, chebyshev{0, 1};
        for (int n = 1; n <= degree; ++n) {
            std::array<double, degree + 2> next{};
            for (int k = 0; k <= degree; ++k) next[k + 1] = 2 * chebyshev[k];
            for (int k = 0; k <= degree + 1; ++k) next[k] -= previous[k];
            previous = chebyshev;
            chebyshev = next;
        }
        for (int k = 0; k <= degree; ++k) coefficient[0][k] = -chebyshev[k] / chebyshev[degree + 1];
        for (int n = 1; n < num_powers; ++n)
            for (int k = 0; k <= degree; ++k)
                coefficient[n][k] = (k > 0 ? coefficient[n - 1][k - 1] : 0) + coefficient[n - 1][degree] * coefficient[0][k];
    }
};

}  // namespace

// Taylor coefficients of the density f about the middle of each cell from u(1-u) f' = (p-1 - (p+q-2)u) f; then the cells'
// scales, from the mode outwards, so that neighbours meet. No exponential, and no constant that could be off.
void BetaBulk::tabulate() {
    if (cells_per_unit_ > 0) return;
    static const LoweredPowers<kDegree, kTerms - kDegree - 1> lowered;
    const double half = 0.5 * width() / kCells, total = p_ + q_ - 2;
    double series[kTerms][kCells], drift[kCells], tilt[kCells], step[kCells];
    for (int j = 0; j < kCells; ++j) {
        const double middle = low_ + (2 * j + 1) * half;
        step[j] = half / (middle * (1 - middle));
        drift[j] = p_ - 1 - total * middle;
        tilt[j] = 1 - 2 * middle;
        series[0][j] = 1;
        series[1][j] = step[j] * drift[j];
    }
    for (int k = 1; k + 1 < kTerms; ++k) {
        const double share = 1.0 / (k + 1), before_last = half * (k - 1 - total);
        for (int j = 0; j < kCells; ++j)
            series[k + 1][j] =
                share * step[j] * ((drift[j] - k * tilt[j]) * series[k][j] + before_last * series[k - 1][j]);
    }
    double left[kCells] = {}, right[kCells] = {}, mass[kCells] = {}, to_left[kCells] = {};
    for (int k = 0; k < kTerms; ++k) {
        const double sign = k % 2 ? -1 : 1, share = 1.0 / (k + 1);
        for (int j = 0; j < kCells; ++j) {
            left[j] += sign * series[k][j];
            right[j] += series[k][j];
            mass[j] += (1 + sign) * share * series[k][j];
            to_left[j] += sign * share * series[k][j];
        }
    }
    double scale[kCells];
    const double mode = total > 0 ? (p_ - 1) / total : 0;
    const int highest = std::clamp(static_cast<int>((mode - low_) / (2 * half)), 0, kCells - 1);
    scale[highest] = 1;
    for (int j = highest + 1; j < kCells; ++j) scale[j] = scale[j - 1] * right[j - 1] / left[j];
    for (int j = highest - 1; j >= 0; --j) scale[j] = scale[j + 1] * left[j + 1] / right[j];
    double whole = 0, reached = 0;
    for (int j = 0; j < kCells; ++j) whole += scale[j] * mass[j];
    for (int j = 0; j < kCells; ++j) {
        scale[j] /= whole;
        distribution_.coefficient[0][j] = reached + scale[j] * to_left[j];
        reached += scale[j] * mass[j];
    }
    for (int k = 0; k <= kDegree; ++k) {
        for (int n = (kDegree + 1 + k) % 2; n < kTerms - kDegree - 1; n += 2)  // a power is lowered to those of its parity
            for (int j = 0; j < kCells; ++j) series[k][j] += lowered.coefficient[n][k] * series[kDegree + 1 + n][j];
        for (int j = 0; j < kCells; ++j) {
            density_.coefficient[k][j] = scale[j] / half * series[k][j];
            distribution_.coefficient[k + 1][j] = scale[j] / (k + 1) * series[k][j];
        }
    }
    cells_per_unit_ = kCells / width();
    most_dense_ = 4 * scale[highest] / half;
}

}  // namespace bmpaudit
