#include "candidate.h"

#include "check.h"
#include "generators/kernel_files.h"
#include "measure.h"
#include "process.h"
#include "subject.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <sys/file.h>
#include <unistd.h>

namespace halation::lab {
namespace {

using Json = nlohmann::json;

// A candidate by what a step is told of it.
Json json_of(const Subject &subject, const Parameters &parameters, const std::string &directory) {
    return {{"subject", line_of(subject)}, {"parameters", parameters}, {"directory", directory}};
}

struct Task {
    Subject subject;
    Parameters parameters;
    std::string directory;
    Variant variant;

    explicit Task(const Json &json)
        : subject(subject_of(json.at("subject").get<std::string>())), parameters(json.at("parameters").get<Parameters>()),
          directory(json.at("directory").get<std::string>()), variant(variant_of(subject, parameters)) {}
    std::string shared_object() const { return directory + "/" + variant.name + ".so"; }
};

// Runs this program again, as one of its hidden commands. /proc/self/exe is this program even if its file was replaced since.
// What it returns is its result, after a mark: a schedule may print what it likes before.
constexpr const char *mark = "\nhalation-lab result: ";

std::string run_step(const std::string &step, const Json &input, double timeout_seconds) {
    const Finished finished = run_process({"/proc/self/exe", step}, timeout_seconds, input.dump());
    if (finished.timed_out) throw std::runtime_error(fmt::format("it took more than {:.0f} s", timeout_seconds));
    if (!finished.succeeded()) throw std::runtime_error(finished.reason());
    const size_t at = finished.out.rfind(mark);
    if (at == std::string::npos) throw std::runtime_error("it ended without a result");
    return finished.out.substr(at + std::strlen(mark));
}

}  // namespace

std::string run_lab_step(std::string (*step)(const std::string &), const std::string &input) {
    return mark + step(input);
}

Result make_and_check(const Subject &subject, const Parameters &parameters, const std::string &directory,
                      double timeout_seconds) {
    Result result;
    try {
        result = result_of(run_step("step-make-and-check", json_of(subject, parameters, directory), timeout_seconds));
    } catch (const std::exception &error) {
        result.reason = std::string("making or checking it: ") + error.what();
    }
    result.parameters = parameters;
    return result;
}

std::string step_make_and_check(const std::string &input) {
    const Json json = Json::parse(input);
    Result result;
    try {
        const Task task(json);
        const auto begin = std::chrono::steady_clock::now();
        const std::string made = make_shared_object(task.variant, task.directory);
        result.compile_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        const LoadedKernel kernel(task.variant, made);
        const Checked checked = check_kernel(kernel, task.subject);
        result.error = checked.error;
        result.allowed = checked.allowed;
        result.status = checked.right() ? Status::timed : Status::wrong;
        if (!checked.right())
            result.reason = fmt::format("{}: error {:.1e}, allowed {:.1e}", checked.worst, checked.error, checked.allowed);
    } catch (const Halide::Error &error) {
        result.status = Status::refused;
        result.reason = error.what();
    }
    return line_of(result);
}

std::string step_show(const std::string &input) {
    const Json json = Json::parse(input);
    const Task task(json);
    write_kernel(task.variant, task.directory, json.at("kinds").get<std::vector<std::string>>());
    return Json(loop_nest_of(task.variant)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string write_and_show(const Subject &subject, const Parameters &parameters, const std::string &directory,
                           const std::vector<std::string> &kinds) {
    Json input = json_of(subject, parameters, directory);
    input["kinds"] = kinds;
    return Json::parse(run_step("step-show", input, 600)).get<std::string>();
}

void time_candidate(const Subject &subject, const std::string &directory, const Subject &other,
                    const Parameters &other_parameters, const std::string &other_directory, double seconds, Result &result) {
    const Json input = {{"first", json_of(other, other_parameters, other_directory)},
                        {"second", json_of(subject, result.parameters, directory)},
                        {"seconds", seconds}};
    Json json;
    try {
        json = Json::parse(run_step("step-time", input, 60 + 100 * seconds));
    } catch (const std::exception &error) {
        result.status = Status::failed;
        result.reason = std::string("timing it: ") + error.what();
        return;
    }
    result.seconds = json.at("seconds").get<double>(), result.least = json.at("least").get<double>();
    result.ratio = json.at("ratio").get<double>(), result.ratio_low = json.at("ratio_low").get<double>();
    result.ratio_high = json.at("ratio_high").get<double>();
    result.shipped_seconds = json.at("first").get<double>();
}

std::string step_time(const std::string &input) {
    const Json json = Json::parse(input);
    const Task first(json.at("first")), second(json.at("second"));
    const LoadedKernel first_kernel(first.variant, first.shared_object()), second_kernel(second.variant, second.shared_object());
    const bench::Paired times = measure(first_kernel, second_kernel, second.subject, json.at("seconds").get<double>());
    return Json{{"first", times.first}, {"seconds", times.second},      {"least", times.least_second},
                {"ratio", times.ratio}, {"ratio_low", times.ratio_low}, {"ratio_high", times.ratio_high}}
        .dump();
}

namespace {

constexpr const char *folder_start = "halation-lab-", *lock_name = "/lock";

// Those of processes that were killed: their locks are free.
void remove_abandoned(const std::filesystem::path &where) {
    std::error_code ignored;
    for (const auto &entry : std::filesystem::directory_iterator(where, ignored)) {
        if (entry.path().filename().string().rfind(folder_start, 0) != 0) continue;
        const int lock = open((entry.path().string() + lock_name).c_str(), O_RDWR | O_CLOEXEC);
        if (lock < 0) continue;
        if (flock(lock, LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(entry.path(), ignored);
        close(lock);
    }
}

}  // namespace

WorkFolder::WorkFolder() {
    const std::filesystem::path where = std::filesystem::temp_directory_path();
    remove_abandoned(where);
    std::string name = (where / (std::string(folder_start) + "XXXXXX")).string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a folder " + name + ": " + std::strerror(errno));
    path_ = name;
    lock_ = open((path_ + lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock_ >= 0) flock(lock_, LOCK_EX);
}

WorkFolder::~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    if (lock_ >= 0) close(lock_);
}

std::string WorkFolder::sub(const std::string &name) const {
    std::filesystem::create_directories(path_ + "/" + name);
    return path_ + "/" + name;
}

}  // namespace halation::lab
