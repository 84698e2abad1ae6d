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

// The value in each lane whose bit is set, else 0.
inline Lanes only(uint32_t bits, Lanes value) {
    const IntLanes bit_of_lane = (IntLanes{} + 1) << lane_numbers();
    return select(((IntLanes{} + static_cast<int32_t>(bits)) & bit_of_lane) != 0, value, Lanes{});
}

// To an address that need not be aligned.
inline void store(const Lanes &value, float *to) { std::memcpy(to, &value, sizeof value); }

inline Lanes rotate(Lanes value, int by) { return shifted_pair(value, value, by); }

inline Lanes max_lanes(Lanes a, Lanes b) { return select(a > b, a, b); }

inline float sum_lanes(Lanes value) {
    for (int by = kLanes / 2; by > 0; by /= 2) value += rotate(value, by);
    return value[0];
}

// e^x to about one unit in the last place; x below -87 gives about 1e-38.
[[gnu::always_inline]] inline Lanes exp_lanes(Lanes x) {
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

// Rows and columns exchanged: lane c of rows[r] goes to lane r of rows[c].
inline void transpose(Lanes (&rows)[kLanes]) {
    // Four perfect shuffles turn the four binary digits of the row into those of the lane.
    for (int round = 0; round < 4; ++round) {
        Lanes shuffled[kLanes];
        for (int r = 0; r < kLanes / 2; ++r) {
            shuffled[2 * r] = interleaved_low(rows[r], rows[r + kLanes / 2]);
            shuffled[2 * r + 1] = interleaved_high(rows[r], rows[r + kLanes / 2]);
        }
        for (int r = 0; r < kLanes; ++r) rows[r] = shuffled[r];
    }
}

// Rows of lanes; columns beyond the true width are kept at zero.
class Matrix {
  public:
    // Numbers that were not there before are zeros; others are left as they are, in places that mean nothing.
    void reshape(int64_t rows, int blocks) {
        rows_ = rows;
        blocks_ = blocks;
        if (data_.size() < size()) data_.resize(size());
    }
    void fill_zero() { std::fill_n(data_.begin(), size(), Lanes{}); }
    int64_t rows() const { return rows_; }
    int blocks() const { return blocks_; }
    Lanes *row(int64_t index) { return data_.data() + index * blocks_; }
    const Lanes *row(int64_t index) const { return data_.data() + index * blocks_; }
    float *floats(int64_t index) { return reinterpret_cast<float *>(row(index)); }
    const float *floats(int64_t index) const { return reinterpret_cast<const float *>(row(index)); }

  private:
    size_t size() const { return static_cast<size_t>(rows_) * blocks_; }

    int64_t rows_ = 0;
    int blocks_ = 0;
    std::vector<Lanes> data_;  // never shrinks: a matrix that changes its shape in turns is not cleared each time
};

// Where the rows of a matrix are, from one block on: a copy in registers, for inner loops that write to memory.
class RowPointers {
  public:
    RowPointers(Matrix &matrix, int first) : from_(matrix.row(0) + first), blocks_(matrix.blocks()) {}
    Lanes *operator()(int64_t row) const { return from_ + row * blocks_; }

  private:
    Lanes *from_;
    int64_t blocks_;
};

}  // namespace bmpaudit
