# The CUDA backend through the program, its own code on a device that the CPU emulates: the CPU's
# losses, one digest for all stages, checkpoints that change places, devices by number, and what is
# refused. Then the plugin for GPUs, where there is no driver.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
"$zero" info >info 2>&1
grep -q '^devices .*cuda-emulated' info || skip "this build has no emulated device"
device=cuda-emulated
model="--layers 1 --hidden 16 --heads 2 --seq 8 --data stories:16K --tokenizer byte
    --eval-every 0 --sample 0 --lr 0.01"

# losses FILE: one per line.
losses() {
    sed -n 's/.*"step": *[0-9]*, *"loss": *\([^,]*\),.*/\1/p' "$1"
}

# near A B TOLERANCE: the losses of two runs, as many, agree.
near() {
    losses "$1" >losses_a
    losses "$2" >losses_b
    paste losses_a losses_b | awk -v most="$3" '
        { d = $1 - $2; if (d < 0) d = -d; if (!(d <= most) || NF != 2) bad = 1 }
        END { exit bad || NR < 3 }' ||
        complain "$words: the losses of $1 and $2 differ by more than $3: $(paste losses_a losses_b)"
}

# ---- the CPU's losses; one digest for all stages ----

tiny="--model tiny --seq 32 --data stories:64K --eval-every 0 --sample 0"
rm -f cpu.jsonl
runs 2 train $tiny --steps 8 --micro-batch 1 --global-batch 2 --metrics cpu.jsonl
for stage in 0 1 2 3; do
    rm -f cuda.jsonl
    runs 2 train $tiny --steps 8 --micro-batch 1 --global-batch 2 --stage $stage \
        --device $device --metrics cuda.jsonl
    check 2 8 cuda.jsonl bits
    near cpu.jsonl cuda.jsonl 1e-5
    digest_of out >digest_$stage
    grep -q 'note: --device' err && complain "$words: 2 ranks have 2 devices, no note is due"
    same digest_0 digest_$stage "the digests of stages 0 and $stage"
done
# Times are the device's own: the host's clock would show nearly all of them where it waits.
awk '/^    (FORWARD|BACKWARD) / { share += $5 } END { exit !(share > 30 && share <= 101) }' out ||
    complain "$words: forward and backward take little of a step: $(grep -A 12 'in a step' out)"
for seed in 0 7; do # other orders of what is queued
    words="ZERO_EMULATED_ORDER=$seed"
    on 2 env ZERO_EMULATED_ORDER=$seed "$zero" train $tiny --steps 8 --micro-batch 1 \
        --global-batch 2 --stage 3 --device $device >out 2>err || complain "$words: it fails"
    digest_of out >digest_order
    same digest_0 digest_order "$words"
done

# compares RANKS TOLERANCE words...: a few steps on the device and on the CPU.
compares() {
    ranks_of_run=$1
    tolerance=$2
    shift 2
    rm -f cpu.jsonl cuda.jsonl
    runs "$ranks_of_run" train $model --steps 6 --metrics cpu.jsonl "$@"
    runs "$ranks_of_run" train $model --steps 6 --metrics cuda.jsonl --device $device "$@"
    near cpu.jsonl cuda.jsonl "$tolerance"
}
compares 1 2e-2 --micro-batch 2 --dtype bf16 --recompute
# More rows than a CPU's chunk of logits, whose rows lie apart.
for type in fp32 bf16; do
    compares 1 $([ $type = fp32 ] && echo 1e-5 || echo 2e-2) --seq 96 --micro-batch 3 --vocab 300 --dtype $type
    check 1 6 cuda.jsonl bits
done
compares 2 2e-2 --micro-batch 2 --dtype fp16 --stage 2 --check-memory
compares 3 1e-5 --micro-batch 1 --stage 3 --dropout 0.1
digest_of out >resident
finds_a_disk
for how in host "host --offload-when end" ${disk:+"$disk"}; do
    runs 3 train $model --steps 6 --device $device --micro-batch 1 --stage 3 --dropout 0.1 --offload $how
    digest_of out >offloaded
    same resident offloaded "$words"
done

# ---- activations of 16 bits: the CPU's losses, one digest whatever moves or computes them ----

for type in bf16 fp16; do
    compares 2 2e-2 --micro-batch 2 --dtype $type --activations $type
    digest_of out >halved
    for how in "--stage 1 --recompute" "--stage 3 --offload host" "--stage 2"; do
        runs 2 train $model --steps 6 --device $device --micro-batch 2 --dtype $type $how
        digest_of out >halved_so
        same halved halved_so "$words: the digest with $how"
    done
    runs 2 train $model --steps 6 --device $device --micro-batch 2 --dtype $type --activations fp32
    digest_of out >wide
    cmp -s halved wide && complain "$words: activations of fp32 have the digest of those of $type"
