# The exposed time of a device: emulated, with a clock that its work alone moves, so this machine's speed
# does not matter. A call takes 0.2 ms, a byte of a copy what a test says. Copies run beside the passes of
# other units; the rest is exposed, step by step, at the end and in the summary.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
"$zero" info >info 2>&1
grep -q '^devices .*cuda-emulated' info || skip "this build has no emulated device"
model="--layers 3 --hidden 32 --heads 2 --seq 8 --data stories:16K --tokenizer byte --micro-batch 1
    --eval-every 0 --sample 0 --steps 2 --collectives p2p --device cuda-emulated"

# exposed RANKS PICOSECONDS words...: $exposed, milliseconds of the last step in which rank 0's device
# waited; $copied, what a step's copies of collectives take.
exposed() {
    n=$1
    byte=$2
    shift 2
    rm -f run.jsonl
    words="$byte ps for a byte, $n ranks, $*"
    on "$n" env ZERO_EMULATED_CALL=200000 ZERO_EMULATED_COPY="$byte" "$zero" train $model \
        --metrics run.jsonl "$@" >out 2>err || complain "$words: it fails"
    exposed=$(sed -n 's/.*"step":2,.*"exposed_seconds":\([^,]*\),.*/\1/p' run.jsonl |
        awk '{ printf "%.3f", 1e3 * $1 }')
    copied=$(grep -o '"bytes_\(fetched\|stored\)": *[0-9]*' run.jsonl | awk -F: -v byte="$byte" '
        { sum += $2 } END { printf "%.3f", 1e-9 * byte * sum / 2 }')
    echo "$words: exposed $exposed ms of $copied ms of copies"
}

# holds 'A < B': a law of decimal numbers.
holds() {
    awk "BEGIN { exit !($1) }" || complain "$words: expected $1"
}

# passes: milliseconds of the passes of a step of the last run.
passes() {
    awk '/^    (FORWARD|BACKWARD) / { sum += $4 } END { printf "%.3f", sum }' out
}

# A step without copies: nothing is exposed. Its passes are what copies can hide behind.
exposed 3 0 --stage 3
computed=$(passes)
holds "$computed > 10 && $exposed < 0.02 * $computed"
# One rank has no messages, so its times are always the same. In stage 0 it has its sums where they are;
# in stages 2 and 3 its copies run beside passes, but for the first and the last.
exposed 1 20000 --stage 0
holds "$copied == 0 && $exposed < 0.02 * $computed"
for stage in 2 3; do
    exposed 1 20000 --stage $stage
    holds "$copied > 5 && $exposed > 0.5 && $exposed < 0.45 * $copied"
done
says 'exposed: the device waited ' out
exposed 3 20000 --stage 3
holds "$copied > 5 && $exposed > 0.5 && $exposed < $copied"
exposed 2 200000 --stage 3 # passes hide no more than they take
holds "$exposed > 0.5 * $copied - $computed && $exposed < $copied"
# Where nothing else is to be done parameters are stored at a step's end. Lazily they are stored beside passes,
# which take as long as before: what the host begins early keeps nothing from the device. On a busy
# machine it is late, which added 1.4 %; the stores are 12 % of the passes.
exposed 1 20000 --stage 2 --offload host --offload-when end
at_end=$exposed passes=$(passes)
stored=$(sed -n 's/^    STORE_PARAM *[0-9]* *\([0-9.]*\).*/\1/p' out)
holds "${stored:-0} > 2 && $exposed > 0.9 * ${stored:-0}"
exposed 1 20000 --stage 2 --offload host
holds "$exposed < $at_end - 0.25 * $stored && $(passes) < 1.05 * $passes"
finish
