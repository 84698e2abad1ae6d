// The one thread pool: independent tasks on several threads, interruptible, with exceptions carried out.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

namespace bmpaudit {

// Called about every tenth of a second, on the calling thread only, with the amount of work done; true stops the work.
using Poll = std::function<bool(int64_t done)>;

// Thrown by Worker::checkpoint to leave a task early; it never leaves run_tasks.
struct Stopped {};

class Job;

// One thread's part in a call of run_tasks.
class Worker {
  public:
    Worker(Job &job, int number) : job_(job), number_(number) {}

    // From 0, which is the calling thread, to num_workers - 1.
    int number() const { return number_; }
    // Leaves the task by throwing Stopped once the work is to stop. Long tasks call it every few milliseconds.
    void checkpoint();
    // Adds to the amount of work done that the poll is told.
    void report(int64_t amount);

  private:
    Job &job_;
    const int number_;
    std::chrono::steady_clock::time_point last_poll_ = std::chrono::steady_clock::now();
};

using Task = std::function<void(int64_t task, Worker &worker)>;

// The largest number of threads that run_tasks makes use of.
int num_workers(int64_t num_tasks, int num_threads);

// Calls work(task, worker) for each task in [0, num_tasks) on up to num_threads threads, the calling one among them; if
// the system gives fewer threads, those at hand do the work. Of the exceptions that tasks throw, that of the lowest
// task is thrown again here, after all threads have ended. Returns whether all is done: false if the poll asked to stop.
bool run_tasks(int64_t num_tasks, int num_threads, const Poll &poll, const Task &work);

}  // namespace bmpaudit
