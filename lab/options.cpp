#include "options.h"

#include "subject.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace halation::lab {

const char *const words_help =
    "WORDS are NAME=VALUE for parameters of the schedule ('list' shows them), the name of a schedule of your own, or @FILE:\n"
    "a text file of such words, or the file of a sweep, of which it is the best. Commas may stand for blanks.\n";

void add_subject_options(CLI::App &command, SubjectOptions &options) {
    Subject &s = options.subject;
    constexpr int64_t most_tokens = 1 << 24, most_extent = 1 << 20;
    const auto number = [&](const char *name, auto &value, const char *help, const char *text, int64_t least, int64_t most) {
        command.add_option(name, value, help)->check(cli::between(least, most))->option_text(text);
    };
    command.add_option("RECURRENCE", s.recurrence, "one of those that 'list' shows")->required()->option_text("");
    cli::add_words(command, "--form", s.form, {"recurrent", "chunkwise", "parallel"},
                   "(default: the first of chunkwise, parallel\nthat it has)");
    cli::add_words(command, "--backend", s.backend, {"cpu"}, "(default: cpu)");
    cli::add_words(command, "--isa", s.isa, {"x86_64", "avx2", "avx512", "neon"}, "(default: the best that\nthis machine has)");
    cli::add_words(command, "--type", s.type, {"f32", "f16", "bf16"}, "of q, k, v, o (default: f32)");
    cli::add_words(command, "--gates", s.gates, {"f32", "f16", "bf16"}, "type of gates (default: f32)");
    cli::add_words(command, "--feature-map", s.feature_map, {"elu+1", "relu", "softmax", "identity"},
                   "where the recurrence\nhas one");
    number("--tokens", s.tokens, "length T of a sequence (default: 4096; recurrent: 1)", "T", 1, most_tokens);
    number("--cached", options.cached, "softmax: tokens in the cache before those (default: 4096 if\nrecurrent, else none)", "N",
           0, most_tokens);
    number("--batch", s.batch, "sequences (default: 1)", "B", 1, most_extent);
    number("--heads-count", s.heads, "heads of q and k (default: 16)", "H", 1, most_extent);
    number("--value-heads-count", s.value_heads, "heads of v (default: as many)", "HV", 1, most_extent);
    number("--key-dim", s.key_dim, "key channels; N of ssm (default: 128)", "K", 1, 65536);
    number("--value-dim", s.value_dim, "value channels; D of ssm and hgrn (default: 128)", "V", 1, 65536);
    command.add_flag("--known-dims", options.known_dims, "kernels for that K and V alone, which the compiler knows");
    number("--threads", s.threads, "threads of a timed call, 0: one per processor (default: 1)", "N", 0, 1024);
}

Subject subject_of(const SubjectOptions &options) {
    Subject s = options.subject;
    const Recurrence recurrence = recurrence_named(s.recurrence);
    if (s.form.empty()) {
        for (const Form form : {Form::chunkwise, Form::parallel})
            if (s.form.empty() && recurrence.refused[static_cast<size_t>(form)].empty()) s.form = name_of(form);
    }
    if (s.tokens == 0) s.tokens = s.form == "recurrent" ? 1 : 4096;
    if (s.isa.empty()) s.isa = cpu_machine(Halide::get_host_target()).isa;
    if (s.value_heads == 0) s.value_heads = s.heads;
    if (s.value_heads % s.heads != 0)
        throw cli::Error("--value-heads-count: got " + std::to_string(s.value_heads) + "; must be a multiple of the " +
                         std::to_string(s.heads) + " heads of q and k");
    // Rows without heads.
    if (recurrence.output_dims == "BTV") s.heads = s.value_heads = 1;
    if (recurrence.state_dims == "NV") s.key_dim = 1;
    const bool cache = recurrence.generator == "halation_softmax";
    if (options.cached >= 0 && !cache) throw cli::Error("--cached: " + s.recurrence + " has no cache; softmax has");
    if (cache) s.cached = options.cached >= 0 ? options.cached : s.form == "recurrent" ? 4096 : 0;
    s.known_key_dim = s.known_value_dim = options.known_dims;
    // Refused here if at all, before anything is made. An ISA that the processor lacks could not be timed.
    shipped_variant_of(s);
    const Halide::Target host = Halide::get_host_target();
    for (const auto &[isa, feature] :
         {std::make_pair("avx512", Halide::Target::AVX512_Skylake), std::make_pair("avx2", Halide::Target::AVX2)})
        if (s.isa == isa && !host.has_feature(feature)) throw cli::Error("--isa " + s.isa + ": this processor does not have it");
    if ((s.isa == "neon") != (host.arch == Halide::Target::ARM))
        throw cli::Error("--isa " + s.isa + ": is not of this processor's architecture");
    return s;
}

