#include "results.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <sys/file.h>
#include <unistd.h>

namespace halation::lab {
namespace {

using Json = nlohmann::ordered_json;

const char *const status_names[] = {"timed", "refused", "wrong", "failed"};

// Field by field, in one place for reading and writing: `each` is called with a name and the field.
template<typename S, typename Each> void fields_of_subject(S &s, Each each) {
    each("recurrence", s.recurrence), each("form", s.form), each("backend", s.backend), each("isa", s.isa);
    each("type", s.type), each("gates", s.gates), each("feature_map", s.feature_map), each("schedule", s.schedule);
    each("batch", s.batch), each("tokens", s.tokens), each("heads", s.heads), each("value_heads", s.value_heads);
    each("key_dim", s.key_dim), each("value_dim", s.value_dim);
    each("known_key_dim", s.known_key_dim), each("known_value_dim", s.known_value_dim), each("threads", s.threads),
        each("cached", s.cached);
}
template<typename S, typename Each> void fields_of_limit(S &s, Each each) {
    each("cpu", s.cpu), each("multiply_adds", s.multiply_adds), each("bytes", s.bytes);
    each("multiply_adds_per_second", s.multiply_adds_per_second), each("bytes_per_second", s.bytes_per_second);
}
template<typename S, typename Each> void fields_of_axis(S &s, Each each) {
    each("name", s.name), each("values", s.values), each("shipped", s.shipped);
}
template<typename S, typename Each> void fields_of_result(S &s, Each each) {
    each("parameters", s.parameters), each("reason", s.reason), each("error", s.error), each("allowed", s.allowed);
    each("compile_seconds", s.compile_seconds), each("seconds", s.seconds), each("least", s.least),
        each("shipped_seconds", s.shipped_seconds), each("last_round", s.last_round);
    each("ratio", s.ratio), each("ratio_low", s.ratio_low), each("ratio_high", s.ratio_high);
}

// JSON has no infinity: an error of a NaN in a result.
Json number(double value) {
    return std::isfinite(value) ? Json(value) : Json("infinite");
}

struct Writer {
    Json &json;
    template<typename T> void operator()(const char *name, const T &value) { json[name] = value; }
    void operator()(const char *name, double value) { json[name] = number(value); }
};

struct Reader {
    const Json &json;
    template<typename T> void operator()(const char *name, T &value) { value = json.at(name).get<T>(); }
    void operator()(const char *name, double &value) {
        value = json.at(name).is_string() ? INFINITY : json.at(name).get<double>();
    }
};

Json json_of(const Sweep &sweep) {
    Json json;
    json["halation_sweep"] = 1;
    json["date"] = sweep.date;
    Json subject, limit;
    fields_of_subject(sweep.subject, Writer{subject});
    fields_of_limit(sweep.limit, Writer{limit});
    json["subject"] = subject;
    json["limit"] = limit;
    json["axes"] = Json::array();
    for (const Axis &axis : sweep.axes) {
        Json one;
        fields_of_axis(axis, Writer{one});
        json["axes"].push_back(one);
    }
    return json;
}

void read_head(const Json &json, Sweep &sweep) {
    if (!json.is_object() || json.value("halation_sweep", 0) != 1)
        throw std::runtime_error("this is not the file of a sweep (its first line has no \"halation_sweep\": 1)");
    sweep.date = json.at("date").get<std::string>();
    fields_of_subject(sweep.subject, Reader{json.at("subject")});
    fields_of_limit(sweep.limit, Reader{json.at("limit")});
    for (const Json &one : json.at("axes")) fields_of_axis(sweep.axes.emplace_back(), Reader{one});
}

}  // namespace

std::string line_of(const Subject &subject) {
    Json json;
    fields_of_subject(subject, Writer{json});
    return json.dump();
}

Subject subject_of(const std::string &line) {
    Subject subject;
    const Json json = Json::parse(line);
    fields_of_subject(subject, Reader{json});
    return subject;
}

std::string line_of(const Result &result) {
    Json json;
    json["status"] = name_of(result.status);
    fields_of_result(result, Writer{json});
    // Reasons may hold whatever a compiler said.
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result result_of(const std::string &line) {
    const Json json = Json::parse(line);
    Result result;
    const std::string status = json.at("status").get<std::string>();
    const auto found = std::find(std::begin(status_names), std::end(status_names), status);
    if (found == std::end(status_names)) throw std::runtime_error("no status is called '" + status + "'");
    result.status = static_cast<Status>(found - std::begin(status_names));
    fields_of_result(result, Reader{json});
    return result;
}

std::string text_of(const Parameters &parameters) {
    std::string text;
    for (const auto &[name, value] : parameters) text += (text.empty() ? "" : ",") + name + "=" + std::to_string(value);
    return text;
}

double Limit::seconds() const {
    return std::max(multiply_adds / multiply_adds_per_second, bytes / bytes_per_second);
}

const char *Limit::binding() const {
    return multiply_adds / multiply_adds_per_second >= bytes / bytes_per_second ? "multiply-adds" : "memory";
}

const char *name_of(Status status) {
    return status_names[static_cast<int>(status)];
}

const Result *Sweep::best() const {
    const Result *best = nullptr;
    for (const Result &result : results) {
        if (result.status != Status::timed || !(result.ratio > 0) || !std::isfinite(result.ratio)) continue;
        if (!best || (result.last_round && !best->last_round) ||
            (result.last_round == best->last_round && result.ratio < best->ratio))
            best = &result;
    }
    return best;
}

void Sweep::put(const Result &result) {
    for (Result &known : results)
        if (known.parameters == result.parameters) {
            known = result;
            return;
        }
    results.push_back(result);
}

Sweep read_sweep(const std::string &path) {
    std::ifstream in(path);
    if (!in) throw std::runtime_error("cannot read " + path + ": " + std::strerror(errno));
    Sweep sweep;
    int number = 0;
    for (std::string line; std::getline(in, line);) {
        number++;
        // A sweep that was stopped while it wrote leaves a last line without its end: that candidate is tried again.
        if (in.eof() && number > 1) break;
        try {
            if (number == 1)
                read_head(Json::parse(line), sweep);
            else
                sweep.put(result_of(line));
        } catch (const std::exception &error) {
            throw std::runtime_error(path + ", line " + std::to_string(number) + ": " + error.what());
        }
    }
    if (number == 0) throw std::runtime_error(path + " is empty");
    return sweep;
}

SweepWriter::SweepWriter(const std::string &path) : path_(path) {
    file_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0) fail(std::strerror(errno));
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
        const std::string what = errno == EWOULDBLOCK ? "another sweep is writing it" : std::strerror(errno);
        close(file_);
        fail(what);
    }
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const size_t whole = text.find_last_of('\n') + 1;
    if (whole != text.size() && ftruncate(file_, static_cast<off_t>(whole)) != 0) fail(std::strerror(errno));
    empty_ = whole == 0;
}

SweepWriter::~SweepWriter() {
    if (file_ >= 0) close(file_);
}

void SweepWriter::fail(const std::string &what) const {
    throw std::runtime_error("cannot write " + path_ + ": " + what);
}

void SweepWriter::begin(const Sweep &sweep) {
    line(json_of(sweep).dump());
}

void SweepWriter::add(const Result &result) {
    line(line_of(result));
}

void SweepWriter::line(const std::string &text) {
    const std::string whole = text + "\n";
    for (size_t written = 0; written < whole.size();) {
        const ssize_t count = write(file_, whole.data() + written, whole.size() - written);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) fail(std::strerror(errno));
        written += static_cast<size_t>(count);
    }
    empty_ = false;
}

}  // namespace halation::lab
