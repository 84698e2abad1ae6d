// Regions R of many nodes, and points (α, β) within them, sixteen nodes at a time.
#pragma once

#include <vector>

#include "lanes.hpp"

namespace bmpaudit {

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

}  // namespace bmpaudit
