#include "estimate/beta_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/lanes.hpp"
#include "core/log_space.hpp"

namespace bmpaudit {

// The logarithm of a Beta density, by powers of the rate and its complement.
struct BetaPowers {
    double rising, falling, log_scale;

    Doubles log_density(const RatePairs &u) const {
        return rising * log_doubles(u.u) + falling * log_doubles(u.rest) + log_scale;
    }
};

// The probability that two rates lie between lines which they are far from, to many digits: eight points at a time.

namespace {

// Where V runs from `begin` to `end`, U lies between two lines; the distance between them, which would cancel if taken from
// the lines, is known at both ends.
struct Strip {
    RatePair begin, end;
    Line lower, upper;
    double gap_at_begin, gap_at_end;
};

// The continued fraction of the lower tail of a Beta law: p Pr(U < u)/(u (1-u) f(u)), for u up to about the mean.
class TailFraction {
  public:
    TailFraction(double p, double q) : p_(p), q_(q) { term_[0] = -(p + q) / (p + 1); }

    double p() const { return p_; }
    // NaN in lanes that are wanted and take too many terms.
    Doubles operator()(const Doubles &x, const DoubleMask &wanted) {
        Doubles a = Doubles{} + 1.0, b = a, next_a = a, next_b = term_[0] * x + 1.0;
        for (int n = 1; n + kBlock <= kMostTerms; n += kBlock) {
            while (num_known_ < n + kBlock) add_two();
            for (int k = n; k < n + kBlock; k += 2) {
                const Doubles first = term_[k] * x, second = term_[k + 1] * x;
                a = next_a + first * a;
                b = next_b + first * b;
                next_a = a + second * next_a;
                next_b = b + second * next_b;
            }
            const Doubles one = next_a * b, other = a * next_b, difference = one - other;
            const auto differ = (difference > kAgreement * one) | (difference < -kAgreement * one);
            if (!any_double(differ & wanted)) return next_a / next_b;
        }
        return Doubles{} + std::numeric_limits<double>::quiet_NaN();
    }

  private:
    static constexpr int kBlock = 8, kMostTerms = 401;  // with more, a and b could leave the range of doubles
    static constexpr double kAgreement = 1e-14;

    void add_two() {
        const double m = 0.5 * (num_known_ + 1);
        term_[num_known_] = m * (q_ - m) / ((p_ + 2 * m - 1) * (p_ + 2 * m));
        term_[num_known_ + 1] = -(p_ + m) * (p_ + q_ + m) / ((p_ + 2 * m) * (p_ + 2 * m + 1));
        num_known_ += 2;
    }

    double p_, q_;
    int num_known_ = 1;
    std::array<double, kMostTerms> term_;
};

// Two independent rates with Beta laws, of moderate numbers of trials.
class RareRates {
  public:
    RareRates(const BetaPowers &across, const BetaPowers &along)
        : across_(across), along_(along), below_(across.rising + 1, across.falling + 1),
          above_(across.falling + 1, across.rising + 1) {}

    // log of the probability of some strips, U across and V along them; NaN if it is not sure.
    double log_probability(const std::array<Strip, 3> &strips) {
        std::array<Peak, 3> peaks;
        for (size_t i = 0; i < strips.size(); ++i) {
            peaks[i] = find_peak(strips[i]);
            if (std::isnan(peaks[i].height)) return peaks[i].height;
        }
        std::sort(peaks.begin(), peaks.end(), [](const Peak &x, const Peak &y) { return x.height > y.height; });
        double sum = -kInfinity;
        for (const Peak &peak : peaks)
            if (peak.height > -kInfinity) sum = log_sum_with(sum, peak);
        return sum;
    }

  private:
    static constexpr double kNegligible = 34;  // nats below the peak: about 1e-15 of it
    static constexpr double kSmallest = 1e-300;
    static constexpr double kNear = 3;  // nats between neighbours of a scan that has come near the peak
    static constexpr int kMostRounds = 60, kMostLadders = 4, kMostSplits = 40;
    static constexpr double kAgreement = 1e-9;  // of 24 and 32 points; the latter err by about its power 1.8

