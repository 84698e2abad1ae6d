#include "estimate/mhaar.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/lanes.hpp"
#include "core/log_space.hpp"
#include "core/random.hpp"
#include "core/threads.hpp"
#include "estimate/beta_law.hpp"

namespace bmpaudit {

namespace {

// Gamma random numbers, sixteen at a time.

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

// Regions R of many nodes, and points (α, β) within them, sixteen nodes at a time.

// Error rates (α, β) as the region sees them: low = min{α/(1-β), (1-α)/β} and inverse_high = 1/max of the same two, both
// in [0, 1]. (α, β) ∈ R iff low ≥ b and inverse_high ≥ 1/a.
struct PointLanes {
    Lanes low, inverse_high;
};

// The regions of all nodes at one value of the parameters, or no region if that value is outside the support.
struct Regions {
    struct Edges {
        Lanes inverse_a, b;              // of R
        Lanes inner_inverse_a, inner_b;  // of R_s
    };
    std::vector<Edges> edges;
    std::vector<double> area;  // |R|, or |R| - |R_s|
    bool is_supported = false;
};

template <bool kRing> IntLanes inside(const PointLanes &point, const Regions::Edges &edges) {
    IntLanes result = (point.low >= edges.b) & (point.inverse_high >= edges.inverse_a);
    if (kRing) result &= ~((point.low >= edges.inner_b) & (point.inverse_high >= edges.inner_inverse_a));
    return result;
}

inline double region_area(double inverse_a, double b) { return (1 - inverse_a) * (1 - b) / (1 - inverse_a * b); }
// 1 - |R|, without cancellation where R is nearly everything.
inline double region_rest(double inverse_a, double b) {
    return (inverse_a * (1 - b) + b * (1 - inverse_a)) / (1 - inverse_a * b);
}

// Bivariate-normal counts in place of binomial ones: the weights of the points (α, β) that a chain has drawn.

// With f = 1 + (n-1)τ and r = ρ √(n0 n1/(f0 f1)), the correlation of A and B, the density is
// exp{-(x²/f0 - 2 r x y/√(f0 f1) + y²/f1)/(2(1-r²))} / √(f0 f1 (1-r²)) times what θ = (τ, ρ) does not change, where
// x = (A - n0 α)/√(n0 α(1-α)) and y = (B - n1 β)/√(n1 β(1-β)).
class CorrelatedCounts {
  public:
    // Regions of all nodes, and θ, at one value of the parameters.
    struct State {
        const Regions &regions;
        double tau, rho;
    };

    CorrelatedCounts(const CountsTable &counts, int num_points, Worker &worker)
        : counts_(counts), num_points_(num_points), worker_(worker) {
        for (auto *values : {&score_out_, &score_in_, &base_, &log_weight_, &proposed_log_weight_})
            values->resize(counts.num_nodes * num_points);
    }

    // The bound of |ρ| for this τ; 0 if τ is not admissible.
    static double largest_rho(const CountsTable &counts, double tau) {
        double least = 1;
        for (int64_t k = 0; k < counts.num_nodes; ++k) {
            const auto &node = counts.nodes[k];
            const double f0 = 1 + (node.num_out - 1) * tau, f1 = 1 + (node.num_in - 1) * tau;
            if ((node.num_out > 0 && !(f0 > 0)) || (node.num_in > 0 && !(f1 > 0))) return 0;
            if (node.num_out > 0 && node.num_in > 0) least = std::min(least, f0 * f1 / (node.num_out * node.num_in));
        }
        return std::sqrt(least);
    }

