#include "estimate/beta_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/log_space.hpp"

namespace bmpaudit {

namespace {

// A Beta distribution of a rate u, density u^{p-1} (1-u)^{q-1} / B(p, q) with p, q ≥ 1.
class BetaLaw {
  public:
    BetaLaw(double p, double q);

    // The law of 1 - u.
    BetaLaw flipped() const { return BetaLaw(q_, p_); }
    double standard_deviation() const;
    // From the mode, by what neither factor cancels: right to many digits however large p and q are.
    double log_density(const RatePair &u) const;
    // Logarithms of Pr(U < u) and Pr(U > u), to full relative accuracy in both tails.
    void log_tails(const RatePair &u, double &lower, double &upper) const;
    // log Pr(low < U < high), where width = high - low may be known to more digits than the two.
    double log_between(const RatePair &low, const RatePair &high, double width) const;

  private:
    // log Pr(U < u) for u at most about the mean.
    double log_lower_tail(const RatePair &u) const;
    double fraction(const RatePair &u) const;
    double outward_sum(const RatePair &u) const;

    double p_, q_;
    RatePair mode_;
    double log_highest_;  // log-density at the mode
};

constexpr double kLogRootTwoPi = 0.9189385332046728;
constexpr double kLarge = 20000;  // p + q beyond which the continued fraction takes longer than a quadrature
constexpr int kMostTerms = 10000;

// What Stirling's formula for log k! leaves out.
double stirling_rest(double k) {
    if (k < 10) return std::lgamma(k + 1) - (k + 0.5) * std::log(k) + k - kLogRootTwoPi;
    const double z = 1 / (k * k);
    return (1 / 12.0 + z * (-1 / 360.0 + z * (1 / 1260.0 + z * (-1 / 1680.0 + z * (1 / 1188.0 - z * (691 / 360360.0)))))) / k;
}

// log(1 + t) - t.
double log1p_minus(double t) {
    if (!(std::abs(t) < 0.3)) return std::log1p(t) - t;
    const double s = t / (2 + t), square = s * s;  // log(1 + t) = 2 artanh s
    double series = 1 / 23.0;
    for (int odd = 21; odd >= 3; odd -= 2) series = series * square + 1.0 / odd;
    return s * (2 * square * series - t);
}

// log(u/m) - (u - m)/m, where the difference may be known to more digits than the two.
double log_ratio_minus(double u, double m, double difference) {
    const double t = difference / m;
    return std::abs(t) < 0.3 ? log1p_minus(t) : std::log(u / m) - t;
}

double difference_of(const RatePair &x, const RatePair &y) { return x.u < 0.5 ? x.u - y.u : y.rest - x.rest; }

BetaLaw::BetaLaw(double p, double q) : p_(p), q_(q), mode_{0.5, 0.5}, log_highest_(0) {
    const double rising = p - 1, falling = q - 1, total = rising + falling;
    if (!(total > 0)) return;
    mode_ = {rising / total, falling / total};
    log_highest_ = std::log1p(total);
    if (rising > 0 && falling > 0)
        log_highest_ += stirling_rest(total) - stirling_rest(rising) - stirling_rest(falling) - kLogRootTwoPi +
                        0.5 * (std::log1p(rising / falling) - std::log(rising));
}

double BetaLaw::standard_deviation() const { return std::sqrt(p_ * q_ / (p_ + q_ + 1)) / (p_ + q_); }

double BetaLaw::log_density(const RatePair &u) const {
    const double rising = p_ - 1, falling = q_ - 1;
    if (rising == 0 && falling == 0) return 0;
    if (rising == 0) return log_highest_ + falling * (u.u < 0.5 ? std::log1p(-u.u) : std::log(u.rest));
    if (falling == 0) return log_highest_ + rising * (u.rest < 0.5 ? std::log1p(-u.rest) : std::log(u.u));
    const double difference = difference_of(u, mode_);
    return log_highest_ + rising * log_ratio_minus(u.u, mode_.u, difference) +
           falling * log_ratio_minus(u.rest, mode_.rest, -difference);
}

// The continued fraction of the incomplete beta function (Lentz's method), which converges fast below the mean.
double BetaLaw::fraction(const RatePair &u) const {
    constexpr double tiny = 1e-300;
    const auto away_from_zero = [](double x) { return std::abs(x) < tiny ? tiny : x; };
    double c = 1, d = 1 / away_from_zero(1 - (p_ + q_) * u.u / (p_ + 1)), result = d;
    const auto multiply = [&](double term) {
        d = 1 / away_from_zero(1 + term * d);
        c = away_from_zero(1 + term / c);
        result *= d * c;
    };
    for (int m = 1; m < kMostTerms; ++m) {
        multiply(m * (q_ - m) * u.u / ((p_ + 2 * m - 1) * (p_ + 2 * m)));
        multiply(-(p_ + m) * (p_ + q_ + m) * u.u / ((p_ + 2 * m) * (p_ + 2 * m + 1)));
        if (std::abs(d * c - 1) < 1e-15) break;
    }
    return result;
}

// ∫ f(t)/f(u) dt below u, down to where the density f has become negligible.
double BetaLaw::outward_sum(const RatePair &u) const {
    constexpr double depth = 36, deepest = 60;
    const double rising = p_ - 1, falling = q_ - 1;
    // In units of u, which may be very small.
    const double odds = u.u / u.rest, slope = -(rising + falling) * difference_of(u, mode_) / u.rest;
    const double bend = rising + falling * odds * odds;
    const auto log_ratio = [&](double s) {
        return rising * log1p_minus(-s) + falling * log1p_minus(s * odds) - slope * s;
    };
    double length = std::min(1.0, 2 * depth / (slope + std::sqrt(slope * slope + 2 * depth * bend)));
    for (int round = 0; round < 60 && length < 1 && log_ratio(length) > -depth; ++round) length = std::min(1.0, 1.5 * length);
    for (int round = 0; round < 200 && log_ratio(length) < -deepest; ++round) length *= 0.8;
    static const GaussLegendre<24> rule;
    const double ends[] = {0, length / 3, length};
    double sum = 0;
    for (int panel = 0; panel < 2; ++panel) {
        const double half = 0.5 * (ends[panel + 1] - ends[panel]), middle = ends[panel] + half;
        for (int i = 0; i < 24; ++i) sum += half * rule.weight[i] * std::exp(log_ratio(middle + half * rule.node[i]));
    }
    return u.u * sum;
}

double BetaLaw::log_lower_tail(const RatePair &u) const {
    const double factor = std::log(p_ + q_ > kLarge ? outward_sum(u) : u.u * u.rest / p_ * fraction(u));
    return std::min(0.0, log_density(u) + factor);
}

void BetaLaw::log_tails(const RatePair &u, double &lower, double &upper) const {
    if (u.u <= 0) {
        lower = -kInfinity;
        upper = 0;
    } else if (u.rest <= 0) {
        lower = 0;
        upper = -kInfinity;
    } else if (u.u * (q_ + 1) < u.rest * (p_ + 1)) {
        lower = log_lower_tail(u);
        upper = log1mexp(lower);
    } else {
        upper = flipped().log_lower_tail(u.flipped());
        lower = log1mexp(upper);
    }
}

double BetaLaw::log_between(const RatePair &low, const RatePair &high, double width) const {
    if (!(width > 0)) return -kInfinity;
    const RatePair middle{0.5 * (low.u + high.u), 0.5 * (low.rest + high.rest)};
    const double half = 0.5 * width, share = half / middle.u, share_of_rest = half / middle.rest;
    const double rise = -(p_ + q_ - 2) * difference_of(middle, mode_) / middle.rest * share;
    const double bend = (p_ - 1) * share * share + (q_ - 1) * share_of_rest * share_of_rest;
    if (std::abs(rise) < 1 && bend < 0.5) {
        // A strip so thin that the two tails would cancel: the density hardly varies on it.
        static const GaussLegendre<12> rule;
        const double at_middle = log_density(middle);
        double sum = 0;
        for (int i = 0; i < 12; ++i) {
            const double step = half * rule.node[i];
            sum += rule.weight[i] * std::exp(log_density({middle.u + step, middle.rest - step}) - at_middle);
        }
        return at_middle + std::log(half * sum);
    }
    double lower_low, upper_low, lower_high, upper_high;
    log_tails(low, lower_low, upper_low);
    log_tails(high, lower_high, upper_high);
    // From the tail in which both are small, so that nothing cancels.
    return lower_high < upper_low ? log_difference(lower_high, lower_low) : log_difference(upper_low, upper_high);
}

// a and b of a region; where α and x = 1 - β change places they become 1/b and 1/a.
struct Slopes {
    double log_a, log_b;
    double a, b, above_one, below_one;  // a - 1 and 1 - b