    static constexpr double kCounts = 26, kSamePower = 0.1;  // nats

    // The highest point of a strip, by V's distance from 0 or 1, and how far from it its neighbours are not much lower.
    struct Peak {
        const Strip *strip;
        double at, height, step;
        bool is_low;
    };

    double log_sum_with(double known, const Peak &peak) {
        set_strip(*peak.strip, peak.is_low);
        if (peak.height + std::log(end_ - begin_) < known - kNegligible) return known;
        const double from = edge(peak, begin_, -1), to = edge(peak, end_, 1);
        if ((from == 0 && !is_smooth_at(0, to)) || (to == 1 && !is_smooth_at(1, 1 - from)))
            return std::numeric_limits<double>::quiet_NaN();
        splits_left_ = kMostSplits;
        return log_sum(known, peak.height + std::log(integral(from, to, peak.height, 0)));
    }

    void set_strip(const Strip &strip, bool is_low) {
        is_low_ = is_low;
        lower_ = strip.lower;
        upper_ = strip.upper;
        const RatePair &first = is_low ? strip.begin : strip.end, &last = is_low ? strip.end : strip.begin;
        begin_ = is_low ? first.u : first.rest;
        end_ = is_low ? last.u : last.rest;
        gap_at_begin_ = is_low ? strip.gap_at_begin : strip.gap_at_end;
        gap_slope_ = ((is_low ? strip.gap_at_end : strip.gap_at_begin) - gap_at_begin_) / (end_ - begin_);
    }

    static RatePairs on(const Line &line, const RatePairs &v) {
        const Doubles distance = line.distance(v), near = max_doubles(distance, Doubles{} + kSmallest);
        const Doubles far = max_doubles(1.0 - distance, Doubles{} + kSmallest);
        return line.from_top ? RatePairs{far, near} : RatePairs{near, far};
    }

    // log of the density of V times the probability of U between the lines, by V's distance from 0 or 1.
    Doubles log_height(const Doubles &t) {
        const Doubles own = max_doubles(t, Doubles{} + kSmallest), other = max_doubles(1.0 - t, Doubles{} + kSmallest);
        const RatePairs v = is_low_ ? RatePairs{own, other} : RatePairs{other, own};
        const Doubles log_v = along_.log_density(v);
        const RatePairs low = on(lower_, v), high = on(upper_, v);
        const Doubles half = 0.5 * (gap_slope_ * (t - begin_) + gap_at_begin_);
        const RatePairs middle{0.5 * (low.u + high.u), 0.5 * (low.rest + high.rest)};
        const Doubles inverse = 1.0 / middle.u, inverse_rest = 1.0 / middle.rest;
        const Doubles rise = half * (across_.rising * inverse - across_.falling * inverse_rest);
        const Doubles bend = half * half * (across_.rising * inverse * inverse + across_.falling * inverse_rest * inverse_rest);
        const DoubleMask is_thin = (rise < 1.0) & (rise > -1.0) & (bend < 0.5);
        if (!any_double(~is_thin)) return log_v + log_thin(middle, half);
        const Doubles between = log_between(log_v, low, high, ~is_thin);
        return any_double(is_thin) ? select(is_thin, log_v + log_thin(middle, half), between) : between;
    }

    // A strip so thin that the two tails would cancel: the density hardly varies on it.
    Doubles log_thin(const RatePairs &middle, const Doubles &half) const {
        static const GaussLegendre<8> rule;
        const Doubles at_middle = across_.log_density(middle);
        Doubles sum{};
        for (int i = 0; i < 8; ++i) {
            const Doubles step = rule.node[i] * half;
            const RatePairs u{max_doubles(middle.u + step, Doubles{} + kSmallest),
                              max_doubles(middle.rest - step, Doubles{} + kSmallest)};
            sum += rule.weight[i] * exp_doubles(across_.log_density(u) - at_middle);
        }
        return at_middle + log_doubles(max_doubles(half * sum, Doubles{} + kSmallest));
    }

