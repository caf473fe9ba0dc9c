#!/usr/bin/env bash
# Checks and times the kernels of a build on a machine with an NVIDIA GPU, on which nothing has to be installed or compiled:
#     COMMIT=8d45ff2 bench/gpu.sh BUILD [FILE.safetensors...] >bench/results/DATE-CARD.md
# BUILD: the folder of a build made elsewhere, of COMMIT (`./dev build`, then copy build/release/{cli,tests,bench}); files are
# checked, too, the first also under compute-sanitizer. TESTS, TIMES: options of kernels_device_test and device_bench, all their
# cases without. What goes to standard output is Markdown; it ends, with a code that is not 0, at the first thing that is wrong.
set -euo pipefail
[ $# -ge 1 ] && [ -x "$1/bench/device_bench" ] || { echo "usage: $0 BUILD [FILE.safetensors...]; BUILD has bench/device_bench" >&2; exit 2; }
build=$1
shift
commit=${COMMIT:-$(git -C "$(dirname "$0")" describe --always --dirty 2>/dev/null || true)}
[ -n "$commit" ] || { echo "$0: no git here to say what BUILD was made of; must be said as COMMIT=..." >&2; exit 2; }

# record NAME COMMAND...: what it says last goes into the document, everything to where a person looks.
record() {
    local name=$1 line
    shift
    echo "== $name" >&2
    line=$("$@" | tee >(cat >&2) | grep . | tail -n 1)
    printf -- '- %s: %s\n' "$name" "$line"
}

card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)
devices=$("$build/cli/halation" list | sed -n '/^This machine/,$p')
printf '# Kernels on a GPU: %s, %s\n\nA build of %s; driver%s. Made by `bench/gpu.sh`.\n\n' "${card%,*}" "$(date -u +%F)" "$commit" "${card##*,}"
printf '## Checks\n\n%s\n\n' "$(sed 's/^/    /' <<<"$devices")"
record device_test env HALATION_REQUIRE_CUDA=1 "$build/tests/device_test" "[cuda]"
# shellcheck disable=SC2086  # several options
record kernels_device_test env HALATION_TEST_BACKEND=cuda "$build/tests/kernels_device_test" ${TESTS:-}
if [ $# -gt 0 ]; then
    record "$# files" "$build/cli/halation" check "$@" --backend cuda
    if command -v compute-sanitizer >/dev/null; then
        for tool in memcheck racecheck; do
            record "$tool of $(basename "$1")" compute-sanitizer --tool $tool --error-exitcode 1 "$build/cli/halation" check "$1" --backend cuda
        done
    fi
fi
echo "== times" >&2
printf '\n## Times\n\n'
# shellcheck disable=SC2086
"$build/bench/device_bench" --in-place ${TIMES:-}
