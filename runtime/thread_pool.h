// Worker threads that share numbered tasks with the caller's own thread.
#ifndef HALATION_RUNTIME_THREAD_POOL_H
#define HALATION_RUNTIME_THREAD_POOL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace halation::runtime {

class ThreadPool {
public:
    // Does task number `task`; `worker` is 0 on the caller's thread, and below the threads of the job and distinct among them.
    using Work = void (*)(void *data, int64_t task, int worker);

    explicit ThreadPool(int threads) : threads_(threads) {}
    ~ThreadPool();
    ThreadPool(const ThreadPool &) = delete;
    ThreadPool &operator=(const ThreadPool &) = delete;

    int threads() const { return threads_; }

    // Does tasks 0 .. tasks-1, each once, on at most `threads` threads, and returns when all are done. Workers
    // start when first wanted; where the system grants none, the caller does everything. One call at a time.
    void run(int64_t tasks, int threads, Work work, void *data);

private:
    void start_workers(int wanted);
    void serve();
    void take_tasks(int worker);

    const int threads_;
    std::vector<std::thread> workers_;

    std::mutex mutex_;
    std::condition_variable job_posted_, job_left_;
    int seats_ = 0;    // workers that may still join the job
    int working_ = 0;  // workers that joined and have not left
    bool stop_ = false;

    Work work_ = nullptr;
    void *data_ = nullptr;
    int64_t tasks_ = 0;
    alignas(64) std::atomic<int64_t> next_task_{0};
};

// Processors this process may use, at least 1.
int processor_count();

}  // namespace halation::runtime
#endif
