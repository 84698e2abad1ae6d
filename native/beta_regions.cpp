#include "beta_regions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "beta_bulk.hpp"

namespace bmpaudit {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNegligible = 32.0;  // nats below the peak: about 1e-14 of it
constexpr int kFinePoints = 24, kCoarsePoints = 12;
constexpr double kAgreement = 1e-6;  // of the two rules on a panel; the finer one errs by about its square
constexpr int kMostSplits = 30;

double log1mexp(double x) {  // log(1 - e^x) for x < 0
    return x > -0.6931471805599453 ? std::log(-std::expm1(x)) : std::log1p(-std::exp(x));
}

double log_difference(double larger, double smaller) {  // log(e^larger - e^smaller)
    if (smaller == -kInfinity) return larger;
    return larger > smaller ? larger + log1mexp(smaller - larger) : -kInfinity;
}

double log_sum(double x, double y) {
    if (x < y) std::swap(x, y);
    return y == -kInfinity ? x : x + std::log1p(std::exp(y - x));
}

// What Stirling's formula for log Γ(x) leaves out, for x ≥ 10.
double stirling_rest(double x) {
    const double z = 1 / (x * x);
    return (1 / 12.0 + z * (-1 / 360.0 + z * (1 / 1260.0 + z * (-1 / 1680.0 + z * (1 / 1188.0 - z * (691 / 360360.0)))))) / x;
}

// log B(p, q) without the cancellation of large log Γ.
double log_beta(double p, double q) {
    if (p > q) std::swap(p, q);
    const double sum = p + q;
    if (q < 10) return std::lgamma(p) + std::lgamma(q) - std::lgamma(sum);
    const double of_larger = (q - 0.5) * std::log1p(-p / sum) + stirling_rest(q) - stirling_rest(sum);
    if (p < 10) return std::lgamma(p) + of_larger - p * std::log(sum) + p;
    return 0.9189385332046728 + (p - 0.5) * std::log(p / sum) - 0.5 * std::log(sum) + of_larger + stirling_rest(p);
}

// ∫ e^{log_h - peak} over a panel, split until two rules agree to a share of `whole`.
template <typename LogFunction>
double panel_integral(LogFunction &log_h, double begin, double end, double peak, double whole, int splits_left) {
    static const GaussLegendre<kFinePoints> fine;
    static const GaussLegendre<kCoarsePoints> coarse;
    const double middle = 0.5 * (begin + end), half = 0.5 * (end - begin);
    double fine_sum = 0, coarse_sum = 0;
    for (int i = 0; i < kFinePoints; ++i)
        fine_sum += half * fine.weight[i] * std::exp(log_h(middle + half * fine.node[i]) - peak);
    for (int i = 0; i < kCoarsePoints; ++i)
        coarse_sum += half * coarse.weight[i] * std::exp(log_h(middle + half * coarse.node[i]) - peak);
    // So put that what is not a number is not split.
    if (splits_left == 0 || !(std::abs(fine_sum - coarse_sum) > kAgreement * std::max(whole, fine_sum))) return fine_sum;
    whole = std::max(whole, fine_sum);
    return panel_integral(log_h, begin, middle, peak, whole, splits_left - 1) +
           panel_integral(log_h, middle, end, peak, whole, splits_left - 1);
}

// log ∫ e^{log_h} over [low, high] for a function that rises to one peak and falls (log-concave ones do); -∞ if it is
// negligible against e^known.
template <typename LogFunction> double log_integral(LogFunction log_h, double low, double high, double known = -kInfinity) {
    if (!(low < high)) return -kInfinity;
    // The peak, by golden section: precise enough once it is small against the width of the peak.
    constexpr double golden = 0.6180339887498949;
    double left = low, right = high;
    double x1 = right - golden * (right - left), x2 = left + golden * (right - left);
    double h1 = log_h(x1), h2 = log_h(x2);
    for (int round = 0; round < 60; ++round) {
        if (h1 < h2) {
            left = x1;
            x1 = x2;
            h1 = h2;
            x2 = left + golden * (right - left);
            h2 = log_h(x2);
        } else {
            right = x2;
            x2 = x1;
            h2 = h1;
            x1 = right - golden * (right - left);
            h1 = log_h(x1);
        }
        if (std::abs(h1 - h2) < 0.1 && right - left < 0.5 * (high - low) && h1 > -kInfinity) {
            // Both points near the top, and the ends not far below it: the peak is between them.
            const double at_left = log_h(left), at_right = log_h(right);
            if (std::max(h1, h2) - std::min(at_left, at_right) < 1.0) break;
        }
    }
    const double peak_at = h1 > h2 ? x1 : x2, peak = std::max(h1, h2);
    if (!(peak + std::log(high - low) > known - kNegligible)) return -kInfinity;
    const auto edge = [&](double inside, double outside) {
        if (log_h(outside) > peak - kNegligible) return outside;
        for (int round = 0; round < 60; ++round) {
            const double middle = 0.5 * (inside + outside), value = log_h(middle);
            if (value > peak - kNegligible) inside = middle;
            else outside = middle;
            if (value <= peak - kNegligible && value > peak - kNegligible - 6) break;
        }
        return outside;
    };
    const double from = edge(peak_at, low), to = edge(peak_at, high);
    // Two panels that meet at the peak, so that a lopsided one is resolved on both sides.
    const double left_part = panel_integral(log_h, from, peak_at, peak, 0.0, kMostSplits);
    return peak + std::log(left_part + panel_integral(log_h, peak_at, to, peak, left_part, kMostSplits));
}

}  // namespace

