// Random bits: a counter-based stream per sample, bit for bit the one numpy.random.Philox gives in Python.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace bmpaudit {

// The C interface of a NumPy BitGenerator, as numpy/random/bitgen.h publishes it.
struct NumpyBitGenerator {
    void *state;
    uint64_t (*next_uint64)(void *);
    uint32_t (*next_uint32)(void *);
    double (*next_double)(void *);
    uint64_t (*next_raw)(void *);
};

class RandomBits {
  public:
    virtual ~RandomBits() = default;
    virtual uint64_t next() = 0;

    // Uniform on [0, 1), 53 bits.
    double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

    // Uniform on {0, ..., bound - 1} without bias (Lemire 2019): rejects the few values that would favour some results.
    uint32_t below(uint32_t bound) {
        uint64_t product = (next() >> 32) * bound;
        if (static_cast<uint32_t>(product) < bound) {
            const uint32_t threshold = (0u - bound) % bound;
            while (static_cast<uint32_t>(product) < threshold) product = (next() >> 32) * bound;
        }
        return static_cast<uint32_t>(product >> 32);
    }

    // The choices of a partial Fisher-Yates shuffle of `size` things: picks[t] uniform on {t, ..., size - 1}.
    // One word serves all of them while size·(size - 1)···, the number of outcomes, fits into it (Brackett-Rozinsky and
    // Lemire 2024): each multiplication takes one choice off the top of the word and leaves the rest as a fraction.
    void shuffle_picks(uint32_t size, uint32_t count, int32_t *picks) {
        uint64_t outcomes = 1;
        for (uint32_t t = 0; t < count; ++t) {
            if (__builtin_mul_overflow(outcomes, static_cast<uint64_t>(size - t), &outcomes)) {
                for (uint32_t u = 0; u < count; ++u) picks[u] = static_cast<int32_t>(u + below(size - u));
                return;
            }
        }
        uint64_t fraction;
        do {
            fraction = next();
            for (uint32_t t = 0; t < count; ++t) {
                const auto product = static_cast<unsigned __int128>(fraction) * (size - t);
                picks[t] = static_cast<int32_t>(t + static_cast<uint64_t>(product >> 64));
                fraction = static_cast<uint64_t>(product);
            }
        } while (fraction < outcomes && fraction < (0 - outcomes) % outcomes);
    }
};

class NumpyBits final : public RandomBits {
  public:
    explicit NumpyBits(const NumpyBitGenerator *generator) : generator_(generator) {}
    uint64_t next() override { return generator_->next_uint64(generator_->state); }

  private:
    const NumpyBitGenerator *generator_;
};

// Philox4x64-10 (Salmon et al. 2011). The key is (seed, purpose) and the index sits in the third word of the counter,
// so streams of different (seed, purpose, index) can never overlap.
class PhiloxBits final : public RandomBits {
  public:
    PhiloxBits(uint64_t seed, uint64_t purpose, uint64_t index) : key_{seed, purpose}, counter_{0, 0, index, 0} {}

    uint64_t next() override {
        if (used_ == kWords) refill();
        return buffer_[used_++];
    }

  private:
    static constexpr int kBlocks = 4, kWords = 4 * kBlocks;  // the multiplications of several blocks overlap

    void refill() {
        uint64_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
        for (int b = 0; b < kBlocks; ++b) {
            if (++counter_[0] == 0) ++counter_[1];
            c0[b] = counter_[0];
            c1[b] = counter_[1];
            c2[b] = counter_[2];
            c3[b] = counter_[3];
        }
        uint64_t k0 = key_[0], k1 = key_[1];
        for (int round = 0; round < 10; ++round) {
            for (int b = 0; b < kBlocks; ++b) {
                const unsigned __int128 p0 = static_cast<unsigned __int128>(0xD2E7470EE14C6C93u) * c0[b];
                const unsigned __int128 p1 = static_cast<unsigned __int128>(0xCA5A826395121157u) * c2[b];
                c0[b] = static_cast<uint64_t>(p1 >> 64) ^ c1[b] ^ k0;
                c1[b] = static_cast<uint64_t>(p1);
                c2[b] = static_cast<uint64_t>(p0 >> 64) ^ c3[b] ^ k1;
                c3[b] = static_cast<uint64_t>(p0);
            }
            k0 += 0x9E3779B97F4A7C15u;
            k1 += 0xBB67AE8584CAA73Bu;
        }
        for (int b = 0; b < kBlocks; ++b) {
            buffer_[4 * b] = c0[b];
            buffer_[4 * b + 1] = c1[b];
            buffer_[4 * b + 2] = c2[b];
            buffer_[4 * b + 3] = c3[b];
        }
        used_ = 0;
    }

    uint64_t key_[2];
    uint64_t counter_[4];
    uint64_t buffer_[kWords] = {};
    int used_ = kWords;
};

// Independent coins, sixteen at a time, 64 of them from each binary digit of their uniform numbers: heads where the number
// is less than the probability, which the first digit in which they differ decides. The probability is rounded to 32
// binary digits. A fair coin costs one bit, any other about an eighth of a word, as nearly all are soon decided.
class CoinFlips {
  public:
    CoinFlips(RandomBits &random, double probability) : random_(random) {
        const double digits = std::round(probability * 0x1.0p32);
        digits_ = static_cast<uint32_t>(std::min(std::max(digits, 1.0), 0x1.0p32 - 1.0));
    }
    // The probability after rounding.
    double probability() const { return digits_ * 0x1.0p-32; }

    uint32_t next_sixteen() {
        if (left_ == 0) refill();
        --left_;
        const uint32_t coins = static_cast<uint32_t>(word_ & 0xFFFF);
        word_ >>= 16;
        return coins;
    }

  private:
    void refill() {
        uint64_t heads = 0, undecided = ~uint64_t{0};
        // Once all digits that are left are zeros, a number that agreed so far is not less.
        for (uint32_t digits = digits_; digits != 0 && undecided != 0; digits <<= 1) {
            const uint64_t bits = random_.next();
            if (digits >> 31) {
                heads |= undecided & ~bits;
                undecided &= bits;
            } else {
                undecided &= ~bits;
            }
        }
        word_ = heads;
        left_ = 4;
    }

    RandomBits &random_;
    uint32_t digits_;
    uint64_t word_ = 0;
    int left_ = 0;
};

// Standard normal numbers by the Box-Muller transform, in pairs.
class Normals {
  public:
    explicit Normals(RandomBits &random) : random_(random) {}
    double next() {
        if (has_spare_) {
            has_spare_ = false;
            return spare_;
        }
        const double radius = std::sqrt(-2.0 * std::log(1.0 - random_.unit()));
        const double angle = 6.283185307179586 * random_.unit();
        spare_ = radius * std::sin(angle);
        has_spare_ = true;
        return radius * std::cos(angle);
    }

  private:
    RandomBits &random_;
    double spare_ = 0;
    bool has_spare_ = false;
};

// Streams of random numbers of one shadow model.

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

// Subsets and orders by one random word for each thing, which a line of NumPy draws alike.

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