namespace {

std::vector<std::string> split(std::string text) {
    std::replace(text.begin(), text.end(), ',', ' ');
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}

// Files may name files, but not each other for ever.
constexpr int deepest = 8;

void add_word(Choice &choice, const std::string &word, int depth);

void add_file(Choice &choice, const std::string &path, int depth) {
    if (depth > deepest) throw cli::Error(path + " is named within itself");
    if (std::filesystem::is_directory(path)) throw cli::Error("cannot read " + path + ": it is a folder");
    std::ifstream in(path);
    if (!in) throw cli::Error("cannot read " + path + ": " + std::strerror(errno));
    if (in.peek() == '{') {
        const Sweep sweep = read_sweep(path);
        const Result *best = sweep.best();
        if (!best) throw cli::Error(path + ": no candidate of this sweep was timed");
        if (!sweep.subject.schedule.empty()) choice.schedule = sweep.subject.schedule;
        for (const auto &[name, value] : best->parameters) choice.parameters[name] = value;
        return;
    }
    for (std::string line; std::getline(in, line);)
        for (const std::string &word : split(line.substr(0, line.find('#')))) add_word(choice, word, depth + 1);
}

void add_word(Choice &choice, const std::string &word, int depth) {
    if (word[0] == '@') return add_file(choice, word.substr(1), depth);
    if (word == "shipped") return;
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
        if (!choice.schedule.empty() && choice.schedule != word)
            throw cli::Error("two schedules are named: " + choice.schedule + " and " + word);
        choice.schedule = word;
        return;
    }
    const std::string value = word.substr(equals + 1);
    int64_t number = 0;
    if (!CLI::detail::lexical_cast(value, number) || number < 0 || number > INT32_MAX)
        throw cli::Error("'" + word + "': '" + value + "' is no whole number");
    choice.parameters[word.substr(0, equals)] = static_cast<int>(number);
}

}  // namespace

Choice choice_of(const std::vector<std::string> &words) {
    Choice choice;
    for (const std::string &word : words) {
        if (word.rfind('@', 0) == 0)  // names of files may have blanks
            add_word(choice, word, 0);
        else
            for (const std::string &part : split(word)) add_word(choice, part, 0);
    }
    return choice;
}

std::string text_of(const Choice &choice) {
    std::string text = choice.schedule;
    if (!choice.parameters.empty()) text += (text.empty() ? "" : ", ") + text_of(choice.parameters);
    return text.empty() ? "as shipped" : text;
}

void require_parameter(const Subject &subject, const std::string &name, const std::vector<int> &values) {
    std::string list;
    for (const ScheduleParameter &known : parameters_of(subject)) {
        list += (list.empty() ? "" : ", ") + known.name;
        if (known.name != name) continue;
        for (const int value : values)
            if (value < known.least || value > known.most)
                throw cli::Error(name + ": got " + std::to_string(value) + "; may be " + std::to_string(known.least) + " to " +
                                 std::to_string(known.most));
        return;
    }
    throw cli::Error("the schedule of " + subject.recurrence + " " + subject.form + " has no parameter '" + name + "'; it has " +
                     list);
}

void require_parameters(const Subject &subject, const Parameters &parameters) {
    for (const auto &[name, value] : parameters) require_parameter(subject, name, {value});
    variant_of(subject, parameters);
}

std::function<void()> guarded(std::function<void()> work) {
    return [work = std::move(work)] {
        try {
            work();
        } catch (const Halide::Error &error) {  // which is no std::exception
            throw cli::Error(error.what());
        }
    };
}

}  // namespace halation::lab
