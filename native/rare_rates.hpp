// The probability that two rates lie between lines which they are far from, to many digits: eight points at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "beta_bulk.hpp"
#include "double_lanes.hpp"
#include "gauss_legendre.hpp"
#include "log_space.hpp"

namespace bmpaudit {

// Where V runs from `begin` to `end`, U lies between two lines; the distance between them, which would cancel if taken from
// the lines, is known at both ends.
struct Strip {
    RatePair begin, end;
    Line lower, upper;
    double gap_at_begin, gap_at_end;
};

// The logarithm of a Beta density, by powers of the rate and its complement.
struct BetaPowers {
    double rising, falling, log_scale;

    Doubles log_density(const RatePairs &u) const {
        return rising * log_doubles(u.u) + falling * log_doubles(u.rest) + log_scale;
    }
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

}  // namespace bmpaudit
