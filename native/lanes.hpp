// Sixteen floats at a time: AVX-512, AVX2, SSE or NEON as the instruction set has it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "wide.hpp"

namespace bmpaudit {

constexpr int kLanes = 16;
using Lanes = Wide<float>;
using IntLanes = Wide<int32_t>;

// 0, 1, ..., 15.
inline IntLanes lane_numbers() { return Counting<IntLanes>::from(0); }

inline Lanes splat(float value) { return Lanes{} + value; }

inline int blocks_for(int width) { return (width + kLanes - 1) / kLanes; }

// 1 in each lane whose bit is set, else 0.
inline Lanes lanes_of_bits(uint32_t bits) {
    const IntLanes set = ((IntLanes{} + static_cast<int32_t>(bits)) >> lane_numbers()) & 1;
    return converted<Lanes>(set);
}

inline Lanes rotate(Lanes value, int by) { return shifted_pair(value, value, by); }

inline Lanes max_lanes(Lanes a, Lanes b) { return select(a > b, a, b); }

inline float sum_lanes(Lanes value) {
    for (int by = kLanes / 2; by > 0; by /= 2) value += rotate(value, by);
    return value[0];
}

inline float largest_lane(Lanes value) {
    for (int by = kLanes / 2; by > 0; by /= 2) value = max_lanes(value, rotate(value, by));
    return value[0];
}

// e^x to about one unit in the last place; x below -87 gives about 1e-38.
inline Lanes exp_lanes(Lanes x) {
    const Lanes low = splat(-87.0f), high = splat(88.0f);
    const Lanes clamped = select(x < low, low, select(x > high, high, x));
    // Adding 1.5·2²³ rounds to a whole number, which then stands in the low bits.
    const Lanes shifted = clamped * 1.44269504f + 12582912.0f;
    const Lanes whole = shifted - 12582912.0f;
    const Lanes rest = (clamped - whole * 0.693359375f) + whole * 2.12194440e-4f;
    Lanes power = splat(1.9875691500e-4f);
    power = power * rest + 1.3981999507e-3f;
    power = power * rest + 8.3334519073e-3f;
    power = power * rest + 4.1665795894e-2f;
    power = power * rest + 1.6666665459e-1f;
    power = power * rest + 5.0000001201e-1f;
    power = power * (rest * rest) + rest + 1.0f;
    IntLanes exponent;
    std::memcpy(&exponent, &shifted, sizeof exponent);
    exponent = (exponent << 23) + (127 << 23);
    Lanes scale;
    std::memcpy(&scale, &exponent, sizeof scale);
    const Lanes result = power * scale;
    return select(x == x, result, x);  // NaN stays NaN
}

// Rows of lanes; columns beyond the true width are kept at zero.
class Matrix {
  public:
    void reshape(int64_t rows, int blocks) {
        rows_ = rows;
        blocks_ = blocks;
        data_.resize(static_cast<size_t>(rows) * blocks);
    }
    void fill_zero() { std::fill(data_.begin(), data_.end(), Lanes{}); }
    int64_t rows() const { return rows_; }
    int blocks() const { return blocks_; }
    Lanes *row(int64_t index) { return data_.data() + index * blocks_; }
    const Lanes *row(int64_t index) const { return data_.data() + index * blocks_; }
    float *floats(int64_t index) { return reinterpret_cast<float *>(row(index)); }
    const float *floats(int64_t index) const { return reinterpret_cast<const float *>(row(index)); }

  private:
    int64_t rows_ = 0;
    int blocks_ = 0;
    std::vector<Lanes> data_;
};

}  // namespace bmpaudit