    // Takes note of point i of a node: α, 1-α, β and 1-β.
    void set_point(int64_t block, int i, int64_t lane, double alpha, double passed, double beta, double detected) {
        const int64_t k = block * kLanes + lane;
        if (k >= counts_.num_nodes) return;
        const NodeCounts &node = counts_.nodes[k];
        const int64_t at = k * num_points_ + i;
        score_out_[at] = score_in_[at] = base_[at] = 0;
        if (node.num_out > 0) {
            score_out_[at] = (node.false_positives - node.num_out * alpha) / std::sqrt(node.num_out * alpha * passed);
            base_[at] -= (node.false_positives + 0.5) * std::log(alpha) +
                         (node.num_out - node.false_positives + 0.5) * std::log(passed);
        }
        if (node.num_in > 0) {
            score_in_[at] = (node.false_negatives - node.num_in * beta) / std::sqrt(node.num_in * beta * detected);
            base_[at] -= (node.false_negatives + 0.5) * std::log(beta) +
                         (node.num_in - node.false_negatives + 0.5) * std::log(detected);
        }
    }
    // Point i of sixteen nodes, by the Gamma numbers that it was made of.
    void set_points(int64_t block, int i, const Lanes *g) {
        for (int lane = 0; lane < kLanes; ++lane) {
            const double out = 1 / (static_cast<double>(g[0][lane]) + g[1][lane]);
            const double in = 1 / (static_cast<double>(g[2][lane]) + g[3][lane]);
            set_point(block, i, lane, g[0][lane] * out, g[1][lane] * out, g[2][lane] * in, g[3][lane] * in);
        }
    }

    // log Π_k (Σ_i w'_ki)/(Σ_i w_ki).
    template <bool kRing> double log_ratio(const PointLanes *points, const State &current, const State &proposed) {
        double sum = 0;
        for (int64_t k = 0; k < counts_.num_nodes; ++k) {
            checkpoint_at(k);
            sum += set_node_weights<kRing>(k, points, proposed, proposed_log_weight_.data());
            sum -= set_node_weights<kRing>(k, points, current, log_weight_.data());
        }
        return sum;
    }
    // For the state that is kept, where no ratio was needed.
    template <bool kRing> void set_weights(const PointLanes *points, const State &current) {
        for (int64_t k = 0; k < counts_.num_nodes; ++k) {
            checkpoint_at(k);
            set_node_weights<kRing>(k, points, current, log_weight_.data());
        }
    }
    void accept() { std::swap(log_weight_, proposed_log_weight_); }

    // Every node's new first point: one of all, by their weights.
    void choose(RandomBits &random, PointLanes *points) {
        for (int64_t k = 0; k < counts_.num_nodes; ++k) {
            checkpoint_at(k);
            const double *log_weight = &log_weight_[k * num_points_];
            const double largest = *std::max_element(log_weight, log_weight + num_points_);
            double sum = 0;
            for (int i = 0; i < num_points_; ++i) sum += std::exp(log_weight[i] - largest);
            double left = random.unit() * sum;
            int chosen = 0;
            for (int i = 0; i < num_points_ && left >= 0; ++i) {
                const double weight = std::exp(log_weight[i] - largest);
                if (weight > 0) chosen = i;
                left -= weight;
            }
            PointLanes *own = points + k / kLanes * num_points_;
            own[0].low[k % kLanes] = own[chosen].low[k % kLanes];
            own[0].inverse_high[k % kLanes] = own[chosen].inverse_high[k % kLanes];
            for (auto *values : {&score_out_, &score_in_, &base_})
                (*values)[k * num_points_] = (*values)[k * num_points_ + chosen];
        }
    }

  private:
    void checkpoint_at(int64_t node) const {
        if (node * num_points_ % 1024 < num_points_) worker_.checkpoint();
    }

