#include "candidate.h"

#include "check.h"
#include "generators/kernel_files.h"
#include "measure.h"
#include "process.h"
#include "subject.h"

#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace halation::lab {
namespace {

using Json = nlohmann::json;

// A candidate as a step is told of it, and back.
Json json_of(const Candidate &candidate) {
    return {{"subject", line_of(candidate.subject)}, {"parameters", candidate.parameters}, {"directory", candidate.directory}};
}

Candidate candidate_of(const Json &json) {
    return {subject_of(json.at("subject").get<std::string>()), json.at("parameters").get<Parameters>(),
            json.at("directory").get<std::string>()};
}

Variant variant_of(const Candidate &candidate) {
    return variant_of(candidate.subject, candidate.parameters);
}

// Of a candidate that was made.
LoadedKernel loaded(const Candidate &candidate) {
    const Variant variant = variant_of(candidate);
    return LoadedKernel(variant, shared_object_of(variant, candidate.directory));
}

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

Result make_and_check(const Candidate &candidate, double timeout_seconds) {
    Result result;
    try {
        result = result_of(run_step("step-make-and-check", json_of(candidate), timeout_seconds));
    } catch (const std::exception &error) {
        result.reason = std::string("making or checking it: ") + error.what();
    }
    result.parameters = candidate.parameters;
    return result;
}

std::string step_make_and_check(const std::string &input) {
    const Json json = Json::parse(input);
    Result result;
    try {
        const Candidate candidate = candidate_of(json);
        const auto begin = std::chrono::steady_clock::now();
        make_shared_object(variant_of(candidate), candidate.directory);
        result.compile_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        const Checked checked = check_kernel(loaded(candidate), candidate.subject);
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
    const Candidate candidate = candidate_of(json);
    const Variant variant = variant_of(candidate);
    write_kernel(variant, candidate.directory, json.at("kinds").get<std::vector<std::string>>());
    return Json(loop_nest_of(variant)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string write_and_show(const Candidate &candidate, const std::vector<std::string> &kinds) {
    Json input = json_of(candidate);
    input["kinds"] = kinds;
    return Json::parse(run_step("step-show", input, 600)).get<std::string>();
}

void time_candidate(const Candidate &candidate, const Candidate &other, double seconds, Result &result) {
    const Json input = {{"first", json_of(other)}, {"second", json_of(candidate)}, {"seconds", seconds}};
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
    const Candidate first = candidate_of(json.at("first")), second = candidate_of(json.at("second"));
    const LoadedKernel first_kernel = loaded(first), second_kernel = loaded(second);
    const bench::Paired times = measure(first_kernel, second_kernel, second.subject, json.at("seconds").get<double>());
    return Json{{"first", times.first}, {"seconds", times.second},      {"least", times.least_second},
                {"ratio", times.ratio}, {"ratio_low", times.ratio_low}, {"ratio_high", times.ratio_high}}
        .dump();
}

}  // namespace halation::lab
