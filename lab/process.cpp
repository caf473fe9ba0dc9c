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
#include <sys/wait.h>
#include <tuple>
#include <unistd.h>

namespace halation::lab {
namespace {

// Both ends close on exec: a process that another thread starts meanwhile must not hold one open.
struct Pipe {
    int read = -1, write = -1;
    Pipe() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("no pipe: ") + std::strerror(errno));
        read = ends[0], write = ends[1];
    }
    ~Pipe() { close_read(), close_write(); }
    Pipe(const Pipe &) = delete;
    Pipe &operator=(const Pipe &) = delete;
    void close_read() { close_end(read); }
    void close_write() { close_end(write); }

private:
    static void close_end(int &end) {
        if (end >= 0) close(end);
        end = -1;
    }
};

// In the child; only what is allowed after a fork.
[[noreturn]] void become(char *const *argv, const Pipe &in, const Pipe &out, const Pipe &err, const Pipe &failure) {
    setpgid(0, 0);
    dup2(in.read, 0);
    dup2(out.write, 1);
    dup2(err.write, 2);
    execvp(argv[0], argv);
    const int code = errno;
    if (write(failure.write, &code, sizeof code) < 0) _exit(126);
    _exit(127);
}

using Clock = std::chrono::steady_clock;

// Feeds and drains the pipes until the child has closed its own. False: the time is over.
bool exchange(Pipe &in, Pipe &out, Pipe &err, const std::string &input, Finished &finished, Clock::time_point end) {
    size_t given = 0;
    if (input.empty()) in.close_write();
    // A write that waited would keep what the child writes from being read, on which the child may wait.
    if (in.write >= 0) fcntl(in.write, F_SETFL, O_NONBLOCK);
    while (out.read >= 0 || err.read >= 0) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0) return false;
        pollfd polled[] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}, {in.write, POLLOUT, 0}};
        if (poll(polled, 3, static_cast<int>(std::min<long long>(left, 1000))) < 0 && errno != EINTR) return false;
        char buffer[65536];
        for (auto [pipe, text, events] :
             {std::make_tuple(&out, &finished.out, polled[0].revents), std::make_tuple(&err, &finished.err, polled[1].revents)}) {
            if (pipe->read < 0 || !events) continue;
            const ssize_t count = read(pipe->read, buffer, sizeof buffer);
            if (count > 0)
                text->append(buffer, static_cast<size_t>(count));
            else
                pipe->close_read();
        }
        if (in.write >= 0 && polled[2].revents) {
            const ssize_t count = write(in.write, input.data() + given, input.size() - given);
            if (count > 0) given += static_cast<size_t>(count);
            if ((count < 0 && errno != EAGAIN) || given == input.size()) in.close_write();
        }
    }
    return true;
}

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
    const bool failed = read(failure.read, &code, sizeof code) == sizeof code;
    Finished finished;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
    finished.timed_out = !failed && !exchange(in, out, err, input, finished, end);
    if (finished.timed_out) kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (failed) throw std::runtime_error(argv[0] + " cannot be started: " + std::strerror(code));
    finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    finished.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
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
