// Eight nodes at a time, and logarithms of products of their numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

namespace bmpaudit::student {

constexpr int kNodes = 8;  // at a time

using Doubles = double __attribute__((vector_size(8 * kNodes)));
using Words = int64_t __attribute__((vector_size(8 * kNodes)));
using Floats = float __attribute__((vector_size(4 * kNodes)));
using Bytes = uint8_t __attribute__((vector_size(kNodes)));

inline Doubles all(double value) { return Doubles{} + value; }

// Eight nodes' values, fewer at the end of a row.
inline Doubles load(const float *values, int count) {
    Floats lanes{};
    if (count == kNodes) std::memcpy(&lanes, values, sizeof lanes);
    else std::memcpy(&lanes, values, count * sizeof(float));
    return __builtin_convertvector(lanes, Doubles);
}
inline Doubles load(const uint8_t *values, int count) {
    Bytes lanes{};
    if (count == kNodes) std::memcpy(&lanes, values, sizeof lanes);
    else std::memcpy(&lanes, values, count);
    return __builtin_convertvector(lanes, Doubles);
}

// The logarithm of a product of positive numbers. Mantissas in [√½, √2) are multiplied and exponents added, so that
// nothing overflows; then log m = 2·artanh s = 2s(1 + s²/3 + s⁴/5 + …) with s = (m-1)/(m+1).
class LogProduct {
  public:
    void multiply(Doubles x) {
        Words bits;
        std::memcpy(&bits, &x, sizeof bits);
        const Words exponent = (bits - kRootHalf) >> 52;
        bits -= exponent << 52;
        Doubles mantissa;
        std::memcpy(&mantissa, &bits, sizeof mantissa);
        exponent_ += exponent;
        mantissa_ *= mantissa;
    }
    Doubles log() {
        multiply(std::exchange(mantissa_, all(1)));  // back to [√½, √2)
        constexpr double kLog2High = 0x1.62e42fefa3800p-1, kLog2Low = 0x1.ef35793c76730p-45;
        const Doubles s = (mantissa_ - 1) / (mantissa_ + 1), square = s * s;
        Doubles series = all(1.0 / 21);
        for (int odd = 19; odd >= 3; odd -= 2) series = series * square + 1.0 / odd;
        const Doubles e = __builtin_convertvector(exponent_, Doubles);
        return e * kLog2High + (2 * s + (e * kLog2Low + 2 * s * square * series));
    }

  private:
    static constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;  // the bits of √½
    Words exponent_{};
    Doubles mantissa_ = all(1);
};

inline Doubles log_of(Doubles x) {
    LogProduct product;
    product.multiply(x);
    return product.log();
}

}  // namespace bmpaudit::student