    // A node's log-weights in some state, -∞ outside the region; returns the logarithm of their sum.
    template <bool kRing>
    double set_node_weights(int64_t k, const PointLanes *points, const State &state, double *log_weight) const {
        const NodeCounts &node = counts_.nodes[k];
        const double f0 = node.num_out > 0 ? 1 + (node.num_out - 1) * state.tau : 1;
        const double f1 = node.num_in > 0 ? 1 + (node.num_in - 1) * state.tau : 1;
        const double r = state.rho * std::sqrt(node.num_out * node.num_in / (f0 * f1)), rest = 1 - r * r;
        const double xx = 1 / (f0 * rest), yy = 1 / (f1 * rest), xy = r / (std::sqrt(f0 * f1) * rest);
        const PointLanes *own = points + k / kLanes * num_points_;
        const auto &edges = state.regions.edges[k / kLanes];
        const int lane = k % kLanes;
        double largest = -kInfinity;
        for (int i = 0; i < num_points_; ++i) {
            const float low = own[i].low[lane], inverse_high = own[i].inverse_high[lane];
            bool is_inside = low >= edges.b[lane] && inverse_high >= edges.inverse_a[lane];
            if (kRing) is_inside &= !(low >= edges.inner_b[lane] && inverse_high >= edges.inner_inverse_a[lane]);
            const int64_t at = k * num_points_ + i;
            const double x = score_out_[at], y = score_in_[at];
            log_weight[at] = is_inside ? base_[at] - (x * x * xx - 2 * x * y * xy + y * y * yy) / 2 : -kInfinity;
            largest = std::max(largest, log_weight[at]);
        }
        if (largest == -kInfinity) return -kInfinity;
        double sum = 0;
        for (int i = 0; i < num_points_; ++i) sum += std::exp(log_weight[k * num_points_ + i] - largest);
        return largest + std::log(sum) - std::log(f0 * f1 * rest) / 2 - std::log(state.regions.area[k]);
    }

    const CountsTable counts_;
    const int num_points_;
    Worker &worker_;
    std::vector<double> score_out_, score_in_, base_, log_weight_, proposed_log_weight_;  // num_points_ for each node
};

constexpr double kTargetAcceptance = 0.23;
constexpr int kMostParameters = 5;
constexpr int64_t kPointsBetweenCheckpoints = 1024;

class Chain {
  public:
    Chain(const CountsTable &counts, const MhaarSettings &settings, uint64_t index, Worker &worker)
        : counts_(counts), settings_(settings), worker_(worker), random_(settings.seed, settings.purpose, index), normals_(random_),
          lanes_(random_), has_ring_(settings.estimates_strength || settings.strength > 0),
          num_blocks_((counts.num_nodes + kLanes - 1) / kLanes),
          blocks_between_checkpoints_(std::max<int64_t>(1, kPointsBetweenCheckpoints / settings.num_auxiliary)),
          laws_(num_blocks_), points_(num_blocks_ * settings.num_auxiliary), odds_(counts.num_nodes), inverse_odds_(counts.num_nodes),
          count_(num_blocks_), proposed_count_(num_blocks_) {
        for (int64_t k = 0; k < num_blocks_ * kLanes; ++k) {
            const NodeCounts node = k < counts.num_nodes ? counts.nodes[k] : NodeCounts{100, 100, 50, 50};
            auto &law = laws_[k / kLanes].law;
            law[0].set(k % kLanes, node.false_positives + 1);
            law[1].set(k % kLanes, node.num_out - node.false_positives + 1);
            law[2].set(k % kLanes, node.false_negatives + 1);
            law[3].set(k % kLanes, node.num_in - node.false_negatives + 1);
        }
        for (int64_t k = 0; k < counts.num_nodes; ++k) {
            odds_[k] = std::exp(counts.log_prior_odds[k]);
            inverse_odds_[k] = std::exp(-counts.log_prior_odds[k]);
        }
        for (auto *regions : {&regions_, &proposed_regions_}) {
            regions->edges.resize(num_blocks_);
            regions->area.assign(counts.num_nodes, 1.0);
        }
        if (settings.is_correlated) correlated_.emplace(counts, settings.num_auxiliary, worker);
        start();
    }

