#include "metal_threads.h"

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <random>
#include <stdexcept>
#include <sys/mman.h>
#include <utility>
#include <vector>

// Saves the callee's registers on the stack and its stack pointer in *save, then goes on where `load` was saved.
extern "C" void halation_switch_fiber(void **save, void *load);
#if defined(__x86_64__)
asm(R"(
    .text
    .globl halation_switch_fiber
halation_switch_fiber:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
)");
#elif defined(__aarch64__)
asm(R"(
    .text
    .globl halation_switch_fiber
halation_switch_fiber:
    sub sp, sp, #160
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
)");
#else
#error "the Metal emulator switches fibers on x86-64 and 64-bit Arm"
#endif

namespace metal_emulator {
namespace {

// A stack that is a page longer than a power of two and a little more: otherwise those of all threads meet in the same lines of a
// cache.
constexpr size_t stack_bytes = (size_t(64) << 10) + 4096 + 64;

// Stacks of the most threads so far, of this thread of the host: touching new pages costs more than running.
class Stacks {
public:
    ~Stacks() { release(); }
    char *of(size_t threads) {
        if (threads > threads_) {
            release();
            memory_ =
                mmap(nullptr, threads * stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory_ == MAP_FAILED) throw std::bad_alloc();
            threads_ = threads;
        }
        return static_cast<char *>(memory_);
    }

private:
    void release() {
        if (threads_) munmap(memory_, threads_ * stack_bytes);
        threads_ = 0;
    }
    void *memory_ = nullptr;
    size_t threads_ = 0;
};
thread_local Stacks stacks;

thread_local std::set<int> barriers_left_out, barriers_met;

constexpr int running = 0, ended = -1;
struct Fiber {
    void *stack_pointer;
    unsigned id[3];
    int at;  // the line of the barrier that it waits at, or one of the above
};

// One threadgroup after the other, in the fibers of the same threads.
class Group {
public:
    Group(const Grid &grid, const Order &order, const GridCall &call) : call_(call), kind_(order.kind), random_(order.seed) {
        for (unsigned z = 0; z < grid.threads[2]; z++)
            for (unsigned y = 0; y < grid.threads[1]; y++)
                for (unsigned x = 0; x < grid.threads[0]; x++) fibers_.push_back({nullptr, {x, y, z}, running});
        turns_.resize(fibers_.size());
        std::iota(turns_.begin(), turns_.end(), size_t(0));
        if (kind_ == Order::reverse) std::reverse(turns_.begin(), turns_.end());
    }

    const char *run(const unsigned *position) {
        memcpy(position_, position, sizeof position_);
        if (call_.has_barriers) return run_fibers();
        shuffle();
        for (const size_t turn : turns_) call_.run(position_, fibers_[turn].id, call_.arguments);
        return nullptr;
    }

    void wait_at(int line) {
        current_->at = line;
        halation_switch_fiber(&current_->stack_pointer, home_);
    }

    static thread_local Group *active;

private:
    void shuffle() {
        if (kind_ == Order::shuffled) std::shuffle(turns_.begin(), turns_.end(), random_);
    }

    const char *run_fibers() {
        char *memory = stacks.of(fibers_.size());
        for (size_t i = 0; i < fibers_.size(); i++) start(fibers_[i], memory + (i + 1) * stack_bytes);
        active = this;
        for (;;) {
            shuffle();
            for (const size_t turn : turns_) {
                current_ = &fibers_[turn];
                current_->at = running;
                halation_switch_fiber(&home_, current_->stack_pointer);
            }
            const int first = fibers_[0].at;
            for (const Fiber &fiber : fibers_)
                if (fiber.at != first)
                    return fiber.at == ended || first == ended ? "a thread has ended while another waits at a barrier"
                                                               : "threads of a threadgroup wait at different barriers";
            if (first == ended) return nullptr;
            barriers_met.insert(first);
        }
    }

    // As if it had been switched away from before its first instruction.
    static void start(Fiber &fiber, char *end_of_stack) {
        auto *top = reinterpret_cast<void **>(end_of_stack - reinterpret_cast<uintptr_t>(end_of_stack) % 16);
#if defined(__x86_64__)
        *--top = nullptr;
        *--top = reinterpret_cast<void *>(enter);
        top -= 6;
        memset(top, 0, 6 * sizeof *top);
#else
        top -= 20;
        memset(top, 0, 20 * sizeof *top);
        top[11] = reinterpret_cast<void *>(enter);
#endif
        fiber.stack_pointer = top;
        fiber.at = running;
    }

