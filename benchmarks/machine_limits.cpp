// What one core of this machine can do at most: streaming rates and rates of gathering rows of sixteen floats, each the best
// of many short turns. Prints one line of JSON. shadow_training.py compiles and runs it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <vector>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace {

typedef float Lanes __attribute__((vector_size(64)));
typedef int32_t Places __attribute__((vector_size(64)));
volatile float sink;

double processor_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Most units of work a second, in units of 10⁹, of turns of at least a millisecond.
template <typename Work> double best_rate(double work_each, Work work) {
    double best = 0;
    int64_t times = 1;
    for (int turn = 0; turn < 40;) {
        const double start = processor_seconds();
        for (int64_t k = 0; k < times; ++k) work();
        const double spent = processor_seconds() - start;
        if (spent < 1e-3) {
            times *= 2;
            continue;
        }
        best = std::max(best, work_each * static_cast<double>(times) / spent / 1e9);
        ++turn;
    }
    return best;
}

float sum_of(Lanes x) {
    float total = 0;
    for (int lane = 0; lane < 16; ++lane) total += x[lane];
    return total;
}

// GB/s of reading `bytes` from begin to end, again and again.
double streaming_rate(int64_t bytes) {
    const std::vector<Lanes> data(bytes / 64, Lanes{} + 1.0f);
    return best_rate(static_cast<double>(bytes), [&] {
        Lanes sums[8] = {};
        for (size_t k = 0; k + 8 <= data.size(); k += 8)
            for (size_t u = 0; u < 8; ++u) sums[u] += data[k + u];
        for (const Lanes &sum : sums) sink = sum_of(sum);
    });
}

// Four floats in each four lanes, with one load.
Lanes four_repeated(const float *four) {
#ifdef __AVX512F__
    return _mm512_maskz_broadcast_f32x4(0xFFFF, _mm_loadu_ps(four));
#else
    Lanes repeated;
    for (int lane = 0; lane < 16; ++lane) repeated[lane] = four[lane % 4];
    return repeated;
#endif
}

// Gflop/s of sums of value · row over random rows of sixteen floats, `num_rows` of them, 64 a sum: the product of a sparse
// matrix and a dense one in its barest form. Numbers of rows have 16 bits; four of them take one load, and four values
// another. Without values, all are 1 and nothing is multiplied; the rate counts as if it were.
template <bool HasValues> double gather_rate(int num_rows) {
    constexpr int kEntries = 1 << 12, kEach = 64;
    const Places kFirstOfFour = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    std::mt19937 random(1);
    std::vector<uint16_t> places(kEntries);
    std::vector<float> values(kEntries, 0.5f);
    for (uint16_t &place : places) place = static_cast<uint16_t>(random() % num_rows);
    const std::vector<Lanes> rows(num_rows, Lanes{} + 1.0f);
    return best_rate(2.0 * 16 * kEntries, [&] {
        for (int from = 0; from < kEntries; from += kEach) {
            Lanes sums[4] = {};
            for (int e = from; e < from + kEach; e += 4) {
                uint64_t four;
                std::memcpy(&four, &places[e], sizeof four);
                const Lanes value = HasValues ? four_repeated(&values[e]) : Lanes{};
                for (int u = 0; u < 4; ++u) {
                    const Lanes &row = rows[static_cast<uint16_t>(four >> (16 * u))];
                    sums[u] += HasValues ? __builtin_shuffle(value, kFirstOfFour + u) * row : row;
                }
            }
            sink = ((sums[0] + sums[1]) + (sums[2] + sums[3]))[0];
        }
    });
}

// Gflop/s of multiplications and additions in registers.
double arithmetic_rate() {
    constexpr int kSteps = 1 << 12;
    Lanes sums[12] = {}, factor = Lanes{} + static_cast<float>(sink) * 0 + 0.5f;
    return best_rate(2.0 * 16 * 12 * kSteps, [&] {
        for (int k = 0; k < kSteps; ++k) {
            for (Lanes &sum : sums) sum = sum * factor + factor;
            asm volatile("" : "+v"(factor));
        }
        for (const Lanes &sum : sums) sink = sum[0];
    });
}

}  // namespace

int main() {
    std::printf("{\"stream_memory\": %.2f, \"stream_l3\": %.2f, \"stream_l2\": %.2f, \"stream_l1\": %.2f, "
                "\"gather_l1_ones\": %.2f, \"gather_l1\": %.2f, \"gather_l2\": %.2f, \"gather_l3\": %.2f, \"arithmetic\": %.2f}\n",
                streaming_rate(256 << 20), streaming_rate(4 << 20), streaming_rate(256 << 10), streaming_rate(16 << 10),
                gather_rate<false>(256), gather_rate<true>(256), gather_rate<true>(4096), gather_rate<true>(65535), arithmetic_rate());
}
