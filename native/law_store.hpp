// Laws of error rates by (n, count), kept for the nodes that follow and for the calls that follow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "beta_bulk.hpp"

namespace bmpaudit {

class LawStore {
  public:
    BetaBulk &of(double count, double num_trials) {
        const auto hash = static_cast<uint64_t>(count) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(num_trials);
        Entry &entry = entries_[(hash ^ (hash >> 32)) % kEntries];
        if (entry.law && entry.count == count && entry.num_trials == num_trials) return *entry.law;
        const double p = count + 1, q = num_trials - count + 1;
        if (entry.law) entry.law->become(p, q);
        else entry.law = std::make_unique<BetaBulk>(p, q);
        entry.count = count;
        entry.num_trials = num_trials;
        return *entry.law;
    }

  private:
    static constexpr size_t kEntries = 2039;  // of about 4 KB each
    struct Entry {
        double count = 0, num_trials = 0;
        std::unique_ptr<BetaBulk> law;
    };
    std::array<Entry, kEntries> entries_;
};

// A law of either store stays as it is while laws of the other are asked for.
struct LawStores {
    LawStore alpha, detected;
};

// Stores for the workers of one call. They come back for the next call: the posteriors of an audit have most of their laws
// in common, and to build one takes longer than to integrate over it.
class BorrowedLaws {
  public:
    explicit BorrowedLaws(int num_workers) : stores_(num_workers) {}
    BorrowedLaws(const BorrowedLaws &) = delete;
    BorrowedLaws &operator=(const BorrowedLaws &) = delete;
    ~BorrowedLaws() {
        const std::lock_guard<std::mutex> lock(mutex());
        for (auto &stores : stores_)
            if (stores && idle().size() < kMostIdle) idle().push_back(std::move(stores));
    }

    LawStores &of(int worker) {
        auto &stores = stores_[worker];
        if (!stores) stores = taken();
        return *stores;
    }

  private:
    static constexpr size_t kMostIdle = 4;

    static std::unique_ptr<LawStores> taken() {
        const std::lock_guard<std::mutex> lock(mutex());
        if (idle().empty()) return std::make_unique<LawStores>();
        auto stores = std::move(idle().back());
        idle().pop_back();
        return stores;
    }
    static std::mutex &mutex() {
        static std::mutex mutex;
        return mutex;
    }
    static std::vector<std::unique_ptr<LawStores>> &idle() {
        static std::vector<std::unique_ptr<LawStores>> idle;
        if (idle.capacity() < kMostIdle) idle.reserve(kMostIdle);
        return idle;
    }

    std::vector<std::unique_ptr<LawStores>> stores_;
};

}  // namespace bmpaudit