    Slopes(double log_a, double log_b)
        : log_a(log_a), log_b(log_b), a(std::exp(log_a)), b(std::exp(log_b)), above_one(std::expm1(log_a)),
          below_one(-std::expm1(log_b)) {}

    // Where the region's lower border, max(b x, 1 - a(1-x)), bends.
    RatePair lower_kink() const {
        if (a == kInfinity) return kOne;
        return {above_one / (above_one + below_one), below_one / (above_one + below_one)};
    }
    // upper(x) - lower(x), in which the two do not cancel.
    double width(const RatePair &x) const {
        const RatePair kink = lower_kink();
        if (x.u < kink.u) return x.u < kink.rest ? (above_one + below_one) * x.u : below_one;
        return x.u < kink.rest ? above_one : (above_one + below_one) * x.rest;
    }
    RatePair lower(const RatePair &x) const {
        const RatePair first{b * x.u, 1 - b * x.u};
        if (a == kInfinity) return first;
        const double distance = std::min(1.0, a * x.rest);
        return later(first, {1 - distance, distance});
    }
    RatePair upper(const RatePair &x) const { return lower(x.flipped()).flipped(); }
};

// What lies between the lower borders of two regions, of which the inner has the same logarithms times s.
struct Band {
    Slopes outer, inner;
    double above, below;  // a - a^s and b^s - b

