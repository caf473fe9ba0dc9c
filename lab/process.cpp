#include "process.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

namespace halation::lab {
namespace {

// Both ends close on exec: a process that another thread starts meanwhile must not hold one open.
struct Pipe {
    int read = -1, write = -1;
    Pipe() {
        int ends[2];
        if (make(ends) != 0) throw std::runtime_error(std::string("no pipe: ") + std::strerror(errno));
        read = ends[0], write = ends[1];
    }
    ~Pipe() { close_read(), close_write(); }
    Pipe(const Pipe &) = delete;
    Pipe &operator=(const Pipe &) = delete;
    void close_read() { close_end(read); }
    void close_write() { close_end(write); }

private:
    static int make(int (&ends)[2]) {
#ifdef __APPLE__  // which has no pipe2: a process that is started between the two calls does hold them open
        if (pipe(ends) != 0) return -1;
        for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
        return 0;
#else
        return pipe2(ends, O_CLOEXEC);
#endif
    }
    static void close_end(int &end) {
        if (end >= 0) close(end);
        end = -1;
    }
};

// In the child; only what is allowed after a fork.
[[noreturn]] void become(char *const *argv, const Pipe &in, const Pipe &out, const Pipe &err, const Pipe &failure) {
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a loop without end must not outlive whoever asked for it
#endif
    dup2(in.read, 0);
    dup2(out.write, 1);
    dup2(err.write, 2);
    execvp(argv[0], argv);
    const int code = errno;
    if (write(failure.write, &code, sizeof code) < 0) _exit(126);
    _exit(127);
}

using Clock = std::chrono::steady_clock;

// A child and what it says, until it has ended.
class Child {
public:
    Child(pid_t child, Pipe &in, Pipe &out, Pipe &err, const std::string &input, Finished &finished)
        : child_(child), in_(in), out_(out), err_(err), input_(input), finished_(finished) {
        if (input.empty()) in_.close_write();
        // A write that waited would keep what the child writes from being read, on which the child may wait.
        if (in_.write >= 0) fcntl(in_.write, F_SETFL, O_NONBLOCK);
        for (const int end : {out_.read, err_.read}) fcntl(end, F_SETFL, O_NONBLOCK);
    }

    // Feeds and drains the pipes until the child has ended, whoever still holds them. False: the time is over.
    bool wait(Clock::time_point end) {
        while (true) {
            const bool ended = waitpid(child_, &status_, WNOHANG) == child_;
            exchange(ended ? 0 : 20);
            if (ended) return true;
            if (Clock::now() > end) return false;
        }
    }

    // Ends the child, unless it has, and all that it started.
    void kill_all(bool ended) {
        kill(-child_, SIGKILL);
        while (!ended && waitpid(child_, &status_, 0) < 0 && errno == EINTR) {
        }
        finished_.code = WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
        finished_.signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
    }

private:
    void exchange(int milliseconds) {
        pollfd polled[] = {{out_.read, POLLIN, 0}, {err_.read, POLLIN, 0}, {in_.write, POLLOUT, 0}};
        if (poll(polled, 3, milliseconds) <= 0) return;
        drain(out_, finished_.out);
        drain(err_, finished_.err);
        if (in_.write < 0 || !polled[2].revents) return;
        const ssize_t count = write(in_.write, input_.data() + given_, input_.size() - given_);
        if (count > 0) given_ += static_cast<size_t>(count);
        if ((count < 0 && errno != EAGAIN) || given_ == input_.size()) in_.close_write();
    }

    static void drain(Pipe &pipe, std::string &text) {
        char buffer[65536];
        while (pipe.read >= 0) {
            const ssize_t count = read(pipe.read, buffer, sizeof buffer);
            if (count == 0) pipe.close_read();
            if (count <= 0) return;
            text.append(buffer, static_cast<size_t>(count));
        }
    }

    pid_t child_;
    Pipe &in_, &out_, &err_;
    const std::string &input_;
    Finished &finished_;
    size_t given_ = 0;
    int status_ = 0;
};

}  // namespace

std::string Finished::reason() const {
    if (timed_out) return "it took too long";
    if (signal) return std::string("it was ended by: ") + strsignal(signal);
    std::istringstream lines(err);
    std::string last;
    for (std::string line; std::getline(lines, line);)
        if (!line.empty()) last = line;
    return last.empty() ? "exit code " + std::to_string(code) : last;
}

Finished run_process(const std::vector<std::string> &argv, double timeout_seconds, const std::string &input) {
    // Without a reader, writing to a pipe would end this program.
    static const auto ignored = std::signal(SIGPIPE, SIG_IGN);
    (void)ignored;
    std::vector<char *> arguments;
    for (const std::string &argument : argv) arguments.push_back(const_cast<char *>(argument.c_str()));
    arguments.push_back(nullptr);
    Pipe in, out, err, failure;
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error(argv[0] + " cannot be started: " + std::strerror(errno));
    if (child == 0) become(arguments.data(), in, out, err, failure);
    in.close_read(), out.close_write(), err.close_write(), failure.close_write();
    int code = 0;
    if (read(failure.read, &code, sizeof code) == sizeof code) {
        waitpid(child, nullptr, 0);
        throw std::runtime_error(argv[0] + " cannot be started: " + std::strerror(code));
    }
    Finished finished;
    Child running(child, in, out, err, input, finished);
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
    finished.timed_out = !running.wait(end);
    running.kill_all(!finished.timed_out);
    return finished;
}

bool in_path(const std::string &program) {
    if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0;
    const char *path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
    return false;
}

}  // namespace halation::lab