    // From the tails in which both ends are small, so that nothing cancels.
    Doubles log_between(const Doubles &log_v, const RatePairs &low, const RatePairs &high, const DoubleMask &wanted) {
        const DoubleMask low_is_below = is_below(low), high_is_below = is_below(high);
        const DoubleMask has_middle = low_is_below & ~high_is_below;
        const Doubles at_low = log_v + across_.log_density(low), at_high = log_v + across_.log_density(high);
        Doubles highest = max_doubles(at_low, at_high);
        highest = select(has_middle & (log_v > highest), log_v, highest);
        Doubles sum = select(has_middle, exp_doubles(log_v - highest), Doubles{});
        const DoubleMask low_counts = wanted & (at_low > highest - kMoreThanNegligible);
        if (any_double(low_counts)) {
            const Doubles tail = exp_doubles(at_low - highest) * over_density(low, low_is_below, low_counts);
            sum += select(low_counts, select(low_is_below, -tail, tail), Doubles{});
        }
        const DoubleMask high_counts = wanted & (at_high > highest - kMoreThanNegligible);
        if (any_double(high_counts)) {
            const Doubles tail = exp_doubles(at_high - highest) * over_density(high, high_is_below, high_counts);
            sum += select(high_counts, select(high_is_below, tail, -tail), Doubles{});
        }
        // So put that NaN stays.
        return highest + log_doubles(select(sum < kSmallest, Doubles{} + kSmallest, sum));
    }
    static constexpr double kMoreThanNegligible = 45;

    DoubleMask is_below(const RatePairs &u) const {
        return u.u * (across_.falling + 2) < u.rest * (across_.rising + 2);
    }

    // The tail beyond u, on the side where it is small, divided by the density.
    Doubles over_density(const RatePairs &u, const DoubleMask &is_below, const DoubleMask &wanted) {
        Doubles quotient{};
        const Doubles both = u.u * u.rest;
        const DoubleMask wanted_below = is_below & wanted, wanted_above = ~is_below & wanted;
        if (any_double(wanted_below)) quotient = both * below_(u.u, wanted_below) * (1 / below_.p());
        if (!any_double(wanted_above)) return quotient;
        return select(is_below, quotient, both * above_(u.rest, wanted_above) * (1 / above_.p()));
    }

    // By zooming in on the highest of eight points: the logarithm is concave.
    Peak find_peak(const Strip &strip) {
        const bool is_low = strip.begin.u + strip.end.u < 1;
        Peak peak{&strip, 0, -kInfinity, 0, is_low};
        if (!before(strip.begin, strip.end) || !(strip.gap_at_begin + strip.gap_at_end > 0)) return peak;
        set_strip(strip, is_low);
        double left = begin_, right = end_;
        for (int round = 0; round < kMostRounds; ++round) {
            const double step = (right - left) / (kDoubles + 1);
            Doubles t;
            for (int lane = 0; lane < kDoubles; ++lane) t[lane] = left + step * (lane + 1);
            const Doubles height = log_height(t);
            int best = 0;
            for (int lane = 0; lane < kDoubles; ++lane) {
                if (std::isnan(height[lane])) return {&strip, 0, height[lane], 0, is_low};
                if (height[lane] > height[best]) best = lane;
            }
            peak = {&strip, t[best], height[best], step, is_low};
            left = peak.at - step;
            right = peak.at + step;
            const double before = best > 0 ? height[best - 1] : height[best + 1];
            const double after = best + 1 < kDoubles ? height[best + 1] : height[best - 1];
            if (std::min(before, after) > peak.height - kNear) break;
        }
        if (peak.at > 0.5) {
            peak.at = 1 - peak.at;
            peak.is_low = !is_low;
        }
        return peak;
    }

