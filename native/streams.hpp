// Streams of random numbers of one shadow model.
#pragma once

#include <cstdint>

#include "random.hpp"

namespace bmpaudit {

// bmpaudit.util.streams.Purpose has the same numbers.
enum class Purpose : uint64_t { weights = 3, dropout = 4, noise = 5, validation = 11, edges = 12, batches = 13 };

inline PhiloxBits stream(uint64_t seed, Purpose purpose, uint64_t index) {
    return PhiloxBits(seed, static_cast<uint64_t>(purpose), index);
}

// What training draws from.
struct TrainingStreams {
    PhiloxBits dropout, validation, edges, batches;

    TrainingStreams(uint64_t seed, uint64_t index)
        : dropout(stream(seed, Purpose::dropout, index)), validation(stream(seed, Purpose::validation, index)),
          edges(stream(seed, Purpose::edges, index)), batches(stream(seed, Purpose::batches, index)) {}
};

}  // namespace bmpaudit
