#!/usr/bin/env bash
# Checks and times the kernels of a build on a machine with an NVIDIA GPU, on which nothing has to be installed or compiled:
#     bench/gpu.sh BUILD [FILE.safetensors...]
# BUILD: the folder of a build made elsewhere (`./dev build`, then copy build/release/{cli,tests,bench}); files are checked, too.
set -euo pipefail
[ $# -ge 1 ] && [ -x "$1/bench/device_bench" ] || { echo "usage: $0 BUILD [FILE.safetensors...]; BUILD has bench/device_bench" >&2; exit 2; }
build=$1
shift
echo "== devices"
"$build/cli/halation" list | sed -n '/^This machine/,$p'
echo "== tests"
HALATION_REQUIRE_CUDA=1 "$build/tests/device_test" "[cuda]"
HALATION_TEST_BACKEND=cuda "$build/tests/kernels_device_test"
if [ $# -gt 0 ]; then
    echo "== files"
    "$build/cli/halation" check "$@" --backend cuda
fi
if command -v compute-sanitizer >/dev/null && [ $# -gt 0 ]; then
    for tool in memcheck racecheck; do
        echo "== compute-sanitizer $tool"
        compute-sanitizer --tool $tool --error-exitcode 1 "$build/cli/halation" check "$1" --backend cuda | tail -1
    done
fi
echo "== times"
"$build/bench/device_bench"