    // One iteration of Algorithm 3. Returns the acceptance probability.
    double step(bool &accepted) {
        const int size = settings_.num_parameters();
        double proposed[kMostParameters];
        for (int j = 0; j < size; ++j)
            proposed[j] = parameters_[j] + std::exp(log_scale_) * spread_[j] * normals_.next();
        const double proposed_log_prior = log_prior(proposed);
        set_regions(proposed, proposed_regions_);
        if (proposed_log_prior == -kInfinity) proposed_regions_.is_supported = false;
        has_ring_ ? draw_points<true>() : draw_points<false>();
        double log_ratio = proposed_log_prior - log_prior_;
        if (!proposed_regions_.is_supported)
            log_ratio = -kInfinity;
        else if (correlated_)
            log_ratio += has_ring_ ? correlated_->log_ratio<true>(points_.data(), current_state(), proposed_state(proposed))
                                   : correlated_->log_ratio<false>(points_.data(), current_state(), proposed_state(proposed));
        else
            log_ratio += binomial_log_ratio();
        accepted = std::log(1.0 - random_.unit()) < log_ratio;
        if (accepted) {
            std::copy(proposed, proposed + size, parameters_);
            log_prior_ = proposed_log_prior;
            std::swap(regions_, proposed_regions_);
            std::swap(count_, proposed_count_);
            if (correlated_) correlated_->accept();
        } else if (correlated_ && !proposed_regions_.is_supported) {
            // The weights of the state were not needed for the decision, but are for the choice.
            has_ring_ ? correlated_->set_weights<true>(points_.data(), current_state())
                      : correlated_->set_weights<false>(points_.data(), current_state());
        }
        if (correlated_)
            correlated_->choose(random_, points_.data());
        else
            has_ring_ ? choose<true>() : choose<false>();
        return std::exp(std::min(0.0, log_ratio));
    }

    // During burn-in: the walk's steps follow the spread of each parameter, then their common scale the acceptance rate.
    void adapt(int64_t iteration, double acceptance_prob) {
        const double gain = std::pow(iteration + 2.0, -0.6);
        const int size = settings_.num_parameters();
        log_scale_ += 2 * gain * (acceptance_prob - kTargetAcceptance);
        if (size > 1 && 2 * iteration < settings_.burn_in) {
            for (int j = 0; j < size; ++j) {
                const double apart = parameters_[j] - mean_[j];
                mean_[j] += gain * apart;
                variance_[j] += gain * (apart * apart - variance_[j]);
                if (iteration >= 100) spread_[j] = std::sqrt(std::max(variance_[j], 1e-16));
            }
        }
        if (4 * iteration >= 3 * settings_.burn_in) {
            sum_log_scale_ += log_scale_;
            ++num_log_scales_;
        }
    }
    void stop_adapting() {
        if (num_log_scales_ > 0) log_scale_ = sum_log_scale_ / static_cast<double>(num_log_scales_);
    }

    void store(double *draw) const {
        const int strength_at = 1 + settings_.is_joint;
        std::copy(parameters_, parameters_ + settings_.num_parameters(), draw);
        if (settings_.estimates_strength) draw[strength_at] = strength(parameters_);
    }

  private:
    // s walks on the logit scale.
    double strength(const double *parameters) const {
        return settings_.estimates_strength ? 1 / (1 + std::exp(-parameters[1 + settings_.is_joint])) : settings_.strength;
    }
    const double *theta(const double *parameters) const {
        return parameters + 1 + settings_.is_joint + settings_.estimates_strength;
    }

    // log p(ε) p(s) |ds/dlogit s| p(θ): all proposals are symmetric in the walking coordinates, so that their ratio is 1.
    double log_prior(const double *parameters) const {
        double sum = 0;
        for (int j = 0; j <= settings_.is_joint; ++j) {
            const double apart = parameters[j] - settings_.prior_mean;
            sum -= apart * apart / (2 * settings_.prior_variance);
        }
        if (settings_.estimates_strength) {
            const double logit = parameters[1 + settings_.is_joint];
            sum -= settings_.strength_a * std::log1p(std::exp(-logit)) + settings_.strength_b * std::log1p(std::exp(logit));
        }
        if (settings_.is_correlated) {
            const double tau = theta(parameters)[0], rho = theta(parameters)[1];
            const double largest = largest_rho(tau);
            if (!(tau < 1 && largest > 0 && std::fabs(rho) < largest)) return -kInfinity;
            sum -= tau * tau / (2 * settings_.tau_variance) + std::log(largest);
        }
        return sum;
    }

    double largest_rho(double tau) const { return CorrelatedCounts::largest_rho(counts_, tau); }
    CorrelatedCounts::State current_state() const { return {regions_, theta(parameters_)[0], theta(parameters_)[1]}; }
    CorrelatedCounts::State proposed_state(const double *proposed) const {
        return {proposed_regions_, theta(proposed)[0], theta(proposed)[1]};
    }

