// Vectors of 64 bytes on any processor: one register where registers are so wide, else halves of them, and so on. GCC
// turns its own vector types of more than a register into code for single numbers, many times slower.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace bmpaudit {

#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif

template <typename T> struct Register {
    typedef T Type __attribute__((vector_size(kRegisterBytes)));  // GCC ignores the attribute of a dependent `using`
};

template <typename Half> struct Halves {
    using Value = std::remove_reference_t<decltype(std::declval<Half &>()[0])>;
    Half low, high;

    Value &operator[](int lane) { return reinterpret_cast<Value *>(this)[lane]; }
    Value operator[](int lane) const { return reinterpret_cast<const Value *>(this)[lane]; }
};

template <typename T, int Bytes> struct WideType {
    using Type = Halves<typename WideType<T, Bytes / 2>::Type>;
};
template <typename T> struct WideType<T, kRegisterBytes> {
    using Type = typename Register<T>::Type;
};

// 64 bytes of T.
template <typename T> using Wide = typename WideType<T, 64>::Type;

template <typename S> using IfNumber = std::enable_if_t<std::is_arithmetic_v<S>, int>;

#define BMPAUDIT_LANEWISE(OP)                                                                                   \
    template <typename H> inline auto operator OP(const Halves<H> &a, const Halves<H> &b) {                     \
        return Halves<decltype(a.low OP b.low)>{a.low OP b.low, a.high OP b.high};                              \
    }                                                                                                           \
    template <typename H, typename S, IfNumber<S> = 0> inline auto operator OP(const Halves<H> &a, S b) {       \
        return Halves<decltype(a.low OP b)>{a.low OP b, a.high OP b};                                           \
    }                                                                                                           \
    template <typename H, typename S, IfNumber<S> = 0> inline auto operator OP(S a, const Halves<H> &b) {       \
        return Halves<decltype(a OP b.low)>{a OP b.low, a OP b.high};                                           \
    }
#define BMPAUDIT_LANEWISE_ASSIGNMENT(OP)                                                                        \
    template <typename H, typename B> inline Halves<H> &operator OP##=(Halves<H> &a, const B &b) { return a = a OP b; }

BMPAUDIT_LANEWISE(+)
BMPAUDIT_LANEWISE(-)
BMPAUDIT_LANEWISE(*)
BMPAUDIT_LANEWISE(/)
BMPAUDIT_LANEWISE(&)
BMPAUDIT_LANEWISE(|)
BMPAUDIT_LANEWISE(^)
BMPAUDIT_LANEWISE(<<)
BMPAUDIT_LANEWISE(>>)
BMPAUDIT_LANEWISE(<)
BMPAUDIT_LANEWISE(>)
BMPAUDIT_LANEWISE(<=)
BMPAUDIT_LANEWISE(>=)
BMPAUDIT_LANEWISE(==)
BMPAUDIT_LANEWISE(!=)
BMPAUDIT_LANEWISE_ASSIGNMENT(+)
BMPAUDIT_LANEWISE_ASSIGNMENT(-)
BMPAUDIT_LANEWISE_ASSIGNMENT(*)
BMPAUDIT_LANEWISE_ASSIGNMENT(&)
BMPAUDIT_LANEWISE_ASSIGNMENT(^)
#undef BMPAUDIT_LANEWISE
#undef BMPAUDIT_LANEWISE_ASSIGNMENT

template <typename H> inline Halves<H> operator-(const Halves<H> &a) { return {-a.low, -a.high}; }
template <typename H> inline Halves<H> operator~(const Halves<H> &a) { return {~a.low, ~a.high}; }

// Lane by lane: a where the mask is set, else b.
template <typename Mask, typename V> inline V select(Mask mask, V a, V b) { return mask ? a : b; }
template <typename M, typename H>
inline Halves<H> select(Halves<M> mask, Halves<H> a, Halves<H> b) {
    return {select(mask.low, a.low, b.low), select(mask.high, a.high, b.high)};
}

// The numbers of one type as another type.
template <typename To, typename From> struct Conversion {
    static To of(const From &x) { return __builtin_convertvector(x, To); }
};
template <typename To, typename From> struct Conversion<Halves<To>, Halves<From>> {
    static Halves<To> of(const Halves<From> &x) {
        return {Conversion<To, From>::of(x.low), Conversion<To, From>::of(x.high)};
    }
};
template <typename To, typename From> inline To converted(const From &x) { return Conversion<To, From>::of(x); }

// Square roots.
template <typename V> inline V sqrt_lanes(V x) {
    constexpr int kCount = static_cast<int>(sizeof(V) / sizeof(x[0]));
    V root;
    for (int lane = 0; lane < kCount; ++lane) root[lane] = std::sqrt(x[lane]);
    return root;
}
template <typename H> inline Halves<H> sqrt_lanes(Halves<H> x) { return {sqrt_lanes(x.low), sqrt_lanes(x.high)}; }

#if defined(__AVX512F__)
inline constexpr Register<int32_t>::Type kLaneOfRegister = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif defined(__AVX2__)
inline constexpr Register<int32_t>::Type kLaneOfRegister = {0, 1, 2, 3, 4, 5, 6, 7};
#else
inline constexpr Register<int32_t>::Type kLaneOfRegister = {0, 1, 2, 3};
#endif

