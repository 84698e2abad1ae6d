#include "node_leakage.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "beta_law.hpp"
#include "gauss_legendre.hpp"
#include "log_space.hpp"

namespace bmpaudit {

namespace {

constexpr int kPoints = 40;
constexpr double kLogTail = -28.0;  // either tail left out of an integral holds e^-28 of the probability
constexpr double kTolerance = 1e-4;  // of the log-odds of a probability before the last Newton step, which squares it

// A Beta law with the interval that holds all but a negligible part of it.
struct Rate {
    BetaLaw law;
    double low, high, spread;

    explicit Rate(const BetaLaw &law) : law(law), low(0), high(1), spread(law.standard_deviation()) {
        low = end([](double lower, double) { return lower; }, 0);
        high = end([](double, double upper) { return upper; }, 1);
    }

    double below(double u) const {
        if (u <= low) return 0;
        if (u >= high) return 1;
        double lower, upper;
        law.log_tails(u, lower, upper);
        return lower < upper ? std::exp(lower) : 1 - std::exp(upper);
    }

    double density(double u) const { return u > low && u < high ? std::exp(law.log_density(u)) : 0; }

  private:
    // Bisects between the mean and an outer end; a few standard deviations too wide do no harm.
    template <typename Tail> double end(Tail tail, double outer) const {
        double inner = law.mean();
        for (int round = 0; round < 60 && std::abs(outer - inner) > 0.25 * spread; ++round) {
            const double middle = 0.5 * (inner + outer);
            double lower, upper;
            law.log_tails(middle, lower, upper);
            (tail(lower, upper) < kLogTail ? outer : inner) = middle;
        }
        return outer;
    }
};

struct Cdf {
    double value, slope;
};

// The law of g = max{log(top/bottom), log((1-top)/(1-bottom))} ≥ 0 for independent rates. With top = 1-β and bottom = α it
// is e_R - log η, with the two exchanged e_L + log η.
class GainLaw {
  public:
    GainLaw(const Rate &top, const Rate &bottom) : top_(top), bottom_(bottom) {}

    // Pr(g ≤ t) = Pr(bottom ≥ c·top, 1-bottom ≥ c(1-top)) with c = e^{-t}, and its derivative in t. Integrates over the
    // narrower of the two rates, as seen across these lines: the other one's distribution function then varies slowly.
    Cdf operator()(double t) const {
        const double c = std::exp(-t);
        if (c * top_.spread <= bottom_.spread)
            return integral(top_, {top_.low, top_.high}, [&](double x) {
                const double least = c * x, most = 1 - c * (1 - x);
                return Cdf{bottom_.below(most) - bottom_.below(least),
                           bottom_.density(most) * c * (1 - x) + bottom_.density(least) * c * x};
            });
        // The lines leave the unit square at bottom = c and 1 - c.
        const auto clamped = [&](double y) { return std::clamp(y, bottom_.low, bottom_.high); };
        const double first = clamped(std::min(c, 1 - c)), second = clamped(std::max(c, 1 - c));
        return integral(bottom_, {bottom_.low, first, second, bottom_.high}, [&](double y) {
            const double most = y / c, short_of_one = (1 - y) / c;
            return Cdf{top_.below(most) - top_.below(1 - short_of_one),
                       top_.density(most) * most + top_.density(1 - short_of_one) * short_of_one};
        });
    }

    // Where g would be if the rates were their means, or about their spread if that is more.
    double guess() const {
        const double top = top_.law.mean(), bottom = bottom_.law.mean();
        const double there = std::max(std::log(top / bottom), std::log((1 - top) / (1 - bottom)));
        return std::max(there, 0.5 * (top_.spread + bottom_.spread) / std::min(0.5, bottom));
    }

  private:
    template <typename Inside> Cdf integral(const Rate &over, std::initializer_list<double> edges, Inside inside) const {
        static const GaussLegendre<kPoints> rule;
        Cdf sum{0, 0};
        for (const double *edge = edges.begin(); edge + 1 != edges.end(); ++edge) {
            const double width = edge[1] - edge[0];
            if (!(width > 0)) continue;
            for (int i = 0; i < kPoints; ++i) {
                const double u = edge[0] + width * (0.5 * (1 + rule.node[i]));
                const double weight = width * (0.5 * rule.weight[i]) * over.density(u);
                const Cdf here = inside(u);
                sum.value += weight * here.value;
                sum.slope += weight * here.slope;
            }
        }
        return sum;
    }

    const Rate &top_, &bottom_;
};

// Inverts a distribution function on (0, ∞) by Newton's method on the log-odds of the probability against log t, nearly
// straight for small t and in the tail, kept within what is known to lie on either side. Remembers all it has seen.
class Inverse {
  public:
    Inverse(const GainLaw &law, Worker &worker) : law_(law), worker_(worker) { look_at(law.guess()); }

    double operator()(double p) {
        const double wanted = std::log(p) - std::log1p(-p);
        for (int round = 0; round < 200; ++round) {
            double low = 0, high = kInfinity;
            const Seen *nearest = &seen_.front();
            for (const Seen &seen : seen_) {
                if (seen.log_odds < wanted) low = std::max(low, seen.t);
                else high = std::min(high, seen.t);
                if (std::abs(seen.log_odds - wanted) < std::abs(nearest->log_odds - wanted)) nearest = &seen;
            }
            const double missing = wanted - nearest->log_odds;
            double next = nearest->t * std::exp(std::clamp(missing / nearest->slope, -1.0, 1.0));
            if (std::abs(missing) < kTolerance) return next;
            if (!(next > low && next < high)) next = high < kInfinity ? 0.5 * (low + high) : 2 * low;
            if (high < kInfinity && high - low <= 1e-12 * high) return next;
            look_at(next);
        }
        return seen_.back().t;
    }

  private:
    struct Seen {
        double t, log_odds, slope;
    };

    void look_at(double t) {
        worker_.checkpoint();
        const Cdf at = law_(t);
        const double p = std::clamp(at.value, 0.0, 1.0);
        seen_.push_back({t, std::log(p) - std::log1p(-p), t * at.slope / (p * (1 - p))});
    }

    const GainLaw &law_;
    Worker &worker_;
    std::vector<Seen> seen_;
};

}  // namespace

void leakage_quantiles(const NodeCounts *nodes, int64_t num_nodes, const double *probabilities, int64_t num_probabilities,
                       int num_threads, const Poll &poll, double *right, double *left) {
    run_tasks(num_nodes, num_threads, poll, [&](int64_t k, Worker &worker) {
        const NodeCounts &node = nodes[k];
        const Rate alpha(BetaLaw(node.false_positives + 1, node.num_out - node.false_positives + 1));
        const Rate detected(BetaLaw(node.num_in - node.false_negatives + 1, node.false_negatives + 1));
        const auto fill = [&](const GainLaw &gain, double *result) {
            Inverse inverse(gain, worker);
            for (int64_t i = 0; i < num_probabilities; ++i) result[i] = inverse(probabilities[i]);
        };
        fill(GainLaw(detected, alpha), right + k * num_probabilities);
        fill(GainLaw(alpha, detected), left + k * num_probabilities);
    });
}

}  // namespace bmpaudit
