#!/bin/sh
# Runs every fuzzer that was built, two at a time, and fails if one finds anything:
#   sh tests/fuzz/run.sh SECONDS [BUILD]     BUILD is build/fuzz, from the preset of that name
# New inputs go to BUILD/fuzzers/NAME.new, and those that break a reader to BUILD/fuzzers/NAME-*.
# The corpus in the tree is not changed.
set -u
export UBSAN_OPTIONS=print_stacktrace=1
seconds=${1:?seconds for each fuzzer}
here=$(cd "$(dirname "$0")" && pwd)
build=${2:-$here/../../build/fuzz}
cd "$build/fuzzers" || {
    echo "run.sh: no fuzzers in $build: cmake --preset fuzz && cmake --build --preset fuzz" >&2
    exit 2
}

# A reader may allocate 4 times the file's size and 16 MiB, even for a broken file.
one='
    name=$1; seconds=$2; corpus=$3/corpus/${name#fuzz_}
    mkdir -p "$name.new"
    "./$name" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -malloc_limit_mb=17 \
        -max_len=65536 -print_final_stats=1 -artifact_prefix="$name-" \
        "$name.new" "$corpus" >"$name.log" 2>&1
    code=$?
    counts=$(sed -n "s/.*\(cov: [0-9]* ft: [0-9]* corp: [0-9]*\).*/\1/p" "$name.log" | tail -1)
    runs=$(sed -n "s/^stat::number_of_executed_units: *//p" "$name.log")
    if [ "$code" -eq 0 ]; then
        echo "$name: ${runs:-?} executions in $seconds s, $counts, no finding"
    else
        echo "$name: FOUND something (exit code $code); its log ends with:"
        tail -40 "$name.log"
        exit 1
    fi'

fuzzers=$(ls | grep "^fuzz_[a-z0-9_]*$") || {
    echo "run.sh: no fuzzers in $PWD" >&2
    exit 2
}
# xargs ends with 123 if one of them failed.
printf '%s\n' $fuzzers | xargs -P 2 -I NAME sh -c "$one" sh NAME "$seconds" "$here" || exit 1
