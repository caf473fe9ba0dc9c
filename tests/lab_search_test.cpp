// What a sweep tries, and the file it keeps.
#include "lab/process.h"
#include "lab/results.h"
#include "lab/search.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <set>

using namespace halation::lab;

namespace {

std::vector<Axis> axes() {
    return {{"chunk", {2, 4, 8}, 4}, {"tile", {1, 2, 3, 4}, 2}, {"unroll", {1, 2, 4, 8}, 4}};
}

Result timed(const Parameters &parameters, double ratio) {
    Result result;
    result.parameters = parameters;
    result.status = Status::timed;
    result.ratio = ratio;
    return result;
}

// The best is at chunk 8, tile 3, unroll 1.
double bowl(const Parameters &p) {
    const auto square = [](double x) { return x * x; };
    return 1 + square(std::log2(p.at("chunk")) - 3) + square(p.at("tile") - 3) + square(std::log2(p.at("unroll")));
}

// Runs a search to its end; every candidate once.
std::vector<Result> run(Candidates &candidates, size_t at_most = 1000) {
    std::vector<Result> results;
    std::set<Parameters> seen;
    while (results.size() < at_most) {
        const std::vector<Parameters> next = candidates.next(results);
        if (next.empty()) break;
        for (const Parameters &parameters : next) {
            CHECK(seen.insert(parameters).second);
            results.push_back(timed(parameters, bowl(parameters)));
        }
    }
    return results;
}

double best(const std::vector<Result> &results) {
    double least = INFINITY;
    for (const Result &result : results) least = std::min(least, result.ratio);
    return least;
}

const Parameters poor = {{"chunk", 2}, {"tile", 1}, {"unroll", 8}};

std::string path() {
    return "lab_search_test.jsonl";
}

Sweep sweep() {
    Sweep s;
    s.subject = {"gated_delta", "chunkwise", "cpu", "avx512", "f32", "f32", "", "mine", 1, 4096, 16, 32, 128, 64, true, false, 1};
    s.limit = {"A \"CPU\"", 1e9, 2e8, 1e11, 4e10};
    s.axes = axes();
    s.date = "2026-01-02 03:04";
    return s;
}

}  // namespace

TEST_CASE("A climb finds the best of a bowl from a poor start, with a part of the grid") {
    Candidates candidates(Search::climb, axes(), poor, 1);
    const std::vector<Result> results = run(candidates);
    CHECK(results.front().parameters == poor);
    CHECK(best(results) == 1);
    CHECK(results.size() < 48);
}

TEST_CASE("A climb goes on where a file ends, and past a start that cannot be timed") {
    Candidates first(Search::climb, axes(), poor, 1);
    std::vector<Result> results;
    for (const Parameters &parameters : first.next(results)) results.push_back(timed(parameters, bowl(parameters)));
    Candidates second(Search::climb, axes(), poor, 1);
    for (std::vector<Parameters> next = second.next(results); !next.empty(); next = second.next(results))
        for (const Parameters &parameters : next) results.push_back(timed(parameters, bowl(parameters)));
    CHECK(best(results) == 1);

    Candidates third(Search::climb, axes(), poor, 1);
    results.clear();
    for (std::vector<Parameters> next = third.next(results); !next.empty(); next = third.next(results))
        for (const Parameters &parameters : next) {
            Result result = timed(parameters, bowl(parameters));
            if (parameters == poor || parameters.at("chunk") == 4) result.status = Status::refused;
            results.push_back(result);
        }
    const auto is_best = [](const Result &r) { return r.status == Status::timed && r.ratio == 1; };
    CHECK(std::any_of(results.begin(), results.end(), is_best));

    Candidates none(Search::climb, axes(), poor, 1);
    results.clear();
    for (std::vector<Parameters> next = none.next(results); !next.empty(); next = none.next(results))
        for (const Parameters &parameters : next) {
            results.push_back(timed(parameters, 1));
            results.back().status = Status::wrong;
        }
    CHECK(results.size() < 20);
}

TEST_CASE("A grid and random search try each combination once") {
    Candidates grid(Search::grid, axes(), poor, 1), random(Search::random, axes(), poor, 3);
    CHECK(grid.combinations() == 48);
    CHECK(run(grid).size() == 48);
    CHECK(run(random).size() == 48);
    Candidates other(Search::random, axes(), poor, 4), same(Search::random, axes(), poor, 4);
    CHECK(other.next({}) == same.next({}));
    std::vector<Axis> vast;
    for (int i = 0; i < 10; i++) vast.push_back({"p" + std::to_string(i), {1, 2, 3, 4, 5}, 1});
    CHECK_THROWS_WITH(Candidates(Search::grid, vast, {}, 1), Catch::Contains("--search random"));
    CHECK(Candidates(Search::random, vast, {}, 1).next({}).size() > 0);
}