    void set_regions(const double *parameters, Regions &regions) const {
        const double left = parameters[0], right = parameters[settings_.is_joint], s = strength(parameters);
        const double shrink_left = std::exp(-left), shrink_right = std::exp(-right);
        regions.is_supported = true;
        for (int64_t k = 0; k < counts_.num_nodes; ++k) {
            const double inverse_a = settings_.bounds_left ? shrink_left * inverse_odds_[k] : 0.0;
            const double b = settings_.bounds_right ? shrink_right * odds_[k] : 0.0;
            if (!(inverse_a < 1 && b < 1)) {
                regions.is_supported = false;
                return;
            }
            auto &edges = regions.edges[k / kLanes];
            edges.inverse_a[k % kLanes] = static_cast<float>(inverse_a);
            edges.b[k % kLanes] = static_cast<float>(b);
            if (!has_ring_) {
                regions.area[k] = region_area(inverse_a, b);
                continue;
            }
            const double log_odds = counts_.log_prior_odds[k];
            const double inner_inverse_a = settings_.bounds_left ? std::exp(-s * (left + log_odds)) : 0.0;
            const double inner_b = settings_.bounds_right ? std::exp(-s * (right - log_odds)) : 0.0;
            edges.inner_inverse_a[k % kLanes] = static_cast<float>(inner_inverse_a);
            edges.inner_b[k % kLanes] = static_cast<float>(inner_b);
            const double rest = region_rest(inner_inverse_a, inner_b);
            regions.area[k] = inner_inverse_a < 1 && inner_b < 1
                                  ? (rest < 0.5 ? rest - region_rest(inverse_a, b)
                                                : region_area(inverse_a, b) - region_area(inner_inverse_a, inner_b))
                                  : region_area(inverse_a, b);
            if (!(regions.area[k] > 0)) regions.is_supported = false;
        }
    }

    // A state inside the support: ε beyond what one draw of every node's error rates implies.
    void start() {
        std::vector<PointLanes> first(num_blocks_);
        double least_left = -kInfinity, least_right = -kInfinity, floor_left = -kInfinity, floor_right = -kInfinity;
        std::vector<Lanes> gammas(settings_.is_correlated ? 4 * num_blocks_ : 0);
        for (int64_t block = 0; block < num_blocks_; ++block) {
            Lanes value[4];
            laws_[block].draw(lanes_, random_, value);
            if (settings_.is_correlated) std::copy(value, value + 4, &gammas[4 * block]);
            first[block] = point_of(value);
        }
        for (int64_t k = 0; k < counts_.num_nodes; ++k) {
            const double log_odds = counts_.log_prior_odds[k];
            const PointLanes &point = first[k / kLanes];
            if (settings_.bounds_left) {
                floor_left = std::max(floor_left, -log_odds);
                least_left = std::max(least_left, -log_odds - std::log(static_cast<double>(point.inverse_high[k % kLanes])));
            }
            if (settings_.bounds_right) {
                floor_right = std::max(floor_right, log_odds);
                least_right = std::max(least_right, log_odds - std::log(static_cast<double>(point.low[k % kLanes])));
            }
        }
        if (!settings_.is_joint) {
            least_left = least_right = std::max(least_left, least_right);
            floor_left = floor_right = std::max(floor_left, floor_right);
        }
        const auto beyond = [&](double floor, double least) {
            // A node that is certain not to be a member bounds nothing.
            if (!std::isfinite(least)) return std::max(settings_.prior_mean, std::isfinite(floor) ? floor + 1 : -kInfinity);
            return floor + (least - floor) * (1.05 - std::log(1.0 - random_.unit()) / 2);
        };
        int size = 0;
        parameters_[size++] = beyond(floor_left, least_left);
        if (settings_.is_joint) parameters_[size++] = beyond(floor_right, least_right);
        for (int j = 0; j < size; ++j) spread_[j] = 1;
        if (settings_.estimates_strength) {
            spread_[size] = 1;
            parameters_[size++] = -1 + normals_.next();
        }
        if (settings_.is_correlated) {
            const double tau = 0.1 * std::sqrt(settings_.tau_variance) * random_.unit();
            spread_[size] = 0.1 * std::sqrt(settings_.tau_variance);
            parameters_[size++] = tau;
            spread_[size] = 0.3 * largest_rho(tau);
            parameters_[size++] = 0.5 * largest_rho(tau) * (2 * random_.unit() - 1);
        }
        for (int j = 0; j < size; ++j) {
            mean_[j] = parameters_[j];
            variance_[j] = spread_[j] * spread_[j];
        }
        // Lanes beyond the last node: regions that hold everything.
        for (auto *regions : {&regions_, &proposed_regions_})
            for (auto &edges : regions->edges)
                edges = {Lanes{}, Lanes{}, splat(2.0f), splat(2.0f)};
        set_regions(parameters_, regions_);
        log_prior_ = log_prior(parameters_);
        for (int64_t block = 0; block < num_blocks_; ++block) place_first(block, first[block], gammas);
    }

