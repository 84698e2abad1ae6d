// A rate with its complement, so that neither loses digits next to 0 or 1.
#pragma once

namespace bmpaudit {

// A rate and its complement, each to full relative accuracy.
struct RatePair {
    double u, rest;

    RatePair flipped() const { return {rest, u}; }
};

inline bool before(const RatePair &x, const RatePair &y) { return x.u < 0.5 ? x.u < y.u : x.rest > y.rest; }
inline const RatePair &earlier(const RatePair &x, const RatePair &y) { return before(x, y) ? x : y; }
inline const RatePair &later(const RatePair &x, const RatePair &y) { return before(x, y) ? y : x; }

inline constexpr RatePair kZero{0, 1}, kOne{1, 0};

}  // namespace bmpaudit
