# Random campaigns on what must survive anything: a night's run is a release test.
#
#     sh tests/campaign.sh SECONDS SEED [BUILD]          BUILD is build
#
# It draws pieces of work until SECONDS are over, and prints how many cases each had. A piece has a
# seed of its own, which decides its configuration (types, stage, ranks, partition, offload, saves):
#
#     crash    two runs; the power fails after each call of their writer (program/power_loss.sh)
#     mutate   files of checkpoints damaged in any way; each is refused (checkpoint/mutate.c)
#     corpus   files from outside, changed at random, before their readers (fuzz/replay.c.in)
#     fault    a call of the writer fails, or is the last one (program/storage.sh)
#     kill     a rank is killed at a random moment, and the run resumed (program/killed.sh)
#
# A finding is printed with the command that repeats it, `sh tests/campaign.sh PIECE SEED [BUILD]`
# (a kill's moment is the clock's); then the exit code is 1.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || {
    echo "usage: sh tests/campaign.sh SECONDS|PIECE SEED [BUILD]" >&2
    exit 2
}
build=$(cd "${3:-$here/../build}" && pwd) || exit 2
launch=${LAUNCH:-mpirun -n RANKS --map-by :OVERSUBSCRIBE --bind-to none}
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OPENBLAS_NUM_THREADS=1
export POWER_LOSS="$build/tests/program/power_loss" SHIM="$build/tests/program/libstorage_shim.so"
export MUTATE="$build/tests/program/mutate" ASAN_OPTIONS=verify_asan_link_order=0
replay=$build/tests/fuzz/replay
for tool in "$build/zero" "$POWER_LOSS" "$MUTATE" "$replay"; do
    [ -x "$tool" ] || {
        echo "campaign.sh: no $tool: cmake --build $build" >&2
        exit 2
    }
done
log=$(mktemp -d) && cd "$log" || exit 2
trap 'cd / && rm -rf "$log"' EXIT
trap 'exit 1' HUP INT TERM

script() { # script NAME: a script of program/, which reads SEED
    sh "$here/program/$1.sh" "$build/zero" "$build/tests/program/check_metrics" $launch
}

corpus() {
    set -- $(ls "$here/fuzz/corpus")
    for reader; do "$replay" "$reader" "$here/fuzz/corpus/$reader" "$SEED" 40 2>>last || {
        echo "FAILED: $reader: $(tail -n 2 last)"
        return 1
    }; done
}

piece() { # piece NAME SEED
    export SEED="$2"
    case $1 in
        crash) MUTATIONS=0 STATES=40 script power_loss ;;
        mutate) MUTATIONS=2000 STATES=0 script power_loss ;;
        corpus) corpus ;;
        fault) CASES=3 script storage ;;
        kill) TIMES=2 script killed ;;
        *)
            echo "campaign.sh: no piece is called $1" >&2
            exit 2
            ;;
    esac
}

case $1 in
    *[!0-9]*)
        piece "$1" "$2"
        exit
        ;;
esac
seconds=$1 first=$2 started=$(date +%s) n=0 cases=0 findings=0
while :; do
    for name in mutate corpus fault crash mutate corpus kill crash; do
        [ $(($(date +%s) - started)) -lt "$seconds" ] || break 2
        n=$((n + 1))
        seed=$(((first * 100003 + n) % 2147483648))
        (piece $name $seed) >out 2>&1
        code=$?
        these=$(awk '/^cases / { n += $2 } END { print n + 0 }' out)
        cases=$((cases + these))
        echo "$name $seed: $these cases"
        [ $code -ne 0 ] || continue
        findings=$((findings + 1))
        sed 's/^/    /' out | tail -n 40
        echo "FINDING $findings: exit code $code; again: sh tests/campaign.sh $name $seed $build"
    done
done
echo "$n pieces, $cases cases, $findings findings in $(($(date +%s) - started)) s, seed $first"
[ $findings -eq 0 ] && [ $cases -gt 0 ]