    void place_first(int64_t block, PointLanes point, const std::vector<Lanes> &gammas) {
        const auto &edges = regions_.edges[block];
        const IntLanes is_inside = has_ring_ ? inside<true>(point, edges) : inside<false>(point, edges);
        if (correlated_) correlated_->set_points(block, 0, &gammas[4 * block]);
        const double s = strength(parameters_);
        for (int64_t lane = 0; lane < kLanes && block * kLanes + lane < counts_.num_nodes; ++lane) {
            if (is_inside[lane]) continue;
            // Between the edges of R_s and R on one side, in the middle of R on the other.
            const float by_right = settings_.bounds_right ? static_cast<float>((1 + s) / 2) : 0.0f;
            const float by_left = settings_.bounds_right ? 0.5f : static_cast<float>((1 + s) / 2);
            point.low[lane] = settings_.bounds_right ? std::pow(edges.b[lane], by_right) : 0.5f;
            point.inverse_high[lane] = settings_.bounds_left ? std::pow(edges.inverse_a[lane], by_left) : 0.5f;
            if (correlated_) {
                const double low = point.low[lane], inverse_high = point.inverse_high[lane], whole = 1 - low * inverse_high;
                const double detected = (1 - inverse_high) / whole, passed = (1 - low) / whole;
                correlated_->set_point(block, 0, lane, low * detected, passed, inverse_high * passed, detected);
            }
        }
        points_[block * settings_.num_auxiliary] = point;
    }

    // α = g0/(g0+g1) and β = g2/(g2+g3). Of α/(1-β) and (1-α)/β one is at most 1 and the other at least 1.
    static PointLanes point_of(const Lanes (&g)[4]) {
        const Lanes rate_out = g[2] + g[3], rate_in = g[0] + g[1];
        const Lanes alpha = g[0] * rate_out, passed = g[1] * rate_out, beta = g[2] * rate_in, detected = g[3] * rate_in;
        const IntLanes is_better = alpha < detected;
        return {select(is_better, alpha, passed) / select(is_better, detected, beta),
                select(is_better, beta, detected) / select(is_better, passed, alpha)};
    }

    // Draws M - 1 new points a node, beside its current one, and counts those in R(ε) and in R(ε').
    template <bool kRing> void draw_points() {
        for (int64_t first = 0; first < num_blocks_; first += blocks_between_checkpoints_) {
            worker_.checkpoint();
            draw_points_of_blocks<kRing>(first, std::min(num_blocks_, first + blocks_between_checkpoints_));
        }
    }
    template <bool kRing> void draw_points_of_blocks(int64_t first, int64_t end) {
        for (int64_t block = first; block < end; ++block) {
            PointLanes *points = &points_[block * settings_.num_auxiliary];
            const auto edges = regions_.edges[block], proposed_edges = proposed_regions_.edges[block];
            IntLanes count = -inside<kRing>(points[0], edges), proposed_count = -inside<kRing>(points[0], proposed_edges);
            for (int i = 1; i < settings_.num_auxiliary; ++i) {
                Lanes value[4];
                laws_[block].draw(lanes_, random_, value);
                points[i] = point_of(value);
                count -= inside<kRing>(points[i], edges);
                proposed_count -= inside<kRing>(points[i], proposed_edges);
                if (correlated_) correlated_->set_points(block, i, value);
            }
            count_[block] = count;
            proposed_count_[block] = proposed_count;
        }
    }

