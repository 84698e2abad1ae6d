// Eight doubles at a time: logarithms and exponentials.
#pragma once

#include <cstdint>
#include <cstring>

#include "wide.hpp"

namespace bmpaudit {

using Doubles = Wide<double>;
using DoubleMask = decltype(Doubles{} < Doubles{});  // compilers choose different integers of 64 bits
inline constexpr int kDoubles = 8;

inline Doubles max_doubles(const Doubles &a, const Doubles &b) { return select(a > b, a, b); }

inline bool any_double(const DoubleMask &mask) {
    int64_t all = 0;
    for (int lane = 0; lane < kDoubles; ++lane) all |= mask[lane];
    return all != 0;
}

// log x for normal x > 0, to about one unit in the last place: log m = 2 artanh((m-1)/(m+1)) for m in [√½, √2).
inline Doubles log_doubles(const Doubles &x) {
    constexpr int64_t root_half = 0x3FE6A09E667F3BCD, magic = 0x4330000000000000;  // the second is 2^52
    DoubleMask bits;
    std::memcpy(&bits, &x, sizeof bits);
    const DoubleMask exponent = (bits - root_half) >> 52;
    const DoubleMask mantissa_bits = bits - (exponent << 52), shifted_bits = (exponent + 2048) | magic;
    Doubles mantissa, shifted;
    std::memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
    std::memcpy(&shifted, &shifted_bits, sizeof shifted);
    const Doubles s = (mantissa - 1.0) / (mantissa + 1.0), z = s * s;
    Doubles series = Doubles{} + 1 / 23.0;
    for (int odd = 21; odd >= 3; odd -= 2) series = series * z + 1.0 / odd;
    const Doubles whole = shifted - (0x1.0p52 + 2048);
    return whole * 0x1.62e42fefa39efp-1 + (2.0 * (s * (series * z)) + 2.0 * s);
}

// e^x for x up to 700, to about one unit in the last place; 0 below -700.
inline Doubles exp_doubles(const Doubles &x) {
    constexpr double magic = 0x1.8p52;
    const Doubles clamped = max_doubles(x, Doubles{} - 700.0);
    const Doubles shifted = clamped * 0x1.71547652b82fep0 + magic;  // rounds to a whole number, which stands in the low bits
    const Doubles whole = shifted - magic;
    const Doubles rest = (clamped - whole * 0x1.62e42fefa38p-1) - whole * 0x1.ef35793c7673p-45;
    Doubles power = Doubles{} + 1 / 6227020800.0;  // 1/13!
    constexpr double factorial[] = {479001600, 39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1};
    for (const double each : factorial) power = power * rest + 1 / each;
    Wide<uint64_t> exponent, bits;  // without a sign, as lanes beyond 700, of which nothing is used, overflow
    std::memcpy(&exponent, &shifted, sizeof exponent);
    std::memcpy(&bits, &power, sizeof bits);
    bits = bits + (exponent << 52);
    Doubles result;
    std::memcpy(&result, &bits, sizeof result);
    return select(x < -700.0, Doubles{}, result);
}

}  // namespace bmpaudit
