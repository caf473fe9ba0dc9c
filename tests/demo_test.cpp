// The demonstration: its task is causal, its scores mean what they say, its errors leave nothing behind.
#include "cli/demo_counts.h"
#include "cli/demo_figures.h"
#include "cli/demo_measure.h"
#include "cli/html.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>

using namespace halation::demo;
namespace fs = std::filesystem;

namespace {

// Words in a fixed order that does not repeat soon.
std::vector<uint8_t> sample(size_t size) {
    const std::string words[] = {"one ", "two ", "three ", "four ", "five\n", "six ", "\n"};
    std::vector<uint8_t> bytes;
    for (uint32_t random = 1; bytes.size() < size; random = random * 1664525 + 1013904223) {
        const std::string &word = words[(random >> 24) % 7];
        bytes.insert(bytes.end(), word.begin(), word.end());
    }
    bytes.resize(size);
    return bytes;
}

Task task_of(std::vector<uint8_t> bytes, uint64_t seed = 1) {
    Text text;
    text.name = "sample";
    text.bytes = std::move(bytes);
    return Task(std::move(text), seed);
}

double dot(const float *x, const float *y) {
    double sum = 0;
    for (int d = 0; d < dim; d++) sum += static_cast<double>(x[d]) * y[d];
    return sum;
}

std::string contents(const fs::path &path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

// The program, run in a folder of its own.
class Folder {
protected:
    Folder() {
        std::string pattern = (fs::temp_directory_path() / "demo_test.XXXXXX").string();
        folder = mkdtemp(pattern.data());
    }
    ~Folder() { fs::remove_all(folder); }

    std::string write(const std::string &name, const std::vector<uint8_t> &bytes) const {
        std::ofstream(folder / name, std::ios::binary)
            .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return (folder / name).string();
    }
    // Exit code; what it printed is in out and error.
    int demo(const std::string &arguments) {
        const fs::path printed = folder / "printed", complained = folder / "complained";
        const int status = std::system(
            (HALATION_CLI " demo " + arguments + " >'" + printed.string() + "' 2>'" + complained.string() + "'").c_str());
        out = contents(printed);
        error = contents(complained);
        fs::remove(printed);
        fs::remove(complained);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    size_t files() const { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }

    fs::path folder;
    std::string out, error;
};

}  // namespace

TEST_CASE("keys, queries and values are unit vectors that say nothing of later bytes", "[demo]") {
    std::vector<uint8_t> bytes = sample(3000);
    const Task task = task_of(bytes);
    constexpr int64_t changed = 1500;
    bytes[changed] = 'X';
    const Task other = task_of(bytes);

    for (int64_t t = 0; t < task.tokens(); t++) {
        CHECK(std::abs(dot(task.values() + t * dim, task.values() + t * dim) - 1) < 1e-5);
        for (int h = 0; h < heads; h++) {
            const float *key = task.keys() + (t * heads + h) * dim, *query = task.queries() + (t * heads + h) * dim;
            CHECK(std::abs(dot(key, key) - 1) < 1e-5);
            if (t + 1 < task.tokens()) CHECK(std::equal(query, query + dim, key + heads * dim));
            const int64_t offset = (t * heads + h) * dim;
            CHECK(std::equal(query, query + dim, other.queries() + offset) == (t < changed || t > changed + h));
            CHECK(std::equal(key, key + dim, other.keys() + offset) == (t <= changed || t > changed + h + 1));
        }
    }
    CHECK_FALSE(std::equal(task.values(), task.values() + dim, task_of(sample(3000), 2).values()));
}

TEST_CASE("scored tokens are blocks in order that leave out the last byte", "[demo]") {
    for (int64_t tokens : {int64_t(2048), most_scored, most_scored + 1, most_scored + 2, int64_t(65536), int64_t(1000003)}) {
        const auto ranges = scored_ranges(tokens);
        int64_t count = 0, end = 0;
        for (const Range &range : ranges) {
            CHECK(range.first % block == 0);
            CHECK(range.first >= end);
            CHECK((range.count > 0 && range.count <= block));
            end = range.first + range.count;
            count += range.count;
        }
        CHECK(end < tokens);
        CHECK(count <= most_scored + block);
        if (tokens <= most_scored + 1) CHECK(count == tokens - 1);
    }
}

TEST_CASE("reads that give the next byte are scored as right, and empty reads as the prior", "[demo]") {
    const Task task = task_of(sample(6000));
    const auto ranges = scored_ranges(task.tokens());
    std::vector<float> right, empty;
    for (const Range &range : ranges) {
        for (int64_t t = range.first; t < range.first + range.count; t++) {
            for (int h = 0; h < heads; h++) {
                const float *value = task.values() + (t + 1) * dim;
                right.insert(right.end(), value, value + dim);
            }
        }
    }
    empty.resize(right.size());

    const Score perfect = score(task, ranges, right), prior = score(task, ranges, empty);
    CHECK(perfect.accuracy == 1);
    CHECK(perfect.bits < 0.05);
    const Score counts = score_byte_counts(task, ranges);
    CHECK(std::abs(prior.bits - counts.bits) < 0.05);
    CHECK(prior.accuracy == Approx(counts.accuracy));
    const Score table = score_context_counts(task, ranges);
    CHECK(table.bits < counts.bits);
    CHECK(table.accuracy > counts.accuracy);
}

TEST_CASE("the probabilities of the exact table sum to one", "[demo]") {
    const Task task = task_of(sample(2100));
    ContextTable table(task);
    for (int64_t t = 0; t < task.tokens(); t++) {
        table.see(t);
        double sum = 0;
        for (double p : table.probabilities()) sum += p;
        CHECK(sum == Approx(1));
    }
}

TEST_CASE("curves cross where lines on logarithmic axes do", "[demo]") {
    const std::vector<Point> flat = {{10, 4}, {100, 4}, {1000, 4}}, rising = {{10, 1}, {100, 10}, {1000, 100}};
    CHECK(crossover(flat, rising) == Approx(40));
    CHECK(crossover(rising, flat) == Approx(40));
    CHECK(std::isnan(crossover(flat, {{10, 5}, {100, 6}, {1000, 7}})));
}

TEST_CASE("axes hold their values between round ticks", "[demo]") {
    for (double high : {0.003, 1.0, 4.9, 57.0, 65536.0}) {
        const Axis axis = linear_axis("x", high);
        CHECK(axis.high >= high);
        CHECK((axis.ticks.size() >= 3 && axis.ticks.size() <= 7));
    }
    for (double low : {0.02, 1.0, 7.0}) {
        const Axis axis = logarithmic_axis("x", low, low * 5000, 10);
        CHECK(axis.low <= low * (1 + 1e-9));
        CHECK(axis.high >= low * 5000 * (1 - 1e-9));
        CHECK(axis.ticks.size() <= 9);
    }
    CHECK(halation::cli::escape("<a & 'b'>") == "&lt;a &amp; &#39;b&#39;&gt;");
}

TEST_CASE("notes of charts stand clear of curves and of each other", "[demo]") {
    LineChart chart;
    chart.x = linear_axis("x", 100);
    chart.y = linear_axis("y", 100);
    chart.series = {{"along the floor", 0, {{0, 4}, {100, 4}}}};
    chart.marks = {{{20, 4}, "here"}};
    const auto height_of = [](const std::string &page, const std::string &note) {
        const size_t at = page.rfind("y='", page.find(">" + note + "<"));
        return std::stod(page.substr(at + 3));
    };
    CHECK(height_of(svg(chart), "here") < 100);  // at the top
    chart.series = {{"along the top", 0, {{0, 96}, {100, 96}}}};
    CHECK(height_of(svg(chart), "here") > 200);

    BarChart bars;
    bars.rows = {{"row", 0}};
    for (double value : {1.0, 99.0}) {
        BarPanel panel;
        panel.axis = linear_axis("x", 100);
        panel.bars = {{50, "50"}};
        panel.references = {{value, "one"}, {value, "two"}};
        bars.panels.push_back(panel);
    }
    const std::string page = svg(bars);
    CHECK(std::abs(height_of(page, "one") - height_of(page, "two")) > 12);
    CHECK(page.find("class='note end'") != std::string::npos);  // in the panel, though its line is at the edge
}

TEST_CASE("a memory reads the same in one piece and in several", "[demo]") {
    const Task task = task_of(sample(2048));
    halation::Context context;
    context.add_kernels(*halation_kernels());
    for (const Memory &memory : memories()) {
        for (halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE}) {
            const std::string refused = refusal(context, memory, form);
            if (!refused.empty()) {
                UNSCOPED_INFO(memory.recurrence << ": " << refused);
                continue;
            }
            Runner whole(context, task, memory, form), parts(context, task, memory, form);
            if (!whole.has_state()) continue;
            std::vector<float> once(512 * heads * dim), twice(once.size());
            whole.load(0, 512);
            whole.run(0, 512, once.data());
            parts.load(0, 256);
            parts.run(0, 256, twice.data());
            parts.load(256, 256);
            parts.run(256, 256, twice.data() + 256 * heads * dim);
            INFO(memory.recurrence);
            CHECK(once == twice);
            CHECK(whole.state() == parts.state());
        }
    }
}

TEST_CASE_METHOD(Folder, "the report is one page that needs nothing else", "[demo]") {
    const std::string text = write("a <b>.txt", sample(4000)), report = (folder / "report.html").string();
    INFO(error);
    REQUIRE(demo("'" + text + "' -o '" + report + "' --recurrence linear,gated_delta,softmax --bytes 3000") == 0);
    const std::string page = contents(report);
    for (const char *expected : {"<!DOCTYPE html>", "a &lt;b&gt;.txt", "<svg", "gated_delta", "softmax", "</html>"}) {
        CHECK(page.find(expected) != std::string::npos);
    }
    for (const char *outside : {"http", "src=", "href=", "url(", "@import", "nan"}) {
        INFO(outside);
        CHECK(page.find(outside) == std::string::npos);
    }
    CHECK(page.find("softmax has no chunkwise form: ") != std::string::npos);  // not for want of kernels
    CHECK(out.find("gated_delta") != std::string::npos);
    CHECK(files() == 2);

    // Lists may have blanks too; paragraphs are a blank line apart, whatever they hold.
    for (const char *chosen : {"delta softmax", "delta,gated", "linear softmax"}) {
        REQUIRE(demo("'" + text + "' -o '" + report + "' --bytes 2048 --recurrence " + chosen) == 0);
        CHECK(out.find("\n\n\n") == std::string::npos);
        CHECK(out.find("\n\nreport: ") != std::string::npos);
    }
}

TEST_CASE_METHOD(Folder, "what the table and the charts of the report have in common is one measurement", "[demo]") {
    const std::string text = write("text", sample(4096)), report = (folder / "report.html").string();
    REQUIRE(demo("'" + text + "' -o '" + report + "' --recurrence linear,softmax") == 0);
    const std::string page = contents(report);
    const auto number_after = [&](const std::string &words, size_t from) {
        const size_t at = page.find(words, from);
        REQUIRE(at != std::string::npos);
        return std::stod(page.substr(at + words.size(), 20));
    };
    const size_t table = page.find("<h2>Time and memory"), charts = page.find("<h2>Cost against");
    for (const std::string recurrence : {"linear", "softmax"}) {
        // Written with two decimals here and three digits there.
        const double in_table = number_after("<td>" + recurrence + "</td><td class='n'>", table);
        CHECK(number_after("<title>" + recurrence + ": 4096, ", charts) == Approx(in_table).epsilon(0.01).margin(0.006));
    }
}

TEST_CASE_METHOD(Folder, "what cannot be shown is one line, and no report", "[demo]") {
    const std::string text = write("text", sample(4000)), tiny = write("tiny", sample(100));
    const std::string report = " -o '" + (folder / "report.html").string() + "'";
    const auto refused = [&](const std::string &arguments, const std::string &words) {
        INFO(arguments);
        CHECK(demo(arguments) != 0);
        INFO(error);
        CHECK(std::count(error.begin(), error.end(), '\n') == 1);
        CHECK(error.find(words) != std::string::npos);
        CHECK(out.empty());
        CHECK(files() == 2);
    };
    refused("'" + folder.string() + "/nothing'" + report, "No such file");
    refused("'" + folder.string() + "'" + report, "it is a directory");
    refused("'" + tiny + "'" + report, "too short: it has 100 bytes");
    refused("'" + text + "' --recurrence lineal" + report, "no recurrence 'lineal'; it has linear, ");
    refused("'" + text + "' -o '" + folder.string() + "/none/report.html'", "No such file");
    refused("'" + text + "' -o '" + folder.string() + "'", "Is a directory");
    refused("'" + text + "' -o '" + text + "'", "is both input and output, and would be lost");
    refused("'" + text + "' --bytes 5" + report, "'5' is no whole number from 2048 to 4194304");
}
