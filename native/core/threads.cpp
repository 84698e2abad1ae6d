#include "core/threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace bmpaudit {

namespace {

constexpr auto kBetweenPolls = std::chrono::milliseconds(100);
constexpr int64_t kMostThreads = 256;

}  // namespace

// What the threads of one call share.
class Job {
  public:
    Job(int64_t num_tasks, const Poll &poll, const Task &work) : num_tasks_(num_tasks), poll_(poll), work_(work) {}

    bool is_stopped() const { return stop_.load(std::memory_order_relaxed); }
    void report(int64_t amount) { done_.fetch_add(amount, std::memory_order_relaxed); }
    void poll() {
        if (poll_(done_.load(std::memory_order_relaxed))) stop_ = true;
    }

    // Takes tasks until there are none left.
    void work(int number) {
        Worker worker(*this, number);
        for (int64_t task = next_++; task < num_tasks_ && !is_stopped(); task = next_++) {
            try {
                worker.checkpoint();
                work_(task, worker);
            } catch (const Stopped &) {
                return;
            } catch (...) {  // no exception may leave a thread
                fail(task, std::current_exception());
                return;
            }
        }
    }

    // Starts a thread that works; false if the system gives none.
    bool start_thread(std::vector<std::thread> &threads, int number) {
        const std::lock_guard<std::mutex> lock(mutex_);
        try {
            threads.emplace_back([this, number] {
                work(number);
                const std::lock_guard<std::mutex> at_end(mutex_);
                --num_running_;
                finished_.notify_one();
            });
        } catch (...) {
            return false;
        }
        ++num_running_;
        return true;
    }

    // Polls until all started threads have ended.
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        while (!finished_.wait_for(lock, kBetweenPolls, [&] { return num_running_ == 0; })) {
            if (is_stopped()) continue;
            lock.unlock();
            try {
                poll();
            } catch (...) {
                fail(std::numeric_limits<int64_t>::max(), std::current_exception());
            }
            lock.lock();
        }
    }

    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    void fail(int64_t task, std::exception_ptr failure) {
        const std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
        if (failure_ && task > failed_task_) return;
        failure_ = std::move(failure);
        failed_task_ = task;
    }

    const int64_t num_tasks_;
    const Poll &poll_;
    const Task &work_;
    std::atomic<int64_t> next_{0}, done_{0};
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::condition_variable finished_;
    int num_running_ = 0;
    std::exception_ptr failure_;
    int64_t failed_task_ = 0;
};

void Worker::checkpoint() {
    if (number_ == 0 && !job_.is_stopped()) {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_poll_ >= kBetweenPolls) {
            last_poll_ = now;
            job_.poll();
        }
    }
    if (job_.is_stopped()) throw Stopped{};
}

void Worker::report(int64_t amount) { job_.report(amount); }

int num_workers(int64_t num_tasks, int num_threads) {
    return static_cast<int>(std::clamp<int64_t>(std::min<int64_t>(num_threads, num_tasks), 1, kMostThreads));
}

bool run_tasks(int64_t num_tasks, int num_threads, const Poll &poll, const Task &work) {
    Job job(num_tasks, poll, work);
    const int wanted = num_workers(num_tasks, num_threads);
    std::vector<std::thread> threads;
    threads.reserve(wanted - 1);
    for (int number = 1; number < wanted && job.start_thread(threads, number);) ++number;
    job.work(0);
    job.wait();
    for (auto &thread : threads) thread.join();
    job.rethrow();
    return !job.is_stopped();
}

}  // namespace bmpaudit
