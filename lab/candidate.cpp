#include "candidate.h"

#include "check.h"
#include "measure.h"
#include "process.h"
#include "subject.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>

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

// Runs this program again, as one of its hidden commands.
Finished run_step(const std::string &step, const Json &input, double timeout_seconds) {
    return run_process({std::filesystem::read_symlink("/proc/self/exe").string(), step}, timeout_seconds, input.dump());
}

}  // namespace

Result make_and_check(const Subject &subject, const Parameters &parameters, const std::string &directory,
                      double timeout_seconds) {
    const Finished finished = run_step("step-make-and-check", json_of(subject, parameters, directory), timeout_seconds);
    Result result;
    result.parameters = parameters;
    if (finished.succeeded()) {
        result = result_of(finished.out);
        result.parameters = parameters;
    } else {
        result.reason = finished.timed_out ? fmt::format("making and checking it took more than {:.0f} s", timeout_seconds)
                                           : "making or checking it: " + finished.reason();
    }
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

void time_candidate(const Subject &subject, const std::string &directory, const Subject &other,
                    const Parameters &other_parameters, const std::string &other_directory, double seconds, Result &result) {
    const Json input = {{"first", json_of(other, other_parameters, other_directory)},
                        {"second", json_of(subject, result.parameters, directory)},
                        {"seconds", seconds}};
    const double timeout = 60 + 100 * seconds;
    const Finished finished = run_step("step-time", input, timeout);
    if (!finished.succeeded()) {
        result.status = Status::failed;
        result.reason =
            finished.timed_out ? fmt::format("timing it took more than {:.0f} s", timeout) : "timing it: " + finished.reason();
        return;
    }
    const Json json = Json::parse(finished.out);
    result.seconds = json.at("seconds").get<double>(), result.least = json.at("least").get<double>();
    result.ratio = json.at("ratio").get<double>(), result.ratio_low = json.at("ratio_low").get<double>();
    result.ratio_high = json.at("ratio_high").get<double>();
}

std::string step_time(const std::string &input) {
    const Json json = Json::parse(input);
    const Task first(json.at("first")), second(json.at("second"));
    const LoadedKernel first_kernel(first.variant, first.shared_object()), second_kernel(second.variant, second.shared_object());
    const bench::Paired times = measure(first_kernel, second_kernel, second.subject, json.at("seconds").get<double>());
    return Json{{"seconds", times.second},
                {"least", times.least_second},
                {"ratio", times.ratio},
                {"ratio_low", times.ratio_low},
                {"ratio_high", times.ratio_high}}
        .dump();
}

WorkFolder::WorkFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "halation-lab-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a folder " + name + ": " + std::strerror(errno));
    path_ = name;
}

WorkFolder::~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string WorkFolder::sub(const std::string &name) const {
    std::filesystem::create_directories(path_ + "/" + name);
    return path_ + "/" + name;
}

}  // namespace halation::lab
