# A device through the program, the fake one: the losses, samples, digests and files of the CPU;
# checkpoints that change places; what is refused; a device that fails.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
"$zero" info >info 2>&1
grep -q '^devices .*fake' info || skip "this build has no fake device"
model="--layers 1 --hidden 16 --heads 2 --seq 8 --data stories:16K --tokenizer byte
    --micro-batch 2 --global-batch 12"
watched="--steps 4 --eval-every 2 --eval-batches 1 --sample 8"

# ---- the same numbers ----

# compares N words...: a run on N ranks has the losses, norms, evaluations, samples and the digest of
# the CPU. What was planned is what was measured.
compares() {
    n=$1
    shift
    for device in cpu fake; do
        rm -f $device.jsonl
        runs "$n" train $model $watched --device $device --metrics $device.jsonl "$@"
        check "$n" 4 $device.jsonl bits
        sed -n '/---- a sample/,/^----$/p' out >text_$device
    done
    same text_cpu text_fake "samples of $words"
    says '; fake device, ' out # and not the kernels of the CPU
    runs 0 compare cpu.jsonl fake.jsonl
    says 'equal: 4 steps, digest "' out
}
compares 1 --stage 0 --dtype fp16 --activations fp16 --recompute
compares 2 --stage 2 --dtype bf16 --activations fp32 --check-memory --check-replicas 1
compares 2 --stage 1 --dtype bf16 --activations bf16
compares 3 --stage 3 --check-replicas 1

# ---- texts: a device keeps keys and values as the CPU does, where the steps need that memory anyway ----

# tells N words...: samples of a run.
tells() {
    n=$1
    shift
    for device in cpu fake; do
        runs "$n" train --layers 2 --hidden 32 --heads 2 --seq 32 --data stories:16K --tokenizer byte \
            --global-batch 12 --steps 4 --eval-every 0 --sample 24 --device $device "$@"
        sed -n '/---- a sample/,/^----$/p' out >text_$device
        [ "$(wc -l <text_$device)" -gt 2 ] || complain "$words: expected a sample"
    done
    same text_cpu text_fake "samples of $words"
}
tells 1 --stage 0 --micro-batch 12
tells 2 --stage 1 --micro-batch 2
tells 3 --stage 2 --micro-batch 4
tells 3 --stage 3 --micro-batch 4
tells 3 --stage 3 --micro-batch 1 --recompute # its steps need less memory than a cache

# ---- checkpoints change places, with numbers of ranks and stages ----

batch="--layers 1 --hidden 16 --heads 2 --seq 8 --data stories:16K --tokenizer byte
    --eval-every 0 --sample 0 --global-batch 8 --micro-batch 1 --reproducible --steps 5"

runs 1 train $batch
digest_of out >expected
goes_on_to 2 2 --stage 2 --device fake
goes_on_to 3 4 --stage 3 --resume
goes_on_to 4 1 --stage 0 --resume --device fake
goes_on_to 5 4 --stage 3 --resume --device fake
digest_of out >ended
same expected ended "$words"
verifies run

# ---- text, import and export ----

runs 0 generate run --tokens 20
mv out text
runs 0 generate run --tokens 20 --device fake
same text out "the text of $words"
runs 3 generate run --tokens 20 --device fake --stage 3 --dtype fp32
same text out "the text of $words"

for device in cpu fake; do
    runs 2 train $model --steps 2 --eval-every 0 --sample 0 --stage 1 --device $device \
        --checkpoint ck_$device
    runs 0 checkpoint export ck_$device --to model_$device
    runs 3 train $model --steps 2 --eval-every 0 --sample 0 --stage 3 --device $device \
        --init-from model_$device
    digest_of out >digest_$device
done
for file in model_cpu/*; do
    same "$file" "model_fake/$(basename "$file")" "exported on both devices"
done
same digest_cpu digest_fake "$words"

# ---- what is refused ----

refuses 2 '--device nonsense: expected one of cpu|cuda' 0 train $model --device nonsense
refuses 2 '--device nonsense: expected one of cpu|cuda' 0 generate run --device nonsense
refuses 2 'the device computes; give one of them' 0 train $model --device fake --backend naive
refuses 2 'with --device' 1 train $model --device fake --stage 3 --offload . --offload-parameters
refuses 2 'start without --progress-thread' 2 train $model --device fake --progress-thread 1
refuses 3 "MiB of the device's memory per rank, but 1.0 MiB" 2 \
    train $model --device fake --device-memory 1000000

# ---- a device that fails ----

cat >faulty <<'EOF'
[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" -ne 1 ] || export ZERO_FAKE_FAIL="$CALL"
exec "$@"
EOF

# fails CALL words...: the device of rank 1 fails in this call. One message names rank and call, and
# all checkpoints that were announced are there and whole, and no others.
fails() {
    call=$1
    shift
    rm -rf saved
    words="zero $* (3 ranks, ZERO_FAKE_FAIL=$call on rank 1)"
    began=$(date +%s)
    on 3 env CALL="$call" sh faulty "$zero" "$@" >out 2>err
    code=$?
    legible err
    exits 3
    [ $(($(date +%s) - began)) -le 60 ] || complain "$words: it took more than a minute"
    messages=$(grep '^zero: ' err | grep -vc '^zero: \(warning\|note\): ')
    [ "$messages" -eq 1 ] || with_mpich || complain "$words: expected one message"
    says "rank 1: the fake device failed in call $call (" err
    found=$(find saved -name 'step-*' 2>/dev/null | wc -l)
    [ "$found" -eq "$(grep -c '^checkpoint: step' out)" ] ||
        complain "$words: other checkpoints than announced"
    [ "$found" -eq 0 ] || verifies saved
}
for call in 2 90 350 600; do # initial weights, a first step, and two that depend on moments
    fails $call train $model --steps 20 --eval-every 1 --eval-batches 1 --sample 8 --stage 2 \
        --check-memory --checkpoint saved --save-every 1 --keep 100 --device fake
done
for call in 3 70; do
    fails $call generate run --tokens 200 --stage 3 --device fake
done
finish