done
compares 3 2e-2 --micro-batch 1 --stage 3 --dtype bf16 --activations bf16 --dropout 0.1

# ---- checkpoints change places ----

saved="--micro-batch 2 --global-batch 4 --checkpoint run --save-every 1 --keep 9"
runs 1 train $model $saved --steps 2
"$zero" checkpoint show run >shown 2>&1
runs 2 train $model --micro-batch 2 --global-batch 4 --checkpoint run --save-every 1 --keep 9 \
    --steps 4 --resume --stage 2 --device $device
runs 1 train $model $saved --steps 6 --resume
verifies run
# Nothing is lost where the run changes places: no step there, the state that was saved.
digest_of out >ended
runs 2 train $model $saved --steps 6 --resume --stage 3 --device $device
digest_of out >loaded
same ended loaded "the digest of a state saved by the CPU and loaded on the device"
runs 2 train $model $saved --steps 7 --resume --stage 3 --device $device
digest_of out >ended
runs 1 train $model $saved --steps 7 --resume
digest_of out >loaded
same ended loaded "the digest of a state saved on the device and loaded by the CPU"

runs 0 generate run --tokens 12 --temperature 0
mv out text
runs 2 generate run --tokens 12 --temperature 0 --device $device --stage 3
same text out "the text of $words"

# ---- texts: the CPU's words in fp32, and in 16 bits those that each text has alone ----

runs 1 train --layers 1 --hidden 48 --heads 3 --seq 32 --data stories:16K --tokenizer byte --micro-batch 1 \
    --global-batch 1 --eval-every 0 --sample 0 --steps 2 --checkpoint talk
printf 'Once\nThe cat\nA dog and a' >lines
# tells NAME OPTIONS...
tells() {
    name=$1
    shift
    runs 0 generate talk --prompts lines --tokens 24 "$@"
    mv out "$name"
}
tells text_cpu
tells text_cuda --device $device
same text_cpu text_cuda "the texts of $words"
tells text_together --device $device --dtype bf16
tells text_alone --device $device --dtype bf16 --batch 1
same text_alone text_together "the texts of $words"

# ---- devices by number ----

step="--steps 1 --micro-batch 2"
runs 2 train $model $step --device $device:1
says '2 ranks share 1 device' err
runs 1 train $model $step --device $device
says 'idle: 1 device' err
refuses 2 'there is no device cuda-emulated:7: this machine has 2' 1 \
    train $model $step --device $device:7
for list in '' , 0, 0,,1 0,x -1; do
    refuses 2 'expected numbers with commas between them' 0 train $model --device "$device:$list"
done
refuses 2 'device 1 is given twice' 0 train $model --device $device:1,0,1
refuses 2 'cpu has no numbers' 0 train $model --device cpu:0
runs 0 plan --device cuda:0,3

# ---- what is refused ----

# refused CODE 'TEXT' NAME=VALUE words...: zero ends so on 2 ranks with this setting of the emulator.
refused() {
    expected=$1
    text=$2
    setting=$3
    shift 3
    words="$setting zero $*"
    began=$(date +%s)
    on 2 env "$setting" "$zero" "$@" >out 2>err
    code=$?
    legible err
    exits "$expected"
    says "$text" err
    [ $(($(date +%s) - began)) -le 60 ] || complain "$words: it took more than a minute"
}
refused 3 'sm_70) has no bf16: use --dtype fp16' ZERO_EMULATED_SM=70 \
    train $model $step --dtype bf16 --device $device
refused 3 'there is no CUDA device' ZERO_EMULATED_DEVICES=0 train $model $step --device $device
# One device of 196 MiB for two ranks, whose workspaces take 192: one alone would have room.
refused 3 "MiB of the device's memory per rank, but 2.0 MiB are available" \
    ZERO_EMULATED_MEMORY=205520896 train $model $step --device $device:0
refused 3 "memory" ZERO_EMULATED_MEMORY=1048576 train $model $step --device $device
for call in 1 40 400; do
    refused 1 'unspecified launch failure' ZERO_EMULATED_FAIL=$call \
        train $model --steps 8 --micro-batch 2 --stage 2 --device $device
done

# ---- the plugin for GPUs ----

began=$(date +%s)
"$zero" info >info 2>&1
if grep -q '^cuda  *yes' info; then
    echo "this machine has a GPU: what is said without one is not seen"
else
    refuses 3 'CUDA' 0 train $model --device cuda
    refuses 3 'CUDA' 0 generate run --device cuda
    [ $(($(date +%s) - began)) -le 60 ] || complain "$words: it took more than a minute"
fi
grep -q '^devices .*cuda\( \|$\)' info || says 'configure with -DZERO_CUDA=ON' err
if command -v ldd >ldd_of 2>&1; then
    ldd "$zero" >linked 2>&1
    grep -E 'libcu(da|blas)' linked && complain "zero links CUDA"
fi
finish
