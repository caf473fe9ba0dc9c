// halation-lab as its users run it, on kernels small enough to be quick.
#include "cli_fixture.h"

#include "lab/results.h"

namespace {

using namespace cli_tests;
using Catch::Contains;
using Catch::StartsWith;

// Small, and on the ISA that any x86-64 processor has.
const std::string small = " --tokens 40 --heads-count 1 --key-dim 8 --value-dim 16 --seconds 0.01 ";

class Lab : protected Cli {
protected:
    // In the folder of files, where sweeps leave theirs.
    Outcome lab(const std::string &arguments) const {
        return outcome_of("cd '" + (folder / "files").string() + "' && " HALATION_LAB " " + arguments);
    }
    std::string only_line(const Outcome &outcome, int code) const {
        CHECK(outcome.code == code);
        CHECK(std::count(outcome.error.begin(), outcome.error.end(), '\n') == 1);
        return outcome.error;
    }
};

}  // namespace

TEST_CASE_METHOD(Lab, "lab: list and help") {
    for (const char *command : {"", "list", "show", "try", "compare", "sweep", "keep"})
        CHECK(lab(std::string(command) + " --help").code == 0);
    CHECK_THAT(lab("--help").out, !Contains("step-"));
    const Outcome outcome = lab("list");
    CHECK(outcome.code == 0);
    for (const char *text : {"gated_delta ", "value_gated ", "softmax ", "chunkwise      chunk ", "tiles\n", "own_tile"})
        CHECK_THAT(outcome.out, Contains(text));
}

TEST_CASE_METHOD(Lab, "lab: try makes, checks and times") {
    Outcome outcome = lab("try gated_delta chunk=8" + small);
    INFO(outcome.error);
    CHECK(outcome.code == 0);
    for (const char *text :
         {"schedule   chunk=8\n", "right      error ", "of the shipped schedule's", "limit      ", " % of the speed that "})
        CHECK_THAT(outcome.out, Contains(text));
    std::ofstream(path("words.txt")) << "# mine\nchunk=8, segment=16  # a comment\n";
    CHECK_THAT(lab("try gla @words.txt" + small).out, Contains("schedule   chunk=8,segment=16\n"));
    for (const char *subject :
         {"value_gated --form parallel", "gated tiles own_tile=2", "ssm", "hgrn --form recurrent", "softmax",
          "linear_normalized --feature-map relu --type bf16", "delta --known-dims --key-dim 8 --value-dim 64"}) {
        outcome = lab("try " + std::string(subject) +
                      (std::string(subject).find("dims") == std::string::npos ? small : " --tokens 9 --seconds 0.01"));
        INFO(subject << ": " << outcome.error);
        CHECK(outcome.code == 0);
        CHECK_THAT(outcome.out, Contains("right      error "));
    }
}

TEST_CASE_METHOD(Lab, "lab: a wrong kernel, one that crashes and one that the schedule refuses are told apart") {
    Outcome outcome = lab("try fickle" + small);
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.out, Contains("WRONG      ") && Contains(" at B ") && !Contains("time "));
    CHECK_THAT(only_line(lab("try gated crashes" + small), 1), Contains("failed: ") && Contains("Aborted"));
    CHECK_THAT(only_line(lab("try gated breaks" + small), 1), Contains("refused: "));
    CHECK_THAT(only_line(lab("try gated leaves" + small), 1), Contains("it ended without a result"));
    CHECK_THAT(only_line(lab("try overflows" + small), 1), Contains("even in the plain loop, so that nothing can be checked"));
    CHECK(lab("try gated chatters" + small).code == 0);
    outcome = lab("compare gated tiles breaks" + small);
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.out, Contains("tiles: made in ") && Contains("breaks: refused: "));
}

TEST_CASE_METHOD(Lab, "lab: compare") {
    const Outcome outcome = lab("compare gated_delta shipped chunk=2,segment=32" + small);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Contains("A          as shipped: made in ") && Contains("B          chunk=2,segment=32: made in ") &&
                                Contains("B / A      "));
}