BetaLaw::BetaLaw(double p, double q) : p(p), q(q), log_norm(log_beta(p, q)) {}

BetaLaw BetaLaw::flipped() const { return BetaLaw(q, p, log_norm); }

double BetaLaw::standard_deviation() const { return std::sqrt(p * q / (p + q + 1)) / (p + q); }

double BetaLaw::log_density(double u) const {
    const double rising = p == 1 ? 0 : (p - 1) * std::log(u), falling = q == 1 ? 0 : (q - 1) * std::log1p(-u);
    return rising + falling - log_norm;
}

void BetaLaw::log_tails(double u, double &lower, double &upper) const {
    if (u <= 0) {
        lower = -kInfinity;
        upper = 0;
        return;
    }
    if (u >= 1) {
        lower = 0;
        upper = -kInfinity;
        return;
    }
    // The continued fraction of the incomplete beta function (Lentz's method) converges fast below the mean.
    const bool is_low = u < (p + 1) / (p + q + 2);
    const double first = is_low ? p : q, second = is_low ? q : p, x = is_low ? u : 1 - u;
    double c = 1, d = 1 - (first + second) * x / (first + 1);
    constexpr double tiny = 1e-300;
    if (std::abs(d) < tiny) d = tiny;
    d = 1 / d;
    double fraction = d;
    for (int m = 1; m < 10000; ++m) {
        const double even = m * (second - m) * x / ((first + 2 * m - 1) * (first + 2 * m));
        d = 1 + even * d;
        if (std::abs(d) < tiny) d = tiny;
        c = 1 + even / c;
        if (std::abs(c) < tiny) c = tiny;
        d = 1 / d;
        fraction *= d * c;
        const double odd = -(first + m) * (first + second + m) * x / ((first + 2 * m) * (first + 2 * m + 1));
        d = 1 + odd * d;
        if (std::abs(d) < tiny) d = tiny;
        c = 1 + odd / c;
        if (std::abs(c) < tiny) c = tiny;
        d = 1 / d;
        const double change = d * c;
        fraction *= change;
        if (std::abs(change - 1) < 1e-15) break;
    }
    const double log_x = is_low ? std::log(u) : std::log1p(-u), log_rest = is_low ? std::log1p(-u) : std::log(u);
    const double tail = std::min(0.0, first * log_x + second * log_rest - log_norm - std::log(first) + std::log(fraction));
    lower = is_low ? tail : log1mexp(tail);
    upper = is_low ? log1mexp(tail) : tail;
}

