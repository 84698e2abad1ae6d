// Work that falls into independent parts, on several threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace bmpaudit {

// Calls work(begin, end) on consecutive parts of [0, count), one a thread.
inline void split_over_threads(int64_t count, int num_threads, const std::function<void(int64_t, int64_t)> &work) {
    const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(num_threads, count));
    std::vector<std::thread> threads;
    for (int64_t part = 1; part < parts; ++part)
        threads.emplace_back(work, count * part / parts, count * (part + 1) / parts);
    work(0, count / parts);
    for (auto &thread : threads) thread.join();
}

}  // namespace bmpaudit
