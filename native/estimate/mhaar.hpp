// Algorithm 3: Metropolis-Hastings with averaged acceptance ratios for the posterior of ε.
#pragma once

#include <cstdint>

#include "core/threads.hpp"
#include "estimate/beta_law.hpp"

namespace bmpaudit {

// Parameters, in the order of a draw: ε, or ε_L and ε_R; then s if it is estimated; then τ and ρ if counts are correlated.
struct MhaarSettings {
    bool bounds_left, bounds_right, is_joint;
    double prior_mean, prior_variance;
    double strength;  // fixed s, unless it is estimated
    bool estimates_strength;
    double strength_a, strength_b;  // s ~ Beta(a, b)
    bool is_correlated;             // bivariate-normal counts in place of binomial ones
    double tau_variance;
    int num_auxiliary;
    int64_t num_iterations, burn_in;
    uint64_t seed, purpose;

    int num_parameters() const { return 1 + is_joint + estimates_strength + 2 * is_correlated; }
};

// draws: (num_chains, num_iterations - burn_in, num_parameters); acceptance after burn-in: (num_chains,).
struct MhaarResults {
    double *draws;
    double *acceptance;
};

// Chain c has the random stream (seed, purpose, c), so results do not depend on the threads. The poll is told the number
// of iterations done, over all chains.
void run_mhaar(const CountsTable &counts, const MhaarSettings &settings, int num_chains, int num_threads,
               const MhaarResults &results, const Poll &poll);

// Memory that each of the num_auxiliary points of a node takes while its chain runs.
int64_t mhaar_bytes_each_point(const MhaarSettings &settings);

}  // namespace bmpaudit
