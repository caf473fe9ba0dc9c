#!/usr/bin/env python3
"""Where the CPU kernels stand, as a page of Markdown: beside ggml, beside the machine's limits, and over threads, lengths, sizes,
types and instruction sets. Everything is measured by `halation bench`, in one run; ratios to ggml are taken in turn.

    bench/standings.py build/release/cli/halation > bench/results/DATE-CPU-standings.md      (or: ./dev standings FILE)

A build with -DHALATION_BENCH_GGML=<prefix> has the columns of ggml. Takes about five minutes; the machine should be idle.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

# How many times as fast as ggml each is meant to be.
AIMS = {"gated_delta": 3.5, "kda": 3.6, "gla": 2.3, "gated": 2.0, "rwkv6": 2.2, "rwkv7": 1.6, "ssm": 4.0}
DECODE_AIMS = {"gated_delta": 2.8, "gla": 1.3, "gated": 1.1}
WITH_HEADS = [name for name in AIMS if name != "ssm"]
OTHERS = ["linear", "retention", "delta", "gla_outer"]
SAMPLE = ["gated_delta", "gla", "gated"]  # a delta rule, a gate by key channel, one by head


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("halation", help="the command line program")
    arguments.add_argument("--commit", default="", help="what to call the version measured (default: git describe)")
    options = arguments.parse_args()
    bench = Bench(options.halation)
    print(heading(bench, options.commit or version_here()))
    for section in (beside_ggml, decoding, softmax, limits, threads, lengths, memory, dimensions, types, short_sequences,
                    instruction_sets):
        print(section(bench), flush=True)


class Bench:
    """Runs `halation bench` and reads its JSON."""

    def __init__(self, halation):
        self.halation = halation

    def file(self, *words, threads="1"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.json")
            command = [self.halation, "bench", *words, "--threads", threads, "--json", path]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                sys.exit(f"standings: {' '.join(command)}: {done.stderr.strip()}")
            self.said = done.stdout
            with open(path) as results:
                return json.load(results)

    def results(self, *words, threads="1"):
        return self.file(*words, threads=threads)["results"]


def version_here():
    folder = os.path.dirname(os.path.abspath(__file__))
    command = ["git", "-C", folder, "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def table(head, rows):
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def section(title, command, text):
    return f"\n## {title}\n\n    halation bench {command}\n\n{text}"


def milliseconds(result):
    return f"{result['median_seconds'] * 1e3:.4g}"


def share(result):
    return f"{100 * result['limit_seconds'] / result['median_seconds']:.0f} % of {result['binding']}"


def ratio(result, peer):
    return f"{result['peers'][peer]:.2f}" if peer in result["peers"] else "-"


def per_token_and_head(result):
    return result["median_seconds"] / (result["batch"] * result["tokens"] * result["value_heads"])


def heading(bench, commit):
    file = bench.file("gated", "--tokens", "16", "--peers")
    ggml = [line for line in bench.said.splitlines() if line.startswith("x: ")][0].split("plain_loop.cpp. ")[1]
    return (f"# Standings of the CPU kernels, {file['date'][:10]}\n\n{file['cpu']}, {os.cpu_count()} processors; commit {commit}; "
            f"{ggml}. One thread, float32, B 1, H 16, K = V = 128, T 4096, median times, unless said otherwise. Made by\n"
            "`./dev standings`; `halation bench --help` says what the limits are.")


def peers_table(results, aims):
    rows = [[r["recurrence"], milliseconds(r), share(r), ratio(r, "plain"), ratio(r, "ggml"), aims[r["recurrence"]]] for r in results]
    return table(["", "ms", "limit", "x plain loop", "x ggml", "aim"], rows)


def beside_ggml(bench):
    results = bench.results(*WITH_HEADS, "--peers")
    results += bench.results("ssm", "--key-dim", "16", "--value-dim", "2048", "--peers")
    return section("Beside ggml", f"{' '.join(WITH_HEADS)} --peers; ssm --key-dim 16 --value-dim 2048 --peers", peers_table(results, AIMS))


def decoding(bench):
    words = [*DECODE_AIMS, "--tokens", "1", "--peers"]
    return section("One token", " ".join(words), peers_table(bench.results(*words), DECODE_AIMS))


def softmax(bench):
    rows = []
    for what, words in (("decode after 4096 cached tokens", ("--tokens", "1")), ("prefill, T 2048", ("--tokens", "2048"))):
        rows += [[what, milliseconds(r), share(r), ratio(r, "ggml")] for r in bench.results("softmax", *words, "--peers")]
    return section("softmax", "softmax --tokens 1,2048 --peers", table(["", "ms", "limit", "x ggml"], rows))


def limits(bench):
    names = WITH_HEADS + OTHERS
    shares = {name: [name] for name in names}
    for extent in ("64", "128", "256"):
        for result in bench.results(*names, "--key-dim", extent, "--value-dim", extent):
            shares[result["recurrence"]].append(share(result))
    return section("Share of the limit that binds, K = V", f"{' '.join(names)} --key-dim D --value-dim D",
                   table(["", 64, 128, 256], shares.values()))


def threads(bench):
    rows = []
    for heads, tokens, aim in (("16", "4096", 1.9), ("1", "16384", 1.6)):
        words = ["gated_delta", "gla", "--heads-count", heads, "--tokens", tokens]
        one, two = bench.results(*words), bench.results(*words, threads="2")
        rows += [[a["recurrence"], heads, f"{a['median_seconds'] / b['median_seconds']:.2f}", aim] for a, b in zip(one, two)]
    return section("Two threads", "gated_delta gla --threads 1,2; --heads-count 1 --tokens 16384",
                   table(["", "heads", "times one thread", "aim"], rows))


def over(bench, base, others, words_of, names=SAMPLE):
    """Time per token and head in terms of that of `base`."""
    def times(value):
        return {r["recurrence"]: per_token_and_head(r) for r in bench.results(*names, *words_of(value))}
    reference = times(base)
    columns = [times(value) for value in others]
    return [[name, *(f"{column[name] / reference[name]:.3f}" for column in columns)] for name in names]


def lengths(bench):
    others = ("65536", "4095", "4097")
    rows = over(bench, "4096", others, lambda tokens: ("--heads-count", "4", "--tokens", tokens))
    return section("Time a token, T 4096 = 1; aim 1.05", f"{' '.join(SAMPLE)} --heads-count 4 --tokens T", table(["", *others], rows))


def memory(bench):
    """Each in a process of its own, so that what earlier calls left is not counted as there already."""
    lengths_shown = ("1024", "4096", "65536")
    rows = []
    for name in SAMPLE + ["rwkv7", "ssm", "softmax"]:
        shown = lengths_shown if name != "softmax" else lengths_shown[:2]
        cells = [bench.results(name, "--heads-count", "4", "--tokens", tokens, "--repetitions", "1")[0] for tokens in shown]
        rows.append([name, *(f"{cell['memory_bytes'] / 2**20:.1f}" for cell in cells), *["-"] * (len(lengths_shown) - len(cells))])
    return section("Memory beyond inputs and outputs, MiB, pages of code included; aim: a few, whatever T",
                   "NAME --heads-count 4 --tokens T --json FILE (memory_bytes)", table(["", *lengths_shown], rows))


def dimensions(bench):
    rows = []
    per_element = {}
    extents = (128, 64, 96, 160, 60)
    for extent in extents:
        for result in bench.results(*SAMPLE, "--key-dim", str(extent), "--value-dim", str(extent)):
            per_element.setdefault(result["recurrence"], []).append(per_token_and_head(result) / extent**2)
    rows = [[name, *(f"{time / times[0]:.2f}" for time in times[1:])] for name, times in per_element.items()]
    return section("Time per element of the state, K = V = 128 = 1; aim 1.3", f"{' '.join(SAMPLE)} --key-dim D --value-dim D",
                   table(["", *extents[1:]], rows))


def types(bench):
    rows = over(bench, "f32", ("f16", "bf16"), lambda type: ("--type", type))
    return section("Types of q, k, v, o, float32 = 1; aim 1.1", f"{' '.join(SAMPLE)} --type TYPE", table(["", "f16", "bf16"], rows))


def short_sequences(bench):
    shapes = {"4096": ("--tokens", "4096"), "16": ("--tokens", "16", "--batch", "256")}
    rows = over(bench, "4096", ("16",), lambda tokens: shapes[tokens])
    return section("256 sequences of 16 tokens, one of 4096 = 1; aim 1.3", f"{' '.join(SAMPLE)} --tokens 16 --batch 256",
                   table(["", "times"], rows))


def instruction_sets(bench):
    rows = over(bench, "avx512", ("avx2",), lambda isa: ("--isa", isa), WITH_HEADS)
    return section("AVX2, AVX-512 = 1; aim 1.25", f"{' '.join(WITH_HEADS)} --isa ISA", table(["", "avx2"], rows))


if __name__ == "__main__":
    main()