TEST_CASE_METHOD(Lab, "lab: show") {
    const Outcome outcome = lab("show gated_delta --output shown chunk=8");
    INFO(outcome.error);
    CHECK(outcome.code == 0);
    for (const char *text : {"chunk                      8", "produce output", "store state_before", "state_reads",
                             "gated_delta_chunkwise.stmt.html"})
        CHECK_THAT(outcome.out, Contains(text));
    for (const char *file : {".s", ".o", ".stmt", ".stmt.html"})
        CHECK(fs::file_size(path("shown/gated_delta_chunkwise") + file) > 1000);
    CHECK(lab("show gated_delta --llvm-mca no-such-program").code == 0);  // which says so, and shows the rest
}

TEST_CASE_METHOD(Lab, "lab: a sweep is written down, gone on with, and kept") {
    const std::string sweep = "sweep gated_delta --name found --search grid value_vectors=1,2 chunk=2,4 segment=30,32" + small;
    Outcome outcome = lab(sweep + "--candidates 3");
    INFO(outcome.error);
    CHECK(outcome.code == 0);
    CHECK_THAT(
        outcome.out,
        Contains("3 candidates, and more to try with the same command; found.jsonl and found.html hold them\nbest       "));
    CHECK_THAT(outcome.error, Contains("making 3 candidates\n"));
    halation::lab::Sweep read = halation::lab::read_sweep(path("found.jsonl"));
    CHECK(read.results.size() == 3);

    outcome = lab(sweep);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.error, Contains("going on with found.jsonl, which has 3 candidates\n"));
    read = halation::lab::read_sweep(path("found.jsonl"));
    CHECK(read.results.size() == 8);
    int timed = 0;
    for (const halation::lab::Result &result : read.results) {
        if (result.status == halation::lab::Status::timed) timed++;
        // 30 is no multiple of 4.
        CHECK((result.status == halation::lab::Status::refused) ==
              (result.parameters.at("segment") == 30 && result.parameters.at("chunk") == 4));
        if (result.status == halation::lab::Status::timed)
            CHECK((result.error > 0 && result.error < result.allowed && result.ratio > 0));
    }
    CHECK(timed == 6);
    CHECK_THAT(contents(path("found.html")), StartsWith("<!DOCTYPE html>") && Contains("value_vectors"));

    CHECK_THAT(only_line(lab("sweep gla --name found --search grid chunk=2,4" + small), 1),
               Contains("found.jsonl is of another sweep: gated_delta"));
    CHECK_THAT(only_line(lab("sweep gated_delta --name found chunk=2,4" + small), 1), Contains("it has other parameters"));

    CHECK_THAT(lab("try gated_delta @found.jsonl" + small).out, Contains("chunk="));
    std::ofstream(path("tuned.txt")) << "recurrence=kda form=chunkwise parameters=chunk=2\n";
    for (int i = 0; i < 2; i++) CHECK(lab("keep found.jsonl").code == 0);
    const std::string kept = contents(path("tuned.txt"));
    CHECK(std::count(kept.begin(), kept.end(), '\n') == 2);
    CHECK_THAT(
        kept,
        StartsWith("recurrence=kda form=chunkwise parameters=chunk=2\nrecurrence=gated_delta form=chunkwise backend=cpu isa=") &&
            Contains(" type=f32 parameters=chunk="));
}

TEST_CASE_METHOD(Lab, "lab: a sweep that cannot begin leaves nothing that the next trips over, and two cannot write one file") {
    const std::string sweep = "sweep gla --name begun --search grid chunk=2,4" + small;
    CHECK(outcome_of("cd '" + (folder / "files").string() + "' && CXX=no-such-compiler " HALATION_LAB " " + sweep).code == 1);
    CHECK(lab(sweep).code == 0);
    CHECK(lab(sweep).code == 0);  // all known: only the last round again
    CHECK(halation::lab::read_sweep(path("begun.jsonl")).results.size() == 2);
    const halation::lab::SweepWriter other(path("begun.jsonl"));
    CHECK_THAT(lab(sweep).error, Contains("begun.jsonl: another sweep is writing it"));
}

TEST_CASE_METHOD(Lab, "lab: what is stopped stops what it started") {
    const Outcome outcome = outcome_of("cd '" + (folder / "files").string() +
                                       "' && export TMPDIR=$PWD && timeout -s KILL 3 " HALATION_LAB " try gated hangs" + small);
    CHECK(outcome.code == 137);
    CHECK(outcome_of("sleep 0.3; pgrep -f '^/proc/self/exe step-'").code == 1);
    CHECK(
        outcome_of("cd '" + (folder / "files").string() + "' && export TMPDIR=$PWD && " HALATION_LAB " try gated" + small).code ==
        0);
    CHECK(fs::is_empty(folder / "files"));  // the folder of the one that was killed included
}

