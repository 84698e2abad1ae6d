// Gamma random numbers, sixteen at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "lanes.hpp"
#include "random.hpp"

namespace bmpaudit {

using WordLanes = Wide<uint64_t>;

// Sixteen random words of 32 bits at a time: eight xoshiro256++ generators (Blackman and Vigna 2021) side by side, their
// states drawn from a stream.
class LaneBits {
  public:
    explicit LaneBits(RandomBits &random) {
        for (auto &state : state_)
            for (int lane = 0; lane < 8; ++lane) state[lane] = random.next();
    }
    IntLanes next() {
        const WordLanes result = rotated(state_[0] + state_[3], 23) + state_[0];
        const WordLanes shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = rotated(state_[3], 45);
        IntLanes words;
        std::memcpy(&words, &result, sizeof words);
        return words;
    }
    // Uniform on (0, 1], 31 bits.
    Lanes unit() {
        const IntLanes bits = next() & 0x7FFFFFFF;
        return (converted<Lanes>(bits) + 0.5f) * 0x1.0p-31f;
    }

  private:
    static WordLanes rotated(WordLanes word, int by) { return (word << by) | (word >> (64 - by)); }
    WordLanes state_[4];
};

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

// Two vectors of standard normal numbers by the Box-Muller transform.
inline void normal_lanes(LaneBits &random, Lanes &first, Lanes &second) {
    const Lanes radius = sqrt_lanes(-2.0f * log_lanes(random.unit()));
    // An angle in [-π/4, π/4); the two lowest bits, which it hardly feels, choose the quadrant.
    const IntLanes bits = random.next();
    const Lanes angle = converted<Lanes>(bits) * (0.785398163f * 0x1.0p-31f);
    const Lanes z = angle * angle;
    const Lanes sine = angle * ((((z * (1 / 362880.0f) - 1 / 5040.0f) * z + 1 / 120.0f) * z - 1 / 6.0f) * z + 1.0f);
    const Lanes cosine = (((z * (1 / 40320.0f) - 1 / 720.0f) * z + 1 / 24.0f) * z - 0.5f) * z + 1.0f;
    const Lanes signed_cosine = select((bits & 2) != 0, -cosine, cosine);
    const IntLanes swaps = (bits & 1) != 0;
    first = radius * select(swaps, sine, signed_cosine);
    second = radius * select(swaps, signed_cosine, sine);
}

// Sixteen Gamma laws with shapes of at least 1 (Marsaglia and Tsang 2000): d (1 + c x)³ for a standard normal x, accepted
// with probability e^{h(cx)/c²}, where h(t) = (log(1+t) - t + t²/2 - t³/3)/3.
class GammaLanes {
  public:
    void set(int lane, double shape) {
        const double d = shape - 1 / 3.0;
        d_[lane] = static_cast<float>(d);
        c_[lane] = static_cast<float>(1 / std::sqrt(9 * d));
        twelfth_[lane] = c_[lane] * c_[lane] / 12;
    }

    // From normal numbers and uniform ones in {0, ..., 65535}. The bounds h(t) ≥ -t⁴/12 for t ≥ 0 and
    // h(t) ≥ -t⁴/12/(1+t) for t < 0 decide nearly all lanes (all but a share of 1/(36 d)) at once; lanes that they leave
    // open are set in `open`.
    Lanes draw(Lanes normal, IntLanes uniform, IntLanes &open) const {
        const Lanes base = 1.0f + c_ * normal;
        const Lanes square = normal * normal;
        const Lanes low = select(base < 1.0f, base, splat(1.0f));
        const Lanes bound = (low - square * square * twelfth_) * 65536.0f;
        open = (converted<Lanes>(uniform) + 1.01f) * low > bound;
        return d_ * (base * base * base);
    }

    // Settles a lane left open: the exact test with further bits of the same uniform number, and new ones if it fails.
    float settle(int lane, float normal, int32_t uniform, RandomBits &random) const {
        const double c = c_[lane];
        double x = normal, u = (uniform + random.unit()) * 0x1.0p-16;
        while (true) {
            const double t = c * x;
            if (t > -1 && std::log(u) < (std::log1p(t) - t + t * t / 2 - t * t * t / 3) / (3 * c * c))
                return static_cast<float>(d_[lane] * (1 + t) * (1 + t) * (1 + t));
            x = Normals(random).next();
            u = random.unit();
        }
    }

  private:
    Lanes d_{}, c_{}, twelfth_{};
};

inline bool any_lane(IntLanes mask) {
    WordLanes words;
    std::memcpy(&words, &mask, sizeof words);
    uint64_t all = 0;
    for (int lane = 0; lane < 8; ++lane) all |= words[lane];
    return all != 0;
}

// Independent Gamma numbers of four vectors of laws.
struct FourGammas {
    GammaLanes law[4];

    void draw(LaneBits &lanes, RandomBits &random, Lanes (&value)[4]) const {
        Lanes normal[4];
        normal_lanes(lanes, normal[0], normal[1]);
        normal_lanes(lanes, normal[2], normal[3]);
        const IntLanes words[2] = {lanes.next(), lanes.next()};
        IntLanes uniform[4], open[4];
        for (int j = 0; j < 4; ++j) {
            uniform[j] = (j % 2 ? words[j / 2] >> 16 : words[j / 2]) & 0xFFFF;
            value[j] = law[j].draw(normal[j], uniform[j], open[j]);
        }
        if (!any_lane(open[0] | open[1] | open[2] | open[3])) return;
        for (int j = 0; j < 4; ++j) {
            if (!any_lane(open[j])) continue;
            for (int lane = 0; lane < kLanes; ++lane)
                if (open[j][lane]) value[j][lane] = law[j].settle(lane, normal[j][lane], uniform[j][lane], random);
        }
    }
};

}  // namespace bmpaudit
