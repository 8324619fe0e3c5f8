# Training on two ranks under valgrind: no error, and nothing of ours left when it ends.
# valgrind.sh ZERO LAUNCH..., where RANKS stands for the number of ranks. Skipped without valgrind,
# and for programs with instructions that it does not know: of AVX-512 it knows none, and a build
# without ZERO_NATIVE then chooses other kernels.
zero=$1
shift
launch=$(echo "$*" | sed 's/RANKS/2/')
suppressions=$(cd "$(dirname "$0")/../support" && pwd)/valgrind.supp
failed=0

command -v valgrind >/dev/null || {
    echo "skipped: there is no valgrind"
    exit 77
}
if grep -q __asan_init "$zero"; then
    echo "skipped: valgrind does not go with the address sanitizer"
    exit 77
fi
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

skip_if_unknown() { # skip_if_unknown FILE...
    cat "$@" | grep -qiE 'unrecognised instruction|illegal opcode' || return 0
    echo "skipped: this build has instructions that valgrind does not know"
    exit 77
}

train() { # train OPTIONS...
    rm -f log.*
    start=$(date +%s)
    # shellcheck disable=SC2086 # words
    $launch valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite \
        --errors-for-leak-kinds=definite --suppressions="$suppressions" --log-file=log.%p \
        "$zero" train --layers 1 --hidden 32 --heads 2 --seq 8 --vocab 512 --global-batch 2 \
        --data stories:64K --steps 2 --eval-every 2 --eval-batches 1 --sample 2 --watchdog 0 "$@" >out 2>&1
    code=$?
    skip_if_unknown log.*
    echo "zero train $*: exit code $code after $(($(date +%s) - start)) s"
    if [ $code -ne 0 ] || [ -n "$(cat log.*)" ]; then
        echo "FAILED: zero train $*"
        cat out log.*
        failed=$((failed + 1))
    fi
}

valgrind "$zero" train --help >/dev/null 2>out
skip_if_unknown out
train --stage 3
train --stage 1 --dtype bf16 --collectives p2p
[ $failed -eq 0 ]