TEST_CASE_METHOD(Lab, "lab: a climb with a schedule of one's own, some candidates of which crash") {
    Outcome outcome = lab("sweep gated tiles --name climb own_tile=1..2 --from own_tile=2" + small);
    CHECK(outcome.code == 0);
    CHECK(halation::lab::read_sweep(path("climb.jsonl")).results.front().parameters.at("own_tile") == 2);
    CHECK_THAT(contents(path("climb.html")), Contains("own_tile"));
    outcome = lab("sweep gated crashes --name crash chunk=2,4" + small);
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.error, Contains("no candidate could be timed"));
    for (const halation::lab::Result &result : halation::lab::read_sweep(path("crash.jsonl")).results)
        CHECK(result.status == halation::lab::Status::failed);
}

TEST_CASE_METHOD(Lab, "lab: what is wrong with a command line is one line") {
    const std::pair<const char *, const char *> wrong[] = {
        {"try nothing", "no recurrence named 'nothing'; there are: linear, "},
        {"try gated_delta chunks=8", "the schedule of gated_delta chunkwise has no parameter 'chunks'; it has chunk, "},
        {"try gated_delta chunk=eight", "'chunk=eight': 'eight' is no whole number"},
        {"try gated_delta chunk=1000", "chunk: got 1000; may be 2 to 64"},
        {"try gated hastens --form recurrent", "state_taken is computed outside state_reads"},
        {"try gated_delta chunk=6", "segment: got 128; must be a multiple of chunk, 6"},
        {"try gated_delta decode_key_unroll=2", "the schedule of gated_delta chunkwise has no parameter 'decode_key_unroll'"},
        {"try gated_delta mine", "no schedule 'mine' was registered; there are: breaks, "},
        {"try gated_delta outside", "schedule 'outside': parameter 'own_tile' is not from its least to its most"},
        {"try gated_delta @.", "cannot read .: it is a folder"},
        {"try gated_delta @itself.txt", "itself.txt is named within itself"},
        {"try gated_delta tiles breaks", "two schedules are named: tiles and breaks"},
        {"try gated_delta own_tile=2", "has no parameter 'own_tile'"},
        {"try gated_delta @none.txt", "cannot read none.txt: No such file or directory"},
        {"try ssm --form parallel", "ssm has no parallel form: "},
        {"try bidirectional --form recurrent", "bidirectional has no recurrent form: "},
        {"try gated_delta --cached 5", "--cached: gated_delta has no cache; softmax has"},
        {"try gated --feature-map relu", "no feature map 'relu'"},
        {"try gated --gates bf16", "no gate type 'bf16'; there are: f32"},
        {"try gated --value-heads-count 24", "--value-heads-count: got 24; must be a multiple of the 16 heads of q and k"},
        {"sweep gated chunk=", "'chunk=': gives no values"},
        {"sweep gated chunk=4..2", "'chunk=4..2': '4..2' is neither a whole number nor a range"},
        {"sweep gated chunk=2,x", "'chunk=2,x': 'x' is neither"},
        {"sweep gated --from tiles", "--from: names schedule tiles"},
        {"sweep gated --search grid chunk=2..64 key_unroll=1..64 segment=2..1000", "--search random"},
        {"sweep gated --name no/such/folder/name chunk=4", "no/such/folder/name.jsonl"},
        {"keep none.jsonl", "cannot read none.jsonl: "},
    };
    std::ofstream(path("itself.txt")) << "@itself.txt";
    for (const auto &[arguments, message] : wrong) {
        INFO(arguments);
        CHECK_THAT(only_line(lab(arguments), 1), StartsWith("test_lab: ") && Contains(message));
    }
    for (const char *arguments : {"", "tri", "try", "try gated --form sideways", "try gated --tokens 0",
                                  "try gated --seconds nan", "sweep gated --jobs 0"}) {
        INFO(arguments);
        CHECK_THAT(only_line(lab(arguments), 2), StartsWith("test_lab: "));
    }
    CHECK_THAT(only_line(outcome_of("CXX=no-such-compiler " HALATION_LAB " try gated" + small), 1),
               Contains("no-such-compiler cannot be started"));
}