    // log Π_k (count'/|R'|)/(count/|R|).
    double binomial_log_ratio() const {
        double sum = 0, product = 1;
        for (int64_t k = 0; k < counts_.num_nodes; ++k) {
            const int32_t proposed = proposed_count_[k / kLanes][k % kLanes];
            if (proposed == 0) return -kInfinity;
            product *= static_cast<double>(proposed) / count_[k / kLanes][k % kLanes] *
                       (regions_.area[k] / proposed_regions_.area[k]);
            if (!(product > 1e-200 && product < 1e200) || k % 8 == 7) {
                sum += std::log(product);
                product = 1;
            }
        }
        return sum + std::log(product);
    }

    // Every node's new point: one of those in the region, each as likely.
    template <bool kRing> void choose() {
        for (int64_t block = 0; block < num_blocks_; ++block) {
            PointLanes *points = &points_[block * settings_.num_auxiliary];
            const auto edges = regions_.edges[block];
            const IntLanes count = count_[block];
            IntLanes rank = converted<IntLanes>(lanes_.unit() * converted<Lanes>(count));
            rank = select(rank < count, rank, count - 1);
            PointLanes chosen = points[0];
            for (int i = 0; i < settings_.num_auxiliary; ++i) {
                const IntLanes is_inside = inside<kRing>(points[i], edges);
                const IntLanes is_chosen = is_inside & (rank == 0);
                chosen.low = select(is_chosen, points[i].low, chosen.low);
                chosen.inverse_high = select(is_chosen, points[i].inverse_high, chosen.inverse_high);
                rank += is_inside;
            }
            points[0] = chosen;
        }
    }

    const CountsTable counts_;
    const MhaarSettings settings_;
    Worker &worker_;
    PhiloxBits random_;
    Normals normals_;
    LaneBits lanes_;
    const bool has_ring_;
    const int64_t num_blocks_, blocks_between_checkpoints_;
    std::vector<FourGammas> laws_;
    std::vector<PointLanes> points_;  // M for each block of nodes; the first is the current one
    std::vector<double> odds_, inverse_odds_;
    std::vector<IntLanes> count_, proposed_count_;
    Regions regions_, proposed_regions_;
    std::optional<CorrelatedCounts> correlated_;

    double parameters_[kMostParameters] = {};
    double log_prior_ = 0;
    double log_scale_ = -0.7, sum_log_scale_ = 0;
    int64_t num_log_scales_ = 0;
    double spread_[kMostParameters] = {}, mean_[kMostParameters] = {}, variance_[kMostParameters] = {};
};

}  // namespace

int64_t mhaar_bytes_each_point(const MhaarSettings &settings) {
    return static_cast<int64_t>(sizeof(PointLanes)) / kLanes + (settings.is_correlated ? 5 * sizeof(double) : 0);
}

void run_mhaar(const CountsTable &counts, const MhaarSettings &settings, int num_chains, int num_threads,
               const MhaarResults &results, const Poll &poll) {
    const int64_t num_kept = settings.num_iterations - settings.burn_in;
    const int size = settings.num_parameters();
    run_tasks(num_chains, num_threads, poll, [&](int64_t index, Worker &worker) {
        Chain chain(counts, settings, static_cast<uint64_t>(index), worker);
        int64_t num_accepted = 0;
        for (int64_t iteration = 0; iteration < settings.num_iterations; ++iteration) {
            worker.checkpoint();
            bool accepted;
            const double acceptance_prob = chain.step(accepted);
            if (iteration < settings.burn_in) {
                chain.adapt(iteration, acceptance_prob);
                if (iteration + 1 == settings.burn_in) chain.stop_adapting();
            } else {
                chain.store(results.draws + (index * num_kept + iteration - settings.burn_in) * size);
                num_accepted += accepted;
            }
            worker.report(1);
        }
        results.acceptance[index] = static_cast<double>(num_accepted) / static_cast<double>(num_kept);
    });
}

}  // namespace bmpaudit
