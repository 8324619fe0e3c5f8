#!/bin/sh
# Training steps of other programs beside ours, on two cores: PyTorch (bench/torch_gpt2.py), with
# DeepSpeed where installed, and llm.c. In every round each program takes its steps once; ratios are
# those of the same round. All of torch's modes race in the first round, and after it those near the
# fastest (HEAT). The last table is the one that counts: ours beside the fastest mode of all.
#
#     sh bench/peers.sh [ROUNDS]          (3 by default, and at least)
#
# In the environment, as lists with spaces (bench/README.md, "Beside PyTorch"):
#     PYTHON   interpreters whose torch is measured [/usr/bin/python3: Debian's python3-torch]
#     LLMC     a folder of llm.c with its .bin files and train_gpt2 built [left out]
#     CASES    of gpt2-1024 gpt2-4096 gpt2-2048x1 gpt2-256 small-2048 wide [all]
#     DTYPES   of fp32 bf16 [both; wide: bf16]
#     MODES    of single ddp zero fsdp2 deepspeed1 deepspeed2 deepspeed3, for torch, and of ddp-mpi
#              zero-mpi fsdp2-mpi, the same modes over our collectives (torch 2.15) [all]
#     OURS     RANKSxTHREADS of ours [2x1 1x2; small-2048 also 4x1 8x1]
#     STAGE    of ours [2]
#     COMPILE  off: torch 2 without torch.compile [on]
#     HEAT     a mode that takes HEAT times as long as the fastest leaves after a round [1.25]
#     QUICK    1: one round is enough, for trying: not for quoting
set -eu
here=$(cd "$(dirname "$0")" && pwd)
zero=$here/../build/zero
rounds=${1:-3}
cases=${CASES:-gpt2-1024 gpt2-4096 gpt2-2048x1 gpt2-256 small-2048 wide}
every_mode="single ddp zero fsdp2 deepspeed1 deepspeed2 deepspeed3 ddp-mpi zero-mpi fsdp2-mpi"
modes=${MODES:-$every_mode}
stage=${STAGE:-2}
warmup=2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# shellcheck source=bench/peers_common.sh
. "$here/peers_common.sh"

describe() { # describe CASE: layers hidden heads T V sequences, and steps after the warm-up
    case $1 in
    gpt2-1024) echo 12 768 12 256 50257 4 4 ;;
    gpt2-4096) echo 12 768 12 1024 50257 4 2 ;;
    gpt2-2048x1) echo 12 768 12 2048 50257 1 3 ;;
    gpt2-256) echo 12 768 12 64 50257 4 8 ;;
    small-2048) echo 6 384 6 256 256 8 6 ;;
    wide) echo 4 2048 16 256 50257 4 3 ;;
    *)
        echo "peers.sh: no case $1: expected gpt2-1024, gpt2-4096, gpt2-2048x1, gpt2-256," \
            "small-2048 or wide" >&2
        return 1
        ;;
    esac
}

dtypes_of() { # dtypes_of CASE
    [ "$1" != wide ] || set -- "$1" bf16
    echo "${DTYPES:-${2:-fp32 bf16}}"
}

ours_of() { # ours_of CASE
    [ "$1" != small-2048 ] || set -- "$1" "2x1 1x2 4x1 8x1"
    echo "${OURS:-${2:-2x1 1x2}}"
}

median() {
    sort -g | awk '{ x[NR] = $1 }
        END { if (NR) print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'
}

least() {
    sort -g | head -n 1
}

# ours RANKSxTHREADS LAYERS HIDDEN HEADS T V SEQUENCES STEPS. Ranks that cannot share the sequences of
# a step share its products.
ours() {
    ranks=${1%x*} threads=${1#*x} tp=1
    [ $(($7 % ranks)) -eq 0 ] || tp=$ranks
    name=ours,$ranks-ranks,stage-$stage
    [ "$tp" -eq 1 ] || name=ours,$ranks-ranks,tp
    [ "$ranks" -gt 1 ] || name=ours,$threads-threads
    tokenizer=bpe:300
    [ "$6" != 256 ] || tokenizer=byte
    rm -f "$work/metrics"
    mpirun -n "$ranks" --bind-to none --map-by :OVERSUBSCRIBE "$zero" train --model gpt2 \
        --layers "$2" --hidden "$3" --heads "$4" --seq "$5" --vocab "$6" --threads "$threads" \
        --tp "$tp" --micro-batch $(($7 * tp / ranks)) --global-batch "$7" \
        --steps $((warmup + $8)) --stage "$stage" --dtype "$dtype" --data self \
        --tokenizer $tokenizer --sample 0 --eval-every 0 --metrics "$work/metrics" \
        >"$work/out" 2>"$work/err" || tail -n 3 "$work/out" >>"$work/err"
    sed -n 's/^  machine *//p' "$work/out" >"$work/ours.$dtype"
    sed -n 's/.*"step_seconds":\([0-9.e-]*\).*/\1/p' "$work/metrics" 2>/dev/null |
        tail -n +$((warmup + 1)) >"$work/steps"
    record "$name" "$(median <"$work/steps")" "$(least <"$work/steps")" \
        "$(sed -n 's/.*"resident_peak_bytes":\([0-9]*\).*/\1/p' "$work/metrics" 2>/dev/null)"
}

# torch PYTHON MODE LAYERS HIDDEN HEADS T V SEQUENCES STEPS. DeepSpeed builds parts of itself with the
# programs beside its interpreter (ninja).
torch() {
    version=$(cat "$(note_of "$1")") threads=1 compile=
    [ "$2" != single ] || threads=2
    case $version,${COMPILE:-on} in
    1.*,* | *,off) ;;
    *) compile=--compile ;;
    esac
    backend=gloo
    [ "${2%-mpi}" = "$2" ] || backend=zero
    name=torch-$version,$2${compile:+,compiled}
    contends "$name" || return 0
    PATH=$(dirname "$1"):$PATH torch_env $threads "$1" "$here/torch_gpt2.py" \
        --mode "${2%-mpi}" --backend $backend --dtype "$dtype" --layers "$3" --hidden "$4" --heads "$5" --seq "$6" \
        --vocab "$7" --batch "$8" --steps "$9" --warmup $warmup $compile \
        >"$work/out" 2>"$work/err" || : >"$work/out"
    record "$name" "$(value_of step_seconds)" "$(value_of least_seconds)" "$(value_of resident_bytes)"
}

