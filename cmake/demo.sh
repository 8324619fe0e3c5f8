# demo.sh PROGRAM LAUNCH...: trains one model twice, in stages 0 and 3, and compares memory,
# traffic, loss and digest. The CMake target demo runs it. DEMO_STEPS is the number of steps, and
# DEMO_OPTIONS has more options of zero train. The exit code is that of a run that failed, or 1 if
# the digests differ.
set -eu
zero=$1
shift
steps=${DEMO_STEPS:-240}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# trains STAGE LAUNCH...: shows the steps of a run. The files out.STAGE and json.STAGE get it all.
trains() {
    stage=$1
    shift
    {
        code=0
        # shellcheck disable=SC2086 # words
        "$@" "$zero" train --steps "$steps" --eval-every 0 --stage "$stage" \
            --metrics "$work/json.$stage" ${DEMO_OPTIONS-} 2>"$work/err.$stage" || code=$?
        echo $code >"$work/code"
    } | tee "$work/out.$stage" | grep '^step' || true
    code=$(cat "$work/code")
    [ "$code" -ne 0 ] || return 0
    cat "$work/out.$stage"
    cat "$work/err.$stage" >&2
    exit "$code"
}

# Each warning once. Too many ranks for the cores need none: the demo is not about speed.
warnings() {
    sed -n 's/.*\(zero: warning: \)/\1/p' "$work/err.0" "$work/err.3" | sort -u |
        grep -v '(oversubscribed)' >&2 || true
}

# number STAGE AFTER KEY: the first number of KEY after the key AFTER, in the final metrics.
number() {
    tail -n 1 "$work/json.$1" | tr ',{}' '\n\n\n' | awk -F: -v after="\"$2\"" -v key="\"$3\"" '
        $1 == after { seen = 1 }
        seen && $1 == key { print $2; exit }'
}

mebibytes() { # mebibytes NUMBERS...: their sum
    echo "$@" | awk '{ for (i = 1; i <= NF; i++) n += $i; printf "%.2f MiB", n / 1048576 }'
}

memory() { # memory STAGE: model states are what ZeRO shards
    states=$(mebibytes "$(number "$1" planned_bytes parameters)" \
        "$(number "$1" planned_bytes gradients)" "$(number "$1" planned_bytes 'optimizer states')")
    echo "$states of $(mebibytes "$(number "$1" memory planned_peak_bytes)")"
}

sent() { # sent STAGE: per step
    mebibytes $(($(number "$1" GATHER bytes_sent) / steps)) \
        $(($(number "$1" REDUCE bytes_sent) / steps))
}

loss() { # loss STAGE
    sed -n 's/^  loss *\([0-9.]*\).*/\1/p' "$work/out.$1"
}

digest() { # digest STAGE
    sed -n 's/^  digest *//p' "$work/out.$1"
}

echo "---- stage 0: every rank holds the whole model"
trains 0 "$@"
echo "---- stage 3: parameters, gradients and optimizer states are sharded over the ranks"
trains 3 "$@"
warnings
sed -n '/^---- a sample after/,/^----$/p' "$work/out.3"
row='%-17s %-23s %-23s %s\n'
# shellcheck disable=SC2059 # the format of all lines of the table
{
    printf "$row" '' 'stage 0' 'stage 3' 'of each rank'
    printf "$row" 'memory' "$(memory 0)" "$(memory 3)" 'model states, of all'
    printf "$row" 'sent' "$(sent 0)" "$(sent 3)" 'per step'
    printf "$row" 'loss' "$(loss 0)" "$(loss 3)" 'in the last step'
}
if [ "$(digest 0)" = "$(digest 3)" ]; then
    echo "digest            $(digest 3), equal: the same model to the last bit"
else
    echo "digest            $(digest 0) and $(digest 3): expected equal digests" >&2
    exit 1
fi