double BetaLaw::log_between(double low, double high) const {
    if (!(low < high)) return -kInfinity;
    const double middle = 0.5 * (low + high), half = 0.5 * (high - low), rest = 1 - middle;
    const double rise = ((p - 1) / middle - (q - 1) / rest) * half;
    const double bend = ((p - 1) / (middle * middle) + (q - 1) / (rest * rest)) * half * half;
    if (std::abs(rise) < 1 && bend < 0.5) {
        // A strip so thin that the two tails would cancel: the density hardly varies on it.
        static const GaussLegendre<kCoarsePoints> rule;
        const double at_middle = log_density(middle);
        double sum = 0;
        for (int i = 0; i < kCoarsePoints; ++i)
            sum += rule.weight[i] * std::exp(log_density(middle + half * rule.node[i]) - at_middle);
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
    double a, b;

    static Slopes of(double log_a, double log_b) { return {std::exp(log_a), std::exp(log_b)}; }
    Slopes transposed() const { return {b == 0 ? kInfinity : 1 / b, 1 / a}; }
    // Where the region's lower border, max(b x, 1 - a(1-x)), bends.
    double lower_kink() const { return a == kInfinity ? 1.0 : (a - 1) / (a - b); }
    double lower(double x) const { return std::max({0.0, b * x, a == kInfinity ? 0.0 : 1 - a * (1 - x)}); }
    double upper(double x) const { return std::min({1.0, 1 - b * (1 - x), a == kInfinity ? 1.0 : a * x}); }
};

// log of the integral in pieces between two bends.
template <typename LogFunction> double log_integral_between(LogFunction log_h, double bend, double other_bend) {
    const double first = std::min(bend, other_bend), second = std::max(bend, other_bend);
    double sum = log_integral(log_h, first, second);
    sum = log_sum(sum, log_integral(log_h, 0.0, first, sum));
    return log_sum(sum, log_integral(log_h, second, 1.0, sum));
}

double log_in_region(const BetaLaw &u, const BetaLaw &v, const Slopes &region) {
    const double kink = region.lower_kink();
    return log_integral_between(
        [&](double x) { return v.log_density(x) + u.log_between(region.lower(x), region.upper(x)); }, kink, 1 - kink);
}

// Between the lower borders of two regions.
double log_in_band(const BetaLaw &u, const BetaLaw &v, const Slopes &outer, const Slopes &inner) {
    return log_integral_between(
        [&](double x) { return v.log_density(x) + u.log_between(outer.lower(x), inner.lower(x)); }, outer.lower_kink(),
        inner.lower_kink());
}

}  // namespace

ErrorRateLaw::ErrorRateLaw(const NodeCounts &counts)
    : alpha_(counts.false_positives + 1, counts.num_out - counts.false_positives + 1),
      detected_(counts.num_in - counts.false_negatives + 1, counts.false_negatives + 1),
      is_alpha_narrower_(alpha_.standard_deviation() < detected_.standard_deviation()) {}

double ErrorRateLaw::log_inside(double log_a, double log_b) const {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    const Slopes region = Slopes::of(log_a, log_b);
    return std::min(0.0, is_alpha_narrower_ ? log_in_region(detected_, alpha_, region.transposed())
                                            : log_in_region(alpha_, detected_, region));
}

double ErrorRateLaw::log_inside_ring(double log_a, double log_b, double strength) const {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    Slopes outer = Slopes::of(log_a, log_b), inner = Slopes::of(strength * log_a, strength * log_b);
    const BetaLaw *u = &alpha_, *v = &detected_;
    if (is_alpha_narrower_) {
        outer = outer.transposed();
        inner = inner.transposed();
        std::swap(u, v);
    }
    // Below, and, seen from the other corner, above.
    return log_sum(log_in_band(*u, *v, outer, inner), log_in_band(u->flipped(), v->flipped(), outer, inner));
}