race_torch() { # race_torch PYTHON LAYERS HIDDEN HEADS T V SEQUENCES STEPS
    for mode in $modes; do
        case $mode in
        single) ;;
        deepspeed?)
            can_deepspeed "$1" || continue
            can_share "$mode" "$7" || continue
            ;;
        ddp-mpi | zero-mpi | fsdp2-mpi) can_share "$mode" "$7" && can_exchange "$1" "$mode" || continue ;;
        ddp | zero | fsdp2) can_share "$mode" "$7" || continue ;;
        *)
            echo "peers.sh: MODES: no mode $mode: expected some of $every_mode" >&2
            return 1
            ;;
        esac
        python=$1
        shift
        torch "$python" "$mode" "$@"
        set -- "$python" "$@"
    done
}

can_deepspeed() { # can_deepspeed PYTHON
    "$1" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("deepspeed"))' && return
    leave_out deepspeed "not installed for $1 (pip install deepspeed)"
    return 1
}

can_exchange() { # can_exchange PYTHON MODE: has torch 2.15 or newer
    case $(cat "$(note_of "$1")") in
    1.* | 2.?.* | 2.1[0-4].*) leave_out "$2" "needs torch 2.15 for $1" && return 1 ;;
    esac
}

can_share() { # can_share MODE SEQUENCES
    [ $(($2 % 2)) -ne 0 ] || return 0
    leave_out "$case $1" "2 processes cannot share $2 sequence"
    return 1
}

# Its batch (4 sequences of 64) and its 40 steps are constants: it is stopped after as many as ours.
llmc() { # llmc STEPS
    (cd "$LLMC" && OMP_NUM_THREADS=2 stdbuf -oL ./train_gpt2 2>"$work/err") |
        sed -n 's/.*(took \([0-9.]*\) ms).*/\1/p' | head -n $((warmup + $1)) |
        awk -v first=$warmup 'NR > first { print $1 / 1000 }' >"$work/steps"
    record llm.c,2-threads "$(median <"$work/steps")" "$(least <"$work/steps")" 0
}

# ---- programs ----

demand_rounds
for case in $cases; do describe "$case" >"$work/case"; done
demand_built "$zero"
find_torch
if [ -z "${LLMC:-}" ]; then
    leave_out llm.c "LLMC=FOLDER, with train_gpt2 built, gpt2_124M.bin and its data"
elif [ ! -x "$LLMC/train_gpt2" ] || [ ! -f "$LLMC/gpt2_124M.bin" ]; then
    leave_out llm.c "no train_gpt2 or no gpt2_124M.bin in $LLMC (make train_gpt2)"
    LLMC=
fi

# ---- measure ----

round=0
while [ "$round" -lt "$rounds" ]; do
    for case in $cases; do
        # shellcheck disable=SC2046 # words
        set -- $(describe "$case")
        for dtype in $(dtypes_of "$case"); do
            for way in $(ours_of "$case"); do ours "$way" "$@"; done
            for python in $found; do race_torch "$python" "$@"; done
            [ "$case,$dtype" != gpt2-256,fp32 ] || [ -z "${LLMC:-}" ] || llmc "$7"
        done
    done
    round=$((round + 1))
done

# ---- report ----

describe_machine
for ours in "$work"/ours.*; do echo "ours, ${ours##*.}: $(cat "$ours")"; done

for case in $cases; do
    # shellcheck disable=SC2046
    set -- $(describe "$case")
    printf '\n%s: %s layers, %s wide, %s heads, T %s, V %s; ' "$case" "$1" "$2" "$3" "$4" "$5"
    printf '%s tokens per step; medians of up to %s rounds%s\n' $(($4 * $6)) "$rounds" "$quoting"
    table case -v wanted="$case" -v tokens=$(($4 * $6))
done
printf '\nours beside the fastest mode of torch; medians of %s rounds%s\n' "$rounds" "$quoting"
table best
