#!/bin/sh
# Everything about the CUDA backend that needs a GPU, in parts of less than 10 minutes each. What does
# not end in its time fails, and the next check goes on.
#
#   sh gpu/check.sh pack [DIR]    builds for any CPU, with CUDA, and gathers in DIR [build/gpu-check]
#                                 what a machine with a GPU may lack: the programs, the plugin, MPI
#                                 and all libraries but the C library's and CUDA's
#   sh DIR/check.sh PART...       on the machine with a GPU, in a copy of DIR:
#
#     devices     what is there; refusals
#     kernels     every kernel against the CPU's, and the memory's rules; products that end by cuBLASLt
#     sanitizer   the same under compute-sanitizer: memcheck, racecheck, initcheck, synccheck
#     digests     1, 2 and 4 ranks on one GPU, stages 0-3, all collectives, optimizer on the host, by
#                 CUDA IPC (auto), staged and on 2 fake nodes, twice, and by messages of a CUDA-aware MPI:
#                 equal digests, losses within 1e-5 of the CPU's in fp32, 2e-3 in 16 bits
#     resume      saved on the CPU and resumed on the GPU, and back
#     texts       tokens through the cache: each text the same alone and in company, tokens per second
#     stories     1000 steps in bf16 and fp16: loss above the entropy, within 1 % of the CPU's
#     speed       GPT-2 124M and 1.5B beside PyTorch, compiled; memory planned and taken
#     attention   attention beside PyTorch's
#     shares      kernels beside the GPU's copy rate, products beside cuBLAS alone,
#                 and with what follows them by cuBLASLt beside two calls
#     large       1.5B with 256 k tokens a step: optimizer on the host and on the GPU
#     fit         3 steps of the largest model that fits with the optimizer on the host
#     ipc         2 ranks on one GPU: CUDA IPC beside staged exchanges
#     all         all of them
#
# Prints one line a check: "ok", "FAILED" or "not run" (with the reason), and what was measured; adds
# the same at once to RESULTS/DATE-GPU.md. What programs said is kept in RESULTS/logs.
# Exit code: 1 if a check failed, 3 if one could not run, 2 for a wrong command line.
#
#   ARCH=90-real            pack: the GPUs that kernels are compiled for (CMAKE_CUDA_ARCHITECTURES); if
#                           not given, this machine's, or where it has none V100 to H100
#   GPUS=0,1                chooses devices (CUDA_VISIBLE_DEVICES)
#   RESULTS=DIR             where results go [./results]
#   LIMIT=SECONDS           of all parts together: what does not fit is not run
#   PYTHON=python3          a Python with PyTorch
#   DISK=DIR                a directory on a disk, for --offload (here if not given)
#   DEVICE=cuda-emulated    tries this script itself where there is no GPU: tiny models, no limits
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # read by the parts
device=${DEVICE:-cuda}
# shellcheck disable=SC2034 # read by the parts
began_at=$(date +%s)
results=/dev/null # until open_results
failures=0
unable=0

# say TEXT...: on stdout and in the results.
say() {
    echo "$*"
    echo "    $*" >>"$results"
}

ok() {
    say "ok        $*"
}

failed() {
    say "FAILED    $*"
    failures=$((failures + 1))
    return 1
}

not_run() {
    say "not run   $*"
    unable=$((unable + 1))
}

stop() { # stop CODE WORDS
    code=$1
    shift
    echo "check.sh: $*" >&2
    exit "$code"
}

# The parts, in the order of `all`: functions of the files that are read here.
parts="devices kernels sanitizer digests resume texts stories speed attention shares large fit ipc"
for file in pack results runs right speed large; do
    # shellcheck disable=SC1090
    . "$here/check_$file.sh"
done

[ $# -gt 0 ] || stop 2 "no part is given; the head of this script lists them"
if [ "$1" = pack ]; then
    shift
    pack "$@"
    exit
fi
# shellcheck disable=SC2086 # words
[ "$*" != all ] || set -- $parts
for part in "$@"; do
    case " $parts " in
        *" $part "*) ;;
        *) stop 2 "there is no part '$part'; the head of this script lists them" ;;
    esac
done
open_results
set_up
head_results
for part in "$@"; do
    began=$(date +%s)
    echo "=== $part"
    begin_results "$part"
    # shellcheck disable=SC2034
    most=120
    if [ "$(left)" -gt 0 ]; then "$part"; else not_run "$part: no time is left of $LIMIT s"; fi
    echo "=== $part: $(($(date +%s) - began)) s"
done
[ $failures -eq 0 ] || exit 1
[ $unable -eq 0 ] || exit 3
