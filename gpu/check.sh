#!/bin/sh
# Everything about the CUDA backend that needs a GPU, in parts of less than 10 minutes each.
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
#                 CUDA IPC (auto) and staged, twice: equal digests, losses within 1e-4 of the CPU's
#     resume      saved on the CPU and resumed on the GPU, and back
#     stories     1000 steps in bf16 and fp16: loss above the entropy, within 1 % of the CPU's
#     speed       GPT-2 124M and 1.5B beside PyTorch (python3 with torch); memory planned and taken
#     shares      kernels beside the GPU's copy rate, products beside cuBLAS alone,
#                 and with what follows them by cuBLASLt beside two calls
#     all         all of them
#
# Prints one line a check: "ok", "FAILED" or "not run" (with the reason), and what was measured.
# Exit code: 1 if a check failed, 3 if one could not run, 2 for a wrong command line.
#
#   GPUS=0,1                chooses devices (CUDA_VISIBLE_DEVICES)
#   DEVICE=cuda-emulated    tries this script itself where there is no GPU
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # read by the parts
device=${DEVICE:-cuda}
failures=0
unable=0

ok() {
    echo "ok        $*"
}

failed() {
    echo "FAILED    $*"
    failures=$((failures + 1))
    return 1
}

not_run() {
    echo "not run   $*"
    unable=$((unable + 1))
}

stop() { # stop CODE WORDS
    code=$1
    shift
    echo "check.sh: $*" >&2
    exit "$code"
}

# The parts, in the order of `all`: functions of the files that are read here.
parts="devices kernels sanitizer digests resume stories speed shares"
for file in pack runs right speed; do
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
set_up
for part in "$@"; do
    began=$(date +%s)
    echo "=== $part"
    "$part"
    echo "=== $part: $(($(date +%s) - began)) s"
done
[ $failures -eq 0 ] || exit 1
[ $unable -eq 0 ] || exit 3