double log_region_area(double log_a, double log_b) {
    if (!(log_a > 0 && log_b < 0)) return -kInfinity;
    return log1mexp(-log_a) + log1mexp(log_b) - log1mexp(log_b - log_a);
}

namespace {

constexpr double kSure = 1e-4;  // a probability above it has ten digits when it is 1 minus sums that are right to 1e-14
constexpr double kDoubt = 1e-10;  // far more than such a sum is off
constexpr double kNothing = 1e-15;  // of a probability next to 1
constexpr int64_t kBlock = 8;  // factors multiplied before a logarithm is taken: none is beyond e^{±80}
constexpr int64_t kMostParts = 64;
constexpr int64_t kPointsAtOnce = 64;  // between two looks at whether to stop

// log η ± ε, where an infinite ε wins over an infinite prior.
double shifted(double log_odds, double epsilon) { return std::isinf(epsilon) ? epsilon : log_odds + epsilon; }

// One side of a region: 1/a or b, and its complement; 0 where it is not imposed, 1 or more where nothing is left.
RatePair side(double minus_log) { return {std::exp(-minus_log), -std::expm1(-minus_log)}; }

// |R| and 1 - |R|.
RatePair area_of(const RatePair &a_inverse, const RatePair &b) {
    const double scale = 1 / (a_inverse.rest + a_inverse.u * b.rest);
    return {a_inverse.rest * b.rest * scale, (a_inverse.u * b.rest + b.u * a_inverse.rest) * scale};
}

double ring_area(const RatePair &outer, const RatePair &inner) {
    return inner.u < 0.5 ? outer.u - inner.u : inner.rest - outer.rest;
}

// A node's error rates where they have any probability to speak of.
class ErrorRateBulk {
  public:
    explicit ErrorRateBulk(const NodeCounts &counts)
        : alpha_(counts.false_positives + 1, counts.num_out - counts.false_positives + 1),
          detected_(counts.num_in - counts.false_negatives + 1, counts.false_negatives + 1) {}

    // Pr(below the line of b, α < b x) and Pr(above the other, 1-α < b(1-x)).
    double below_right(const RatePair &b) const { return is_imposed(b) ? below({b.u, false}, kZero, kOne) : 0; }
    double above_right(const RatePair &b) const { return is_imposed(b) ? above({b.u, true}, kZero, kOne) : 0; }
    // The same for the lines of a: 1-x < (1-α)/a and x < α/a.
    double below_left(const RatePair &a_inverse) const {
        return is_imposed(a_inverse) ? below({1 / a_inverse.u, true}, {a_inverse.rest, a_inverse.u}, kOne) : 0;
    }
    double above_left(const RatePair &a_inverse) const {
        return is_imposed(a_inverse) ? above({1 / a_inverse.u, false}, kZero, a_inverse) : 0;
    }
    // Below the region, whose lower border bends where its two lines cross, and above it.
    double below_both(const RatePair &a_inverse, const RatePair &b) const {
        if (!is_imposed(a_inverse)) return below_right(b);
        if (!is_imposed(b)) return below_left(a_inverse);
        const RatePair kink = lower_kink(a_inverse, b);
        return below({b.u, false}, kZero, kink) + below({1 / a_inverse.u, true}, kink, kOne);
    }
    double above_both(const RatePair &a_inverse, const RatePair &b) const {
        if (!is_imposed(a_inverse)) return above_right(b);
        if (!is_imposed(b)) return above_left(a_inverse);
        const RatePair lower = lower_kink(a_inverse, b), kink{lower.rest, lower.u};
        return above({1 / a_inverse.u, false}, kZero, kink) + above({b.u, true}, kink, kOne);
    }
    double outside(const RatePair &a_inverse, const RatePair &b) const {
        return below_both(a_inverse, b) + above_both(a_inverse, b);
    }
    // Bounds of the probability of lying below both lower lines, or above both upper ones: rectangles on either side of
    // the point where they cross.
    double most_below_each(const RatePair &a_inverse, const RatePair &b) const {
        const RatePair kink = lower_kink(a_inverse, b);
        const double left_of = detected_.below(kink);
        return alpha_.below(Line{b.u, false}.at(kink)) * left_of + alpha_.below(b) * (1 - left_of);
    }
    double most_above_each(const RatePair &a_inverse, const RatePair &b) const {
        const RatePair lower = lower_kink(a_inverse, b), kink{lower.rest, lower.u};
        const double left_of = detected_.below(kink);
        return (1 - alpha_.below({b.rest, b.u})) * left_of + (1 - alpha_.below(Line{b.u, true}.at(kink))) * (1 - left_of);
    }