    static void enter() {
        Group &group = *active;
        group.call_.run(group.position_, group.current_->id, group.call_.arguments);
        group.wait_at(ended);
        abort();  // an ended thread gets no further turn
    }

    const GridCall &call_;
    const Order::Kind kind_;
    std::mt19937 random_;
    unsigned position_[3] = {};
    std::vector<Fiber> fibers_;
    std::vector<size_t> turns_;
    Fiber *current_ = nullptr;
    void *home_ = nullptr;
};
thread_local Group *Group::active = nullptr;

// While one lives, a thread of the host that touches what it may not while it runs a kernel goes back to where the kernel was
// called. The handlers of others, such as those of a test's framework, are put back at the end.
class FaultGuard {
public:
    FaultGuard() {
        stack_t stack{};
        stack.ss_sp = stack_;
        stack.ss_size = sizeof stack_;
        sigaltstack(&stack, &old_stack_);
        const std::lock_guard<std::mutex> lock(mutex());
        if (guards()++ > 0) return;
        struct sigaction action {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigaction(SIGSEGV, &action, &others()[0]);
        sigaction(SIGBUS, &action, &others()[1]);
    }
    ~FaultGuard() {
        {
            const std::lock_guard<std::mutex> lock(mutex());
            if (--guards() == 0) {
                sigaction(SIGSEGV, &others()[0], nullptr);
                sigaction(SIGBUS, &others()[1], nullptr);
            }
        }
        sigaltstack(&old_stack_, nullptr);
    }

    static thread_local sigjmp_buf *escape;
    static thread_local void *address;

private:
    static void on_fault(int signal, siginfo_t *info, void *) {
        if (!escape) {  // not a kernel's: it happens again, and ends the program
            std::signal(signal, SIG_DFL);
            return;
        }
        address = info->si_addr;
        siglongjmp(*escape, 1);
    }
    static std::mutex &mutex() {
        static std::mutex made;
        return made;
    }
    static int &guards() {
        static int count = 0;
        return count;
    }
    static struct sigaction *others() {
        static struct sigaction actions[2];
        return actions;
    }
    alignas(16) char stack_[32768];
    stack_t old_stack_{};
};
thread_local sigjmp_buf *FaultGuard::escape = nullptr;
thread_local void *FaultGuard::address = nullptr;

// The numbers below n in the order's sequence; a shuffled one steps by a number that has no divisor in common with n.
class Sequence {
public:
    Sequence(size_t n, const Order &order) : n_(n), kind_(order.kind) {
        step_ = n * 5 / 8 + order.seed % 7 + 1;
        while (std::gcd(step_, n_) != 1) step_++;
    }
    size_t operator[](size_t i) const {
        return kind_ == Order::forward ? i : kind_ == Order::reverse ? n_ - 1 - i : i * step_ % n_;
    }

private:
    size_t n_, step_;
    Order::Kind kind_;
};

}  // namespace

Order Order::named(const std::string &name) {
    if (name == "forward") return {forward, 0};
    if (name == "reverse") return {reverse, 0};
    if (name.empty() || name.find_first_not_of("0123456789") != std::string::npos)
        throw std::runtime_error("order of threads: got '" + name + "'; may be forward, reverse or a number");
    return {shuffled, static_cast<unsigned>(std::strtoul(name.c_str(), nullptr, 10))};
}

void barrier(int line) {
    if (!barriers_left_out.count(line)) Group::active->wait_at(line);
}

void leave_out_barriers(const std::set<int> &lines) {
    barriers_left_out = lines;
}

std::set<int> take_barriers_met() {
    return std::exchange(barriers_met, {});
}

std::string run_grid(const Grid &grid, const Order &order, const GridCall &call) {
    const unsigned *n = grid.groups;
    const size_t count = size_t(n[0]) * n[1] * n[2];
    if (count == 0) return "";
    Group group(grid, order, call);
    const Sequence sequence(count, order);
    const FaultGuard guard;
    sigjmp_buf escape;
    if (sigsetjmp(escape, 1) != 0) {
        FaultGuard::escape = nullptr;
        return "a thread touches memory that it may not: " + call.describe_address(FaultGuard::address);
    }
    for (size_t i = 0; i < count; i++) {
        const auto at = static_cast<unsigned>(sequence[i]);
        const unsigned position[3] = {at % n[0], at / n[0] % n[1], at / n[0] / n[1]};
        call.before_group();
        FaultGuard::escape = &escape;
        const char *wrong = group.run(position);
        FaultGuard::escape = nullptr;
        if (wrong) return wrong;
    }
    return "";
}

}  // namespace metal_emulator
