// Subsets and orders by one random word for each thing, which a line of NumPy draws alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "random.hpp"

namespace bmpaudit {

class WordOrder {
  public:
    // `count` of the numbers below `size`, all subsets equally likely, in ascending order: those with the smallest words.
    const std::vector<int32_t> &subset(RandomBits &random, int64_t size, int64_t count) {
        draw(random, size);
        if (count < size) std::nth_element(words_.begin(), words_.begin() + count, words_.end());
        take(count);
        std::sort(taken_.begin(), taken_.end());
        return taken_;
    }
    // The numbers below `size` in random order: that of their words.
    const std::vector<int32_t> &order(RandomBits &random, int64_t size) {
        draw(random, size);
        std::sort(words_.begin(), words_.end());
        take(size);
        return taken_;
    }

  private:
    void draw(RandomBits &random, int64_t size) {
        words_.resize(size);
        for (int64_t k = 0; k < size; ++k) words_[k] = {random.next(), static_cast<int32_t>(k)};
    }
    void take(int64_t count) {
        taken_.resize(count);
        for (int64_t k = 0; k < count; ++k) taken_[k] = words_[k].second;
    }

    std::vector<std::pair<uint64_t, int32_t>> words_;  // each with its number, by which equal words are told apart
    std::vector<int32_t> taken_;
};

}  // namespace bmpaudit
