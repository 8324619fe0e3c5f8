# Training on two ranks under valgrind: no errors, and no leak of ours. The test is skipped without
# valgrind, and for programs with instructions that valgrind does not know. These include all of
# AVX-512; without ZERO_NATIVE a build chooses other kernels under valgrind.
. "$(dirname "$0")/common.sh"
suppressions=$support/valgrind.supp

command -v valgrind >/dev/null || skip "there is no valgrind"
! grep -q __asan_init "$zero" || skip "valgrind does not run the address sanitizer"

skip_if_unknown() { # skip_if_unknown FILE...
    ! cat "$@" | grep -qiE 'unrecognised instruction|illegal opcode' ||
        skip "this build has instructions that valgrind does not know"
}

train() { # train OPTIONS...
    rm -f log.*
    words="zero train $* under valgrind"
    start=$(date +%s)
    on 2 valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite \
        --errors-for-leak-kinds=definite --suppressions="$suppressions" --log-file=log.%p \
        "$zero" train --layers 1 --hidden 32 --heads 2 --seq 8 --vocab 512 --global-batch 2 \
        --data stories:64K --steps 2 --eval-every 2 --eval-batches 1 --sample 2 --watchdog 0 \
        "$@" >out 2>err
    code=$?
    skip_if_unknown log.*
    echo "$words: exit code $code after $(($(date +%s) - start)) s"
    if [ $code -ne 0 ] || [ -n "$(cat log.*)" ]; then
        complain "$words: exit code $code, and this log:"
        cat log.*
    fi
}

valgrind "$zero" train --help >/dev/null 2>out
skip_if_unknown out
train --stage 3
train --stage 1 --dtype bf16 --collectives p2p
finish