  private:
    static bool is_imposed(const RatePair &slope) { return slope.u > 1e-300; }
    static RatePair lower_kink(const RatePair &a_inverse, const RatePair &b) {
        const double scale = 1 / (a_inverse.rest + a_inverse.u * b.rest);
        return {a_inverse.rest * scale, a_inverse.u * b.rest * scale};
    }
    double below(const Line &line, const RatePair &begin, const RatePair &end) const {
        return below_line(alpha_, detected_, line, begin, end);
    }
    double above(const Line &line, const RatePair &begin, const RatePair &end) const {
        return detected_.below(end) - detected_.below(begin) - below(line, begin, end);
    }

    BetaBulk alpha_, detected_;
};

// Nodes with the same counts and prior are one node that counts several times.
struct DistinctNode {
    NodeCounts counts;
    double log_odds, times;

    double log_a(double epsilon_left) const { return shifted(log_odds, epsilon_left); }
    double minus_log_b(double epsilon_right) const { return shifted(-log_odds, epsilon_right); }
};

std::vector<DistinctNode> distinct_nodes(const CountsTable &table) {
    struct Key {
        NodeCounts counts;
        double log_odds;
    };
    std::vector<Key> keys(table.num_nodes);
    std::vector<DistinctNode> nodes;
    std::unordered_map<std::string_view, size_t> known;
    known.reserve(table.num_nodes);
    for (int64_t k = 0; k < table.num_nodes; ++k) {
        keys[k] = {table.nodes[k], table.log_prior_odds[k]};
        const auto [at, is_new] = known.try_emplace({reinterpret_cast<const char *>(&keys[k]), sizeof(Key)}, nodes.size());
        if (is_new) nodes.push_back({keys[k].counts, keys[k].log_odds, 1});
        else ++nodes[at->second].times;
    }
    return nodes;
}

// Sums over nodes of logarithms of factors, one for each of many points.
class LogProducts {
  public:
    void reset(int64_t num_points) {
        sum_.assign(num_points, 0.0);
        product_.assign(num_points, 1.0);
        pending_ = 0;
    }
    void multiply(int64_t point, double factor, double times) {
        if (times == 1) product_[point] *= factor;
        else sum_[point] += times * std::log(factor);
    }
    double *products() { return product_.data(); }
    void add(int64_t point, double logarithm) { sum_[point] += logarithm; }
    void end_node() {
        if (++pending_ == kBlock) settle();
    }
    const std::vector<double> &settled() {
        settle();
        return sum_;
    }

  private:
    void settle() {
        if (pending_ == 0) return;
        for (size_t point = 0; point < sum_.size(); ++point) {
            if (product_[point] == 1) continue;
            sum_[point] += std::log(product_[point]);
            product_[point] = 1;
        }
        pending_ = 0;
    }