    Band(double log_a, double log_b, double strength)
        : outer(log_a, log_b), inner(strength * log_a, strength * log_b),
          above(inner.a * std::expm1((1 - strength) * log_a)), below(-inner.b * std::expm1((1 - strength) * log_b)) {}

    // The distance of the borders, in which they do not cancel: straight lines between the two kinks.
    double width(const RatePair &x) const {
        const RatePair one = outer.lower_kink(), other = inner.lower_kink();
        const RatePair &first = earlier(one, other), &second = later(one, other);
        if (!before(first, x)) return below * x.u;
        if (!before(x, second)) return above * x.rest;
        const double from = below * first.u, to = a_is_infinite() ? from : above * second.rest;
        return from + (to - from) * (difference_of(x, first) / difference_of(second, first));
    }
    bool a_is_infinite() const { return above == kInfinity; }
};

// log of the integral over a rate, in pieces between 0, two bends, the middle and 1. Each runs over the logarithm of the
// distance from the nearer end, near which everything may lie: unimodal as the function itself, which is log-concave.
template <typename LogFunction>
double log_integral_between(LogFunction log_h, const RatePair &bend, const RatePair &other_bend) {
    constexpr double lowest = -690;  // nothing is smaller than e to this power
    std::array<RatePair, 5> ends{kZero, earlier(bend, other_bend), later(bend, other_bend), {0.5, 0.5}, kOne};
    std::sort(ends.begin(), ends.end(), before);
    double sum = -kInfinity;
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
        const bool is_low = ends[i + 1].u <= 0.5;
        const double begin = is_low ? ends[i].u : ends[i + 1].rest, end = is_low ? ends[i + 1].u : ends[i].rest;
        const auto of_logarithm = [&](double t) {
            const double x = std::exp(t);
            return log_h(is_low ? RatePair{x, 1 - x} : RatePair{1 - x, x}) + t;
        };
        sum = log_sum(sum, log_integral(of_logarithm, std::max(lowest, std::log(begin)), std::log(end), sum));
    }
    return sum;
}

double log_in_region(const BetaLaw &u, const BetaLaw &v, const Slopes &region) {
    const RatePair kink = region.lower_kink();
    return log_integral_between(
        [&](const RatePair &x) {
            return v.log_density(x) + u.log_between(region.lower(x), region.upper(x), region.width(x));
        },
        kink, kink.flipped());
}

double log_in_band(const BetaLaw &u, const BetaLaw &v, const Band &band) {
    return log_integral_between(
        [&](const RatePair &x) {
            return v.log_density(x) + u.log_between(band.outer.lower(x), band.inner.lower(x), band.width(x));
        },
        band.outer.lower_kink(), band.inner.lower_kink());
}

// The laws of α and x = 1 - β: along the narrower, on whose scale the other's distribution is smooth.
struct ErrorRateLaws {
    bool is_alpha_narrower = false;
    BetaLaw across, along;

    explicit ErrorRateLaws(const NodeCounts &counts)
        : across(counts.false_positives + 1, counts.num_out - counts.false_positives + 1),
          along(counts.num_in - counts.false_negatives + 1, counts.false_negatives + 1) {
        if (across.standard_deviation() < along.standard_deviation()) {
            is_alpha_narrower = true;
            std::swap(across, along);
        }
    }
};

}  // namespace

double log_inside(const NodeCounts &counts, double log_a, double log_b) {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    const ErrorRateLaws laws(counts);
    const Slopes region = laws.is_alpha_narrower ? Slopes(-log_b, -log_a) : Slopes(log_a, log_b);
    return std::min(0.0, log_in_region(laws.across, laws.along, region));
}

double log_inside_ring(const NodeCounts &counts, double log_a, double log_b, double strength) {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    const ErrorRateLaws laws(counts);
    const Band band = laws.is_alpha_narrower ? Band(-log_b, -log_a, strength) : Band(log_a, log_b, strength);
    // Below, and, seen from the other corner, above.
    return log_sum(log_in_band(laws.across, laws.along, band), log_in_band(laws.across.flipped(), laws.along.flipped(), band));
}

double log_region_area(double log_a, double log_b) {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    return log1mexp(-log_a) + log1mexp(log_b) - log1mexp(log_b - log_a);
}

double log_ring_area(double log_a, double log_b, double strength) {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    // With P = a - 1 and Q = 1 - b, 1/|R| = 1/P + 1/Q: both differences of reciprocals are positive.
    const auto log_reciprocal_difference = [&](double x) {  // of 1/(e^{sx} - 1) and 1/(e^x - 1)
        return -strength * x + log1mexp(-(1 - strength) * x) - log1mexp(-strength * x) - log1mexp(-x);
    };
    // 1/(1 - e^{-x}) is 1 + 1/(e^x - 1): the same difference.
    const double of_left = log_a == kInfinity ? -kInfinity : log_reciprocal_difference(log_a);
    const double of_right = log_b == -kInfinity ? -kInfinity : log_reciprocal_difference(-log_b);
    return log_sum(of_left, of_right) + log_region_area(log_a, log_b) +
           log_region_area(strength * log_a, strength * log_b);
}

}  // namespace bmpaudit