    // Where, in one direction, the height has become negligible, or the end.
    double edge(const Peak &peak, double end, double direction) {
        double inside = peak.at, step = direction * peak.step;
        for (int ladder = 0; ladder < kMostLadders; ++ladder) {
            Doubles t;
            for (int lane = 0; lane < kDoubles; ++lane, step *= 2)
                t[lane] = direction > 0 ? std::min(end, peak.at + step) : std::max(end, peak.at + step);
            const int lane = first_negligible(t, peak.height);
            if (lane < kDoubles) return closer(lane > 0 ? t[lane - 1] : inside, t[lane], peak.height);
            inside = t[kDoubles - 1];
            if (inside == end) return end;
        }
        return inside;
    }
    // The same between two points that are not far apart.
    double closer(double inside, double outside, double peak) {
        Doubles t;
        for (int lane = 0; lane < kDoubles; ++lane) t[lane] = inside + (outside - inside) / kDoubles * (lane + 1);
        return t[std::min(first_negligible(t, peak), kDoubles - 1)];
    }
    int first_negligible(const Doubles &t, double peak) {
        const Doubles height = log_height(t);
        int lane = 0;
        while (lane < kDoubles && !(height[lane] < peak - kNegligible)) ++lane;
        return lane;
    }

    // Whether the height goes to 0 or 1 like a power: a steep line could cut something off so close to the corner that no
    // rule has a point there.
    bool is_smooth_at(double corner, double length) {
        Doubles distance, t;
        double shorter = length;
        for (int lane = 0; lane < kDoubles; ++lane) {
            shorter *= 0.1;
            distance[lane] = shorter;
            t[lane] = corner == 0 ? shorter : 1 - shorter;
        }
        const Doubles height = log_height(t);
        const double highest = *std::max_element(reinterpret_cast<const double *>(&height), reinterpret_cast<const double *>(&height) + kDoubles);
        for (int lane = 3; lane + 1 < kDoubles; ++lane) {
            const double before = height[lane - 1] - height[lane], after = height[lane] - height[lane + 1];
            const bool counts = height[lane] + std::log(distance[lane] / length) > highest - kCounts;
            if (counts && !(std::abs(before - after) < kSamePower)) return false;
        }
        return true;
    }

    template <int n> double sum(double begin, double end, double peak) {
        static const GaussLegendre<n> rule;
        const double middle = 0.5 * (begin + end), half = 0.5 * (end - begin);
        Doubles total{};
        for (int i = 0; i < n; i += kDoubles) {
            Doubles node, weight;
            std::memcpy(&node, &rule.node[i], sizeof(node));
            std::memcpy(&weight, &rule.weight[i], sizeof(weight));
            total += weight * exp_doubles(log_height(half * node + middle) - peak);
        }
        double result = 0;
        for (int lane = 0; lane < kDoubles; ++lane) result += total[lane];
        return half * result;
    }

    // `whole` is what the panels before this one came to.
    double integral(double begin, double end, double peak, double whole) {
        const double fine = sum<32>(begin, end, peak), coarse = sum<24>(begin, end, peak);
        whole = std::max(whole, fine);
        if (!(std::abs(fine - coarse) > kAgreement * whole)) return fine;
        if (splits_left_-- == 0) return std::numeric_limits<double>::quiet_NaN();
        const double middle = 0.5 * (begin + end), first = integral(begin, middle, peak, whole);
        return first + integral(middle, end, peak, whole);
    }