    std::vector<double> sum_, product_;
    int64_t pending_ = 0;
};

// A node whose probability is too small to be known by tables at some point, and the bound that stands for it there.
struct Doubtful {
    int32_t node;
    float log_bound;
};

// What some of the nodes add to the log-likelihood at each point.
struct PartialSums {
    std::vector<double> sum;
    std::vector<std::vector<Doubtful>> doubtful;
};

// Collects the nodes of one part.
class Collector {
  public:
    Collector(const std::vector<DistinctNode> &nodes, int64_t num_points) : nodes_(nodes), doubtful_(num_points) {
        factors_.reset(num_points);
    }
    void add(int32_t node, int64_t point, double inside, double area) {
        const double times = nodes_[node].times;
        if (inside > kSure) {
            factors_.multiply(point, inside / area, times);
        } else {
            const auto log_bound = static_cast<float>(std::log((std::max(0.0, inside) + kDoubt) / area));
            factors_.add(point, times * log_bound);
            doubtful_[point].push_back({node, log_bound});
        }
    }
    void add_impossible(int64_t point) { factors_.add(point, -kInfinity); }
    LogProducts &factors() { return factors_; }
    PartialSums finished() { return {factors_.settled(), std::move(doubtful_)}; }

  private:
    const std::vector<DistinctNode> &nodes_;
    LogProducts factors_;
    std::vector<std::vector<Doubtful>> doubtful_;
};

// log Pr(R) - log |R|, or of the ring, slowly and far into the tails.
double log_exact_factor(const DistinctNode &node, double epsilon_left, double epsilon_right, double strength) {
    const ErrorRateLaw law(node.counts);
    const double log_a = node.log_a(epsilon_left), log_b = -node.minus_log_b(epsilon_right);
    const double outer = log_region_area(log_a, log_b);
    if (strength == 0) return law.log_inside(log_a, log_b) - outer;
    return law.log_inside_ring(log_a, log_b, strength) -
           log_difference(outer, log_region_area(strength * log_a, strength * log_b));
}

double upper_bound(const std::vector<PartialSums> &parts, int64_t point) {
    double bound = 0;
    for (const PartialSums &part : parts) bound += part.sum[point];
    return bound;
}

// Puts exact values in the place of bounds, until it is plain that the sum stays below the cutoff: then -∞.
double settled_value(const std::vector<DistinctNode> &nodes, const std::vector<PartialSums> &parts, int64_t point,
                     double epsilon_left, double epsilon_right, double strength, double cutoff, Worker &worker) {
    double bound = upper_bound(parts, point);
    for (const PartialSums &part : parts)
        for (const Doubtful &doubtful : part.doubtful[point]) {
            if (!(bound >= cutoff)) return -kInfinity;
            worker.checkpoint();
            const DistinctNode &node = nodes[doubtful.node];
            bound += node.times * (log_exact_factor(node, epsilon_left, epsilon_right, strength) - doubtful.log_bound);
        }
    return bound >= cutoff ? bound : -kInfinity;
}

// Calls set(point, worker) for each point.
template <typename Set> void for_each_point(int64_t num_points, int num_threads, const Poll &poll, Set set) {
    run_tasks((num_points + kPointsAtOnce - 1) / kPointsAtOnce, num_threads, poll, [&](int64_t block, Worker &worker) {
        const int64_t end = std::min(num_points, (block + 1) * kPointsAtOnce);
        for (int64_t point = block * kPointsAtOnce; point < end; ++point) set(point, worker);
    });
}

}  // namespace

int64_t likelihood_bytes_each_point(int64_t num_nodes) {
    return std::min(kMostParts, num_nodes) * static_cast<int64_t>(3 * sizeof(double) + sizeof(std::vector<Doubtful>));
}