// first, first + 1, ...
template <typename V> struct Counting {
    static V from(int first) { return kLaneOfRegister + first; }
};
template <typename H> struct Counting<Halves<H>> {
    static constexpr int kHalf = static_cast<int>(sizeof(H) / sizeof(int32_t));
    static Halves<H> from(int first) { return {Counting<H>::from(first), Counting<H>::from(first + kHalf)}; }
};

// Lanes by, by + 1, ... of a and b side by side, as many as one of them has; `by` is less than that.
template <typename V> inline V shifted_pair(const V &a, const V &b, int by) {
#ifdef __clang__
    constexpr int kCount = static_cast<int>(sizeof(V) / sizeof(a[0]));
    V shifted;
    for (int lane = 0; lane < kCount; ++lane) shifted[lane] = lane + by < kCount ? a[lane + by] : b[lane + by - kCount];
    return shifted;
#else
    return __builtin_shuffle(a, b, kLaneOfRegister + by);
#endif
}
template <typename H> inline Halves<H> shifted_pair(const Halves<H> &a, const Halves<H> &b, int by) {
    constexpr int kHalf = static_cast<int>(sizeof(H) / sizeof(a.low[0]));
    if (by == 0) return a;
    if (by == kHalf) return {a.high, b.low};
    if (by < kHalf) return {shifted_pair(a.low, a.high, by), shifted_pair(a.high, b.low, by)};
    return {shifted_pair(a.high, b.low, by - kHalf), shifted_pair(b.low, b.high, by - kHalf)};
}

// The lanes of a and b in turn, a's first: those of the lower halves, and those of the upper halves.
template <typename V> inline V interleaved_from(const V &a, const V &b, int first) {
    constexpr int kCount = static_cast<int>(sizeof(V) / sizeof(a[0]));
#ifdef __clang__
    V mixed;
    for (int lane = 0; lane < kCount; ++lane) mixed[lane] = lane % 2 == 0 ? a[first + lane / 2] : b[first + lane / 2];
    return mixed;
#else
    return __builtin_shuffle(a, b, (kLaneOfRegister >> 1) + (kLaneOfRegister & 1) * kCount + first);
#endif
}
template <typename V> inline V interleaved_low(const V &a, const V &b) { return interleaved_from(a, b, 0); }
template <typename V> inline V interleaved_high(const V &a, const V &b) {
    return interleaved_from(a, b, static_cast<int>(sizeof(V) / sizeof(a[0])) / 2);
}
template <typename H> inline Halves<H> interleaved_low(const Halves<H> &a, const Halves<H> &b) {
    return {interleaved_low(a.low, b.low), interleaved_high(a.low, b.low)};
}
template <typename H> inline Halves<H> interleaved_high(const Halves<H> &a, const Halves<H> &b) {
    return {interleaved_low(a.high, b.high), interleaved_high(a.high, b.high)};
}

// Four floats from an address that need not be aligned, again and again.
template <typename V> struct FourRepeated {
    static V from(const float *four) {
#if defined(__AVX512F__)
        // GCC makes far slower code of a shuffle that widens, and warns of the same function without a mask.
        return _mm512_maskz_broadcast_f32x4(0xFFFF, _mm_loadu_ps(four));
#elif defined(__AVX2__)
        return _mm256_broadcast_ps(reinterpret_cast<const __m128 *>(four));
#else
        V value;
        std::memcpy(&value, four, sizeof value);
        return value;
#endif
    }
};
template <typename H> struct FourRepeated<Halves<H>> {
    static Halves<H> from(const float *four) {
        const H half = FourRepeated<H>::from(four);
        return {half, half};
    }
};
template <typename V> inline V four_repeated(const float *four) { return FourRepeated<V>::from(four); }

// In each four lanes, all four of what stood in one of them.
template <typename V> inline V lane_of_fours(const V &x, int lane) {
#ifdef __clang__
    constexpr int kCount = static_cast<int>(sizeof(V) / sizeof(x[0]));
    V chosen;
    for (int at = 0; at < kCount; ++at) chosen[at] = x[at / 4 * 4 + lane];
    return chosen;
#else
    return __builtin_shuffle(x, (kLaneOfRegister & ~3) + lane);
#endif
}
template <typename H> inline Halves<H> lane_of_fours(const Halves<H> &x, int lane) {
    return {lane_of_fours(x.low, lane), lane_of_fours(x.high, lane)};
}

// Sixteen floats at a time: AVX-512, AVX2, SSE or NEON as the instruction set has it.

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

// log x for normal x > 0, to about one unit in the last place: log m = 2 artanh((m-1)/(m+1)) for m in [2/3, 4/3).
inline Lanes log_lanes(Lanes x) {
    IntLanes bits;
    std::memcpy(&bits, &x, sizeof bits);
    const IntLanes exponent = (bits - 0x3F2AAAAB) >> 23;
    const IntLanes mantissa_bits = bits - (exponent << 23);
    Lanes mantissa;
    std::memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
    const Lanes s = (mantissa - 1.0f) / (mantissa + 1.0f), z = s * s;
    const Lanes series = (((z * (1 / 9.0f) + 1 / 7.0f) * z + 1 / 5.0f) * z + 1 / 3.0f) * z;
    return converted<Lanes>(exponent) * 0.693147181f + 2.0f * (s * series + s);
}

// Eight doubles at a time.
constexpr int kDoubles = 8;
using Doubles = Wide<double>;

}  // namespace bmpaudit