    BetaPowers across_, along_;
    TailFraction below_, above_;  // of U
    bool is_low_ = true;
    Line lower_{}, upper_{};
    double begin_ = 0, end_ = 0, gap_at_begin_ = 0, gap_slope_ = 0;
    int splits_left_ = 0;
};

// Laws far into the tails.

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

}  // namespace

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

BetaPowers BetaLaw::powers() const {
    const auto at_mode = [](double power, double rate) { return power > 0 ? power * std::log(rate) : 0; };
    return {p_ - 1, q_ - 1, log_highest_ - at_mode(p_ - 1, mode_.u) - at_mode(q_ - 1, mode_.rest)};
}

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

namespace {

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

// What a region lets through where x runs from 0 to its first bend, on to the second and on to 1.
std::array<Strip, 3> strips_of(const Slopes &region) {
    const RatePair kink = region.lower_kink(), first = earlier(kink, kink.flipped()), second = later(kink, kink.flipped());
    const Line low{region.b, false}, low_from_top{region.a, true}, high{region.a, false}, high_from_top{region.b, true};
    const bool is_low_first = before(kink, kink.flipped());  // of the two borders, which bends first
    const double wedge = region.above_one + region.below_one, between = is_low_first ? region.above_one : region.below_one;
    return {{{kZero, first, low, high, 0, wedge * first.u},
             {first, second, is_low_first ? low_from_top : low, is_low_first ? high : high_from_top, between, between},
             {second, kOne, low_from_top, high_from_top, wedge * second.rest, 0}}};
}

std::array<Strip, 3> strips_of(const Band &band) {
    const RatePair outer = band.outer.lower_kink(), inner = band.inner.lower_kink();
    const RatePair &first = earlier(outer, inner), &second = later(outer, inner);
    const Line low{band.outer.b, false}, low_from_top{band.outer.a, true};
    const Line high{band.inner.b, false}, high_from_top{band.inner.a, true};
    const bool is_outer_first = before(outer, inner);
    const double from = band.below * first.u, to = band.above * second.rest;
    return {{{kZero, first, low, high, 0, from},
             {first, second, is_outer_first ? low_from_top : low, is_outer_first ? high : high_from_top, from, to},
             {second, kOne, low_from_top, high_from_top, to, 0}}};
}

// log of the probability of some strips, fast; NaN if that is not sure.
double log_in_strips(const BetaLaw &u, const BetaLaw &v, const std::array<Strip, 3> &strips) {
    if (std::max(u.num_trials(), v.num_trials()) > kLarge) return std::numeric_limits<double>::quiet_NaN();
    return RareRates(u.powers(), v.powers()).log_probability(strips);
}

double log_in_region(const BetaLaw &u, const BetaLaw &v, const Slopes &region) {
    const double fast = log_in_strips(u, v, strips_of(region));
    if (!std::isnan(fast)) return fast;
    const RatePair kink = region.lower_kink();
    return log_integral_between(
        [&](const RatePair &x) {
            return v.log_density(x) + u.log_between(region.lower(x), region.upper(x), region.width(x));
        },
        kink, kink.flipped());
}

double log_in_band(const BetaLaw &u, const BetaLaw &v, const Band &band) {
    const double fast = log_in_strips(u, v, strips_of(band));
    if (!std::isnan(fast)) return fast;
    return log_integral_between(
        [&](const RatePair &x) {
            return v.log_density(x) + u.log_between(band.outer.lower(x), band.inner.lower(x), band.width(x));
        },
        band.outer.lower_kink(), band.inner.lower_kink());
}

}  // namespace

ErrorRateLaw::ErrorRateLaw(const NodeCounts &counts)
    : is_alpha_narrower_(false), across_(counts.false_positives + 1, counts.num_out - counts.false_positives + 1),
      along_(counts.num_in - counts.false_negatives + 1, counts.false_negatives + 1) {
    if (across_.standard_deviation() < along_.standard_deviation()) {
        is_alpha_narrower_ = true;
        std::swap(across_, along_);
    }
}

double ErrorRateLaw::log_inside(double log_a, double log_b) const {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    return std::min(0.0, log_in_region(across_, along_, is_alpha_narrower_ ? Slopes(-log_b, -log_a) : Slopes(log_a, log_b)));
}

double ErrorRateLaw::log_inside_ring(double log_a, double log_b, double strength) const {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    const Band band = is_alpha_narrower_ ? Band(-log_b, -log_a, strength) : Band(log_a, log_b, strength);
    // Below, and, seen from the other corner, above.
    return log_sum(log_in_band(across_, along_, band), log_in_band(across_.flipped(), along_.flipped(), band));
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
