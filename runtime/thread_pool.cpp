#include "thread_pool.h"

#include <algorithm>
#include <system_error>

#if defined(__linux__)
#include <sched.h>
#endif

namespace halation::runtime {

ThreadPool::~ThreadPool() {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
    }
    job_posted_.notify_all();
    for (std::thread &worker : workers_) worker.join();
}

void ThreadPool::run(int64_t tasks, int threads, Work work, void *data) {
    if (tasks < threads) threads = static_cast<int>(tasks);
    threads = std::min(threads, threads_);
    if (threads <= 1) {
        for (int64_t task = 0; task < tasks; task++) work(data, task, 0);
        return;
    }
    start_workers(threads - 1);
    const int helpers = std::min<int>(threads - 1, static_cast<int>(workers_.size()));
    {
        std::lock_guard<std::mutex> lock(mutex_);
        work_ = work;
        data_ = data;
        tasks_ = tasks;
        next_task_.store(0, std::memory_order_relaxed);
        seats_ = helpers;
    }
    if (helpers == static_cast<int>(workers_.size()))
        job_posted_.notify_all();
    else
        for (int i = 0; i < helpers; i++) job_posted_.notify_one();
    take_tasks(0);

    // Only workers that joined are waited for: one that is slow to wake finds no seat and goes back to sleep,
    // so a small job never waits for a wake-up.
    std::unique_lock<std::mutex> lock(mutex_);
    seats_ = 0;
    job_left_.wait(lock, [&] { return working_ == 0; });
}

void ThreadPool::start_workers(int wanted) {
    try {
        workers_.reserve(static_cast<size_t>(wanted));
        while (static_cast<int>(workers_.size()) < wanted) {
            workers_.emplace_back([this] { serve(); });
        }
    } catch (const std::exception &) {
        // No thread to be had: those there are, and the caller, do the work. Asked again at the next call.
    }
}

void ThreadPool::serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        job_posted_.wait(lock, [&] { return stop_ || seats_ > 0; });
        if (stop_) return;
        const int seat = seats_--;  // 1 .. helpers: whoever is first to wake, a job of few threads has few numbers
        working_++;
        lock.unlock();
        take_tasks(seat);
        lock.lock();
        // The tasks are all taken, so no seat is worth having; without this a fast worker would sit down again.
        seats_ = 0;
        if (--working_ == 0) job_left_.notify_one();
    }
}

void ThreadPool::take_tasks(int worker) {
    for (;;) {
        const int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
        if (task >= tasks_) return;
        work_(data_, task, worker);
    }
}

int processor_count() {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
#endif
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace halation::runtime