void log_likelihood(const CountsTable &counts, const double *epsilon_left, const double *epsilon_right, int64_t num_points,
                    const double *cutoff, double strength, int num_threads, const Poll &poll, double *result) {
    const std::vector<DistinctNode> nodes = distinct_nodes(counts);
    const int64_t num_nodes = static_cast<int64_t>(nodes.size()), num_parts = std::min(kMostParts, num_nodes);
    std::vector<PartialSums> parts(num_parts);
    const auto collect = [&](int64_t number, Worker &worker) {
        Collector collector(nodes, num_points);
        for (int64_t k = num_nodes * number / num_parts; k < num_nodes * (number + 1) / num_parts; ++k) {
            const ErrorRateBulk bulk(nodes[k].counts);
            for (int64_t point = 0; point < num_points; ++point) {
                if (point % kPointsAtOnce == 0) worker.checkpoint();
                const double log_a = nodes[k].log_a(epsilon_left[point]);
                const double minus_log_b = nodes[k].minus_log_b(epsilon_right[point]);
                if (!(log_a > 0 && minus_log_b > 0)) {
                    collector.add_impossible(point);
                    continue;
                }
                const RatePair a_inverse = side(log_a), b = side(minus_log_b);
                double inside = 1 - bulk.outside(a_inverse, b), area = area_of(a_inverse, b).u;
                if (strength > 0) {
                    const RatePair inner_a = side(strength * log_a), inner_b = side(strength * minus_log_b);
                    inside -= 1 - bulk.outside(inner_a, inner_b);
                    area = ring_area(area_of(a_inverse, b), area_of(inner_a, inner_b));
                }
                collector.add(static_cast<int32_t>(k), point, inside, area);
            }
            collector.factors().end_node();
        }
        parts[number] = collector.finished();
    };
    if (!run_tasks(num_parts, num_threads, poll, collect)) return;
    for_each_point(num_points, num_threads, poll, [&](int64_t point, Worker &worker) {
        result[point] = settled_value(nodes, parts, point, epsilon_left[point], epsilon_right[point], strength, cutoff[point],
                                      worker);
    });
}

namespace {

// Probabilities of lying outside either side of a node's region, for each value of an axis.
struct AxisTails {
    std::vector<RatePair> slope;
    std::vector<double> below, above;
    int64_t num_outside = 0;  // values up to the last that leaves any probability outside

    template <typename Below, typename Above>
    void fill(int64_t size, const std::vector<double> &minus_log, double strength, Below below_of, Above above_of) {
        slope.resize(size);
        below.assign(size, 0.0);
        above.assign(size, 0.0);
        num_outside = 0;
        for (int64_t i = 0; i < size; ++i) {
            if (!(minus_log[i] > 0)) {
                num_outside = i + 1;
                continue;
            }
            slope[i] = side(strength * minus_log[i]);
            below[i] = below_of(slope[i]);
            above[i] = above_of(slope[i]);
            if (below[i] > kNothing || above[i] > kNothing) num_outside = i + 1;
        }
    }
};

// One node on the whole grid: the two sides are integrated once for each of their values, and together only where both
// leave something outside.
class NodeGrid {
  public:
    NodeGrid(const ErrorRateBulk &bulk, const std::vector<double> &log_a, const std::vector<double> &minus_log_b,
             double strength)
        : bulk_(bulk) {
        left_.fill(
            log_a.size(), log_a, strength, [&](const RatePair &s) { return bulk.below_left(s); },
            [&](const RatePair &s) { return bulk.above_left(s); });
        right_.fill(
            minus_log_b.size(), minus_log_b, strength, [&](const RatePair &s) { return bulk.below_right(s); },
            [&](const RatePair &s) { return bulk.above_right(s); });
    }

    double outside(int64_t i, int64_t j) const {
        const RatePair &a_inverse = left_.slope[i], &b = right_.slope[j];
        const double below = std::min(left_.below[i], right_.below[j]) < kNothing ||
                                     bulk_.most_below_each(a_inverse, b) < kNothing
                                 ? left_.below[i] + right_.below[j]
                                 : bulk_.below_both(a_inverse, b);
        const double above = std::min(left_.above[i], right_.above[j]) < kNothing ||
                                     bulk_.most_above_each(a_inverse, b) < kNothing
                                 ? left_.above[i] + right_.above[j]
                                 : bulk_.above_both(a_inverse, b);
        return below + above;
    }
    double outside_left(int64_t i) const { return left_.below[i] + left_.above[i]; }
    const RatePair &a_inverse(int64_t i) const { return left_.slope[i]; }
    const RatePair &b(int64_t j) const { return right_.slope[j]; }
    // Columns from here on leave nothing outside their own side.
    int64_t num_right() const { return right_.num_outside; }

