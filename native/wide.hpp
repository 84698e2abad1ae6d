// Vectors of 64 bytes on any processor: one register where registers are so wide, else halves of them, and so on. GCC
// turns its own vector types of more than a register into code for single numbers, many times slower.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

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

}  // namespace bmpaudit
