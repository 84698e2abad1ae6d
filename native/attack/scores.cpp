#include "attack/scores.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/lanes.hpp"

namespace bmpaudit {

namespace {

constexpr int64_t kFewNumbers = 64;        // for which a comparison sort is fastest
constexpr int64_t kManyNumbers = 1 << 15;  // for more, larger digits are faster
constexpr int64_t kEntriesBetweenCheckpoints = 1 << 18;

template <typename T> using Key = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// Unsigned numbers in the order of the numbers; both zeros are one.
template <typename T> Key<T> key_of(T value) {
    Key<T> bits;
    value += T{0};
    std::memcpy(&bits, &value, sizeof bits);
    constexpr int kSign = 8 * sizeof(T) - 1;
    return bits ^ (bits >> kSign ? ~Key<T>{0} : Key<T>{1} << kSign);
}
template <typename T> T value_of(Key<T> key) {
    constexpr int kSign = 8 * sizeof(T) - 1;
    key ^= key >> kSign ? Key<T>{1} << kSign : ~Key<T>{0};
    T value;
    std::memcpy(&value, &key, sizeof value);
    return value;
}

// Tasks of several rows each, so that a task has enough to do.
template <typename Work>
void each_row(int64_t num_rows, int64_t num_columns, int num_threads, const Poll &poll, Work work) {
    const int64_t step = std::max<int64_t>(1, kEntriesBetweenCheckpoints / std::max<int64_t>(num_columns, 1));
    run_tasks((num_rows + step - 1) / step, num_threads, poll, [&](int64_t task, Worker &worker) {
        worker.checkpoint();
        work(task * step, std::min(num_rows, (task + 1) * step));
    });
}

// How many of the ascending numbers are at most x; without branches, which nobody could foresee.
template <typename T> inline int64_t num_reached(const T *ascending, int64_t size, T x) {
    int64_t base = 0;
    for (; size > 1; size -= size / 2) base += (ascending[base + size / 2 - 1] <= x) * (size / 2);
    return base + (size == 1 && ascending[base] <= x);
}

// The same for up to kBlock numbers at once. Comparing with every number, many at a time, is faster than halving unless
// there are too many.
constexpr int kBlock = 128;
template <typename T> void find_places(const T *ascending, int64_t size, const T *x, int count, int32_t *place) {
    using Numbers = Wide<T>;
    using Words = decltype(Numbers{} < Numbers{});
    constexpr int kLanes = 64 / sizeof(T), kMost = 12 * kRegisterBytes / static_cast<int>(sizeof(T));
    if (size > kMost) {
        for (int i = 0; i < count; ++i) place[i] = static_cast<int32_t>(num_reached(ascending, size, x[i]));
        return;
    }
    for (int i = 0; i < count; i += 2 * kLanes) {
        alignas(64) T values[2 * kLanes] = {};
        std::memcpy(values, x + i, std::min(count - i, 2 * kLanes) * sizeof(T));
        Numbers low, high;
        std::memcpy(&low, values, sizeof low);
        std::memcpy(&high, values + kLanes, sizeof high);
        Words num_low{}, num_high{};
        for (int64_t k = 0; k < size; ++k) {
            num_low -= low >= ascending[k];
            num_high -= high >= ascending[k];
        }
        for (int lane = 0; lane < kLanes; ++lane) {
            place[i + lane] = static_cast<int32_t>(num_low[lane]);
            place[i + kLanes + lane] = static_cast<int32_t>(num_high[lane]);
        }
    }
}

// By the leading bits, digit by digit from the last, in passes that keep the order of equals; then those few whose leading
// bits are equal. A digit that all numbers share takes no pass.
template <typename T, int DigitBits, int Passes> void sort_by_digits(T *values, int64_t size) {
    constexpr Key<T> kDigits = 1 << DigitBits;
    constexpr int kShift = std::max(8 * static_cast<int>(sizeof(T)) - Passes * DigitBits, 0);  // bits that are left to the end
    std::vector<Key<T>> keys(size), other(size);
    std::vector<std::array<int64_t, kDigits>> starts(Passes);
    for (auto &counts : starts) counts.fill(0);
    const auto digit = [](Key<T> key, int pass) { return key >> (kShift + pass * DigitBits) & (kDigits - 1); };
    for (int64_t i = 0; i < size; ++i) {
        const Key<T> key = keys[i] = key_of(values[i]);
        for (int pass = 0; pass < Passes; ++pass) ++starts[pass][digit(key, pass)];
    }
    for (int pass = 0; pass < Passes; ++pass) {
        auto &start = starts[pass];
        if (start[digit(keys[0], pass)] == size) continue;
        int64_t before = 0;
        for (int64_t &count : start) before += std::exchange(count, before);
        for (const Key<T> key : keys) other[start[digit(key, pass)]++] = key;
        keys.swap(other);
    }
    if constexpr (kShift > 0)
        for (int64_t first = 0, last; first < size; first = last) {
            for (last = first + 1; last < size && keys[last] >> kShift == keys[first] >> kShift; ++last) {}
            if (last - first > 1) std::sort(keys.begin() + first, keys.begin() + last);
        }
    for (int64_t i = 0; i < size; ++i) values[i] = value_of<T>(keys[i]);
}

// How many of the ascending numbers are above x.
template <typename T> int64_t num_above(const std::vector<T> &ascending, T x) {
    return ascending.end() - std::upper_bound(ascending.begin(), ascending.end(), x);
}

}  // namespace

template <typename T> void sort_numbers(T *values, int64_t size) {
    if (size <= kFewNumbers) std::sort(values, values + size);
    else if (size <= kManyNumbers) sort_by_digits<T, 8, sizeof(T) == 4 ? 4 : 5>(values, size);
    else sort_by_digits<T, 12, 3>(values, size);
}

template <typename T>
void sort_by_side(const T *scores, const uint8_t *member, int64_t size, int num_threads, const Poll &poll, T *out, T *in) {
    int64_t num_in = 0;
    for (int64_t i = 0; i < size; ++i) num_in += member[i];
    run_tasks(2, num_threads, poll, [&](int64_t side, Worker &) {
        T *to = side == 1 ? in : out;
        const int64_t total = side == 1 ? num_in : size - num_in;
        for (int64_t i = 0, count = 0; count < total; ++i) {  // without a branch, which nobody could foresee
            to[count] = scores[i];
            count += member[i] == side;
        }
        sort_numbers(to, total);
    });
}

template <typename T> int64_t pairs_in_order(const T *out, int64_t num_out, const T *in, int64_t num_in) {
    int64_t below = 0, not_above = 0, pairs = 0;
    for (int64_t i = 0; i < num_in; ++i) {
        while (below < num_out && out[below] < in[i]) ++below;
        not_above = std::max(below, not_above);
        while (not_above < num_out && out[not_above] <= in[i]) ++not_above;
        pairs += below + not_above;
    }
    return pairs;
}

template <typename T>
void roc_within_models(const ScoreTable<T> &table, double rate, int num_threads, const Poll &poll, double *auc, double *tpr) {
    each_row(table.num_models, table.num_nodes, num_threads, poll, [&](int64_t first, int64_t last) {
        std::vector<T> sides[2];
        for (int64_t model = first; model < last; ++model) {
            for (auto &side : sides) side.clear();
            for (int64_t i = 0; i < table.num_nodes; ++i) sides[table.members(model)[i]].push_back(table.row(model)[i]);
            for (auto &side : sides) sort_numbers(side.data(), static_cast<int64_t>(side.size()));
            const auto &[out, in] = sides;
            const auto num_out = static_cast<int64_t>(out.size()), num_in = static_cast<int64_t>(in.size());
            auc[model] = tpr[model] = std::numeric_limits<double>::quiet_NaN();
            if (num_out == 0 || num_in == 0) continue;
            auc[model] = static_cast<double>(pairs_in_order(out.data(), num_out, in.data(), num_in)) /
                         (2.0 * static_cast<double>(num_out) * static_cast<double>(num_in));
            auto allowed = static_cast<int64_t>(rate * static_cast<double>(num_out));
            if (static_cast<double>(allowed + 1) / static_cast<double>(num_out) <= rate) ++allowed;  // 0.29 * 100 is 28.999...
            tpr[model] = allowed >= num_out ? 1.0 : static_cast<double>(num_above(in, out[num_out - 1 - allowed])) / static_cast<double>(num_in);
        }
    });
}

template <typename T>
void count_by_threshold(const ScoreTable<T> &table, const T *thresholds, int64_t num_thresholds, int num_threads,
                        const Poll &poll, int64_t *counts, int64_t *members, double *probability) {
    const int64_t num_places = num_thresholds + 1;
    each_row(table.num_models, table.num_nodes, num_threads, poll, [&](int64_t first, int64_t last) {
        std::vector<uint64_t> both(num_places);  // members above, all below
        int32_t place[kBlock];
        for (int64_t model = first; model < last; ++model) {
            std::fill(both.begin(), both.end(), 0);
            for (int64_t start = 0; start < table.num_nodes; start += kBlock) {
                const int count = static_cast<int>(std::min<int64_t>(kBlock, table.num_nodes - start));
                const T *scores = table.row(model) + start;
                const uint8_t *member = table.members(model) + start;
                find_places(thresholds, num_thresholds, scores, count, place);
                for (int i = 0; i < count; ++i) both[place[i]] += 1 + (static_cast<uint64_t>(member[i]) << 32);
                if (probability != nullptr)
                    for (int i = 0; i < count; ++i)
                        probability[model * num_places + place[i]] += 1 / (1 + std::exp(-static_cast<double>(scores[i])));
            }
            for (int64_t k = 0; k < num_places; ++k) {
                counts[model * num_places + k] += static_cast<int64_t>(both[k] & 0xffffffff);
                members[model * num_places + k] += static_cast<int64_t>(both[k] >> 32);
            }
        }
    });
}

template <typename T>
void count_named_nodes(const ScoreTable<T> &table, T high, T low, int num_threads, const Poll &poll, int64_t *named) {
    constexpr int64_t kWidth = 1024;  // nodes whose counts stay in the cache
    run_tasks((table.num_nodes + kWidth - 1) / kWidth, num_threads, poll, [&](int64_t task, Worker &worker) {
        worker.checkpoint();
        const int64_t first = task * kWidth, width = std::min(kWidth, table.num_nodes - first);
        int32_t high_in[kWidth] = {}, high_all[kWidth] = {}, low_in[kWidth] = {}, low_all[kWidth] = {};
        for (int64_t model = 0; model < table.num_models; ++model) {
            const T *scores = table.row(model) + first;
            const uint8_t *member = table.members(model) + first;
            for (int64_t i = 0; i < width; ++i) {
                const int32_t is_high = scores[i] >= high, is_low = scores[i] <= low;
                high_all[i] += is_high;
                low_all[i] += is_low;
                high_in[i] += is_high & member[i];
                low_in[i] += is_low & member[i];
            }
        }
        for (int64_t i = 0; i < width; ++i) {
            named[first + i] += high_in[i];
            named[table.num_nodes + first + i] += high_all[i] - high_in[i];
            named[2 * table.num_nodes + first + i] += low_in[i];
            named[3 * table.num_nodes + first + i] += low_all[i] - low_in[i];
        }
    });
}

void interpolate_rows(float *values, int64_t num_rows, int64_t num_columns, const double *from, const double *to,
                      int64_t num_points, const int64_t *function_of, int num_threads, const Poll &poll) {
    // A float32 reaches a number if it reaches the next float32 that is not below it.
    std::vector<float> reached(num_points);
    for (int64_t k = 0; k < num_points; ++k) {
        reached[k] = static_cast<float>(from[k]);
        if (reached[k] < from[k]) reached[k] = std::nextafter(reached[k], std::numeric_limits<float>::infinity());
    }
    each_row(num_rows, num_columns, num_threads, poll, [&](int64_t first, int64_t last) {
        // Segment k is left of point k; the first and the last are constant.
        std::vector<double> slope(num_points + 1), start(num_points + 1), level(num_points + 1);
        int32_t place[kBlock];
        for (int64_t row = first; row < last; ++row) {
            const double *y = to + function_of[row] * num_points;
            level[0] = y[0];
            for (int64_t k = 1; k <= num_points; ++k) {
                slope[k] = k < num_points ? (y[k] - y[k - 1]) / (from[k] - from[k - 1]) : 0;
                start[k] = from[k - 1];
                level[k] = y[k - 1];
            }
            for (int64_t column = 0; column < num_columns; column += kBlock) {
                const int count = static_cast<int>(std::min<int64_t>(kBlock, num_columns - column));
                float *x = values + row * num_columns + column;
                find_places(reached.data(), num_points, x, count, place);
                for (int i = 0; i < count; ++i) {
                    const int32_t k = place[i];
                    const bool is_constant = k == 0 || k == num_points;  // where x may be infinite
                    x[i] = static_cast<float>(is_constant ? level[k] : slope[k] * (x[i] - start[k]) + level[k]);
                }
            }
        }
    });
}

template <typename T>
void count_decisions(const ScoreTable<T> &table, const T *log_prior_odds, T threshold, int num_threads, const Poll &poll,
                     int64_t *errors) {
    constexpr int64_t kWidth = 1024;
    run_tasks((table.num_nodes + kWidth - 1) / kWidth, num_threads, poll, [&](int64_t task, Worker &worker) {
        worker.checkpoint();
        const int64_t first = task * kWidth, width = std::min(kWidth, table.num_nodes - first);
        int32_t positives[kWidth] = {}, negatives[kWidth] = {};
        for (int64_t model = 0; model < table.num_models; ++model) {
            const T *scores = table.row(model) + first;
            const uint8_t *member = table.members(model) + first;
            for (int64_t i = 0; i < width; ++i) {
                const int32_t says_member = scores[i] + log_prior_odds[first + i] > threshold;
                positives[i] += says_member & (member[i] ^ 1);
                negatives[i] += (says_member ^ 1) & member[i];
            }
        }
        std::copy_n(positives, width, errors + first);
        std::copy_n(negatives, width, errors + table.num_nodes + first);
    });
}

void find_surest(const ScoreTable<double> &table, const double *log_prior_odds, const uint8_t *is_asked, int num_threads,
                 const Poll &poll, int64_t *node, double *value) {
    constexpr double kNothing = -std::numeric_limits<double>::infinity();
    each_row(table.num_models, table.num_nodes, num_threads, poll, [&](int64_t first, int64_t last) {
        for (int64_t model = first; model < last; ++model) {
            double highest[4] = {kNothing, kNothing, kNothing, kNothing};
            int64_t found[4] = {};
            const double *scores = table.row(model);
            for (int64_t i = 0; i < table.num_nodes; ++i) {
                if (!is_asked[i]) continue;
                const double odds = scores[i] + log_prior_odds[i];
                const double candidates[4] = {odds, -odds, scores[i], -scores[i]};
                for (int order = 0; order < 4; ++order)
                    if (candidates[order] > highest[order]) highest[order] = candidates[order], found[order] = i;
            }
            for (int order = 0; order < 4; ++order) {
                node[order * table.num_models + model] = found[order];
                value[order * table.num_models + model] = highest[order];
            }
        }
    });
}

#define BMPAUDIT_FOR_BOTH(T)                                                                                              \
    template void sort_numbers<T>(T *, int64_t);                                                                          \
    template void sort_by_side<T>(const T *, const uint8_t *, int64_t, int, const Poll &, T *, T *);                      \
    template int64_t pairs_in_order<T>(const T *, int64_t, const T *, int64_t);                                           \
    template void roc_within_models<T>(const ScoreTable<T> &, double, int, const Poll &, double *, double *);             \
    template void count_by_threshold<T>(const ScoreTable<T> &, const T *, int64_t, int, const Poll &, int64_t *,          \
                                        int64_t *, double *);                                                             \
    template void count_decisions<T>(const ScoreTable<T> &, const T *, T, int, const Poll &, int64_t *);                   \
    template void count_named_nodes<T>(const ScoreTable<T> &, T, T, int, const Poll &, int64_t *);
BMPAUDIT_FOR_BOTH(float)
BMPAUDIT_FOR_BOTH(double)
#undef BMPAUDIT_FOR_BOTH

void neighbour_means(const Adjacency &graph, const float *values, int64_t num_rows, int num_threads, const Poll &poll,
                     float *means) {
    const int64_t num_nodes = graph.num_nodes();
    run_tasks(num_rows, num_threads, poll, [&](int64_t row, Worker &worker) {
        worker.checkpoint();
        const float *from = values + row * num_nodes;
        float *to = means + row * num_nodes;
        for (int32_t node = 0; node < num_nodes; ++node) {
            const int32_t *around = graph.neighbors(node);
            const int32_t degree = graph.degree(node);
            double sum = 0;
            for (int32_t k = 0; k < degree; ++k) sum += from[around[k]];
            to[node] = degree == 0 ? 0.0f : static_cast<float>(sum / degree);
        }
    });
}

}  // namespace bmpaudit