TEST_CASE("The file of a sweep is read as it was written, and gone on with") {
    std::remove(path().c_str());
    const Sweep written = sweep();
    Result good = timed(poor, 0.97), bad = timed({{"chunk", 4}}, 0);
    good.error = 1e-7, good.seconds = 0.04, good.ratio_low = 0.96, good.ratio_high = 0.98;
    bad.status = Status::wrong, bad.reason = "o at \"B 1\", <b>\n", bad.error = INFINITY;
    {
        SweepWriter writer(path());
        writer.begin(written);
        writer.add(good);
    }
    {
        SweepWriter writer(path());
        writer.add(bad);
    }
    Sweep read = read_sweep(path());
    CHECK(line_of(read.subject) == line_of(written.subject));
    CHECK(read.subject.schedule == "mine");
    CHECK(read.limit.cpu == written.limit.cpu);
    CHECK(read.limit.seconds() == 0.01);
    CHECK(std::string(read.limit.binding()) == "multiply-adds");
    CHECK(read.date == written.date);
    REQUIRE(read.axes.size() == 3);
    CHECK(read.axes[1].values == std::vector<int>{1, 2, 3, 4});
    REQUIRE(read.results.size() == 2);
    CHECK(read.results[0].ratio_high == 0.98);
    CHECK(read.results[1].reason == bad.reason);
    CHECK(std::isinf(read.results[1].error));
    CHECK(read.best()->parameters == poor);
    Sweep lucky;
    lucky.results = {timed({{"chunk", 2}}, 0.5), timed({{"chunk", 4}}, 0.9)};
    lucky.results[1].last_round = true;
    CHECK(lucky.best()->parameters.at("chunk") == 4);

    // A candidate that was timed again has its later figures; a line that was not finished is dropped.
    good.ratio = 0.99;
    {
        SweepWriter writer(path());
        writer.add(good);
    }
    FILE *file = std::fopen(path().c_str(), "a");
    std::fputs("{\"status\": \"tim", file);
    std::fclose(file);
    read = read_sweep(path());
    REQUIRE(read.results.size() == 2);
    CHECK(read.results[0].ratio == 0.99);
    {
        SweepWriter writer(path());
        writer.add(timed({{"chunk", 8}}, 0.5));
    }
    CHECK(read_sweep(path()).results.size() == 3);
    std::remove(path().c_str());
}

TEST_CASE("What is not the file of a sweep is refused by line") {
    const auto refusal = [](const char *text) {
        FILE *file = std::fopen(path().c_str(), "w");
        std::fputs(text, file);
        std::fclose(file);
        try {
            read_sweep(path());
        } catch (const std::exception &error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(refusal("") == path() + " is empty");
    CHECK_THAT(refusal("{}\n"), Catch::StartsWith(path() + ", line 1: this is not the file of a sweep"));
    CHECK_THAT(refusal("[1]\n"), Catch::StartsWith(path() + ", line 1: "));
    CHECK_THAT(refusal("{\"halation_sweep\": 1}\n"), Catch::StartsWith(path() + ", line 1: "));
    SweepWriter(path()).begin(sweep());
    std::remove(path().c_str());
    CHECK_THROWS_WITH(read_sweep("no/such"), Catch::StartsWith("cannot read no/such: "));
}

TEST_CASE("Processes: what they write, how they end, and when they take too long") {
    Finished finished = run_process({"sh", "-c", "cat; echo err >&2; exit 3"}, 10, "given");
    CHECK(finished.out == "given");
    CHECK(finished.err == "err\n");
    CHECK(finished.code == 3);
    CHECK(finished.reason() == "err");
    finished = run_process({"sh", "-c", "kill -SEGV $$"}, 10);
    CHECK(finished.signal != 0);
    CHECK_THAT(finished.reason(), Catch::StartsWith("it was ended by: "));
    finished = run_process({"sh", "-c", "sleep 100 & wait"}, 0.2);
    CHECK(finished.timed_out);
    CHECK(finished.reason() == "it took too long");
    CHECK(run_process({"sh", "-c", "exec >&- 2>&-; sleep 100"}, 0.2).timed_out);
    CHECK(run_process({"sh", "-c", "sleep 100 & echo done"}, 20).out == "done\n");  // which does not wait for it, nor do we
    const std::string large(3000000, 'x');
    CHECK(run_process({"cat"}, 10, large).out == large);
    CHECK(run_process({"true"}, 10, large).succeeded());  // which does not read it
    CHECK_THROWS_WITH(run_process({"no-such-program"}, 1), Catch::StartsWith("no-such-program cannot be started: "));
    CHECK(in_path("sh"));
    CHECK_FALSE(in_path("no-such-program"));
}