  private:
    const ErrorRateBulk &bulk_;
    AxisTails left_, right_;
};

}  // namespace

void grid_log_likelihood(const CountsTable &counts, const double *epsilon_left, int64_t num_left,
                         const double *epsilon_right, int64_t num_right, double depth, double strength, int num_threads,
                         const Poll &poll, double *result) {
    const std::vector<DistinctNode> nodes = distinct_nodes(counts);
    const int64_t num_nodes = static_cast<int64_t>(nodes.size()), num_parts = std::min(kMostParts, num_nodes);
    const int64_t size = num_left * num_right;
    std::vector<PartialSums> parts(num_parts);
    const auto collect = [&](int64_t number, Worker &worker) {
        Collector collector(nodes, size);
        std::vector<double> log_a(num_left), minus_log_b(num_right);
        for (int64_t k = num_nodes * number / num_parts; k < num_nodes * (number + 1) / num_parts; ++k) {
            const DistinctNode &node = nodes[k];
            for (int64_t i = 0; i < num_left; ++i) log_a[i] = node.log_a(epsilon_left[i]);
            for (int64_t j = 0; j < num_right; ++j) minus_log_b[j] = node.minus_log_b(epsilon_right[j]);
            const ErrorRateBulk bulk(node.counts);
            const NodeGrid outer(bulk, log_a, minus_log_b, 1.0);
            std::optional<NodeGrid> inner;
            if (strength > 0) inner.emplace(bulk, log_a, minus_log_b, strength);
            for (int64_t i = 0; i < num_left; ++i) {
                const RatePair a_inverse = outer.a_inverse(i);
                worker.checkpoint();
                const double inside_left = 1 - outer.outside_left(i);
                const bool is_plain = !inner && node.times == 1 && log_a[i] > 0 && inside_left > kSure;
                const int64_t first_plain = is_plain ? outer.num_right() : num_right;
                for (int64_t j = 0; j < first_plain; ++j) {
                    const int64_t point = i * num_right + j;
                    if (!(log_a[i] > 0 && minus_log_b[j] > 0)) {
                        collector.add_impossible(point);
                        continue;
                    }
                    double inside = 1 - outer.outside(i, j), area = area_of(a_inverse, outer.b(j)).u;
                    if (inner) {
                        inside -= 1 - inner->outside(i, j);
                        area = ring_area(area_of(a_inverse, outer.b(j)), area_of(inner->a_inverse(i), inner->b(j)));
                    }
                    collector.add(static_cast<int32_t>(k), point, inside, area);
                }
                double *products = collector.factors().products() + i * num_right;
                for (int64_t j = first_plain; j < num_right; ++j) {
                    const RatePair &b = outer.b(j);
                    products[j] *= inside_left * (a_inverse.rest + a_inverse.u * b.rest) / (a_inverse.rest * b.rest);
                }
            }
            collector.factors().end_node();
        }
        parts[number] = collector.finished();
    };
    if (!run_tasks(num_parts, num_threads, poll, collect)) return;
    const auto value = [&](int64_t point, double cutoff, Worker &worker) {
        return settled_value(nodes, parts, point, epsilon_left[point / num_right], epsilon_right[point % num_right], strength,
                             cutoff, worker);
    };
    // One high value that is known tells what is too low to matter.
    double cutoff = -kInfinity;
    if (depth < kInfinity && size > 0) {
        int64_t highest = 0;
        for (int64_t point = 1; point < size; ++point)
            if (upper_bound(parts, point) > upper_bound(parts, highest)) highest = point;
        const auto find_cutoff = [&](int64_t, Worker &worker) { cutoff = value(highest, -kInfinity, worker) - depth; };
        if (!run_tasks(1, 1, poll, find_cutoff)) return;
    }
    for_each_point(size, num_threads, poll,
                   [&](int64_t point, Worker &worker) { result[point] = value(point, cutoff, worker); });
}

}  // namespace bmpaudit
