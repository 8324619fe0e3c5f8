# zero plan --offload: what the file holds and a step moves is what a run measures; the disk's times.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
finds_a_disk
[ -n "$disk" ] || skip "no disk at $started_in: $(cat info)"

# Without a file nothing is said of one.
runs 0 plan $small --ranks 2 --json
grep -q '"file"' out && complain "$words: a resident plan with a file"
runs 0 plan $small --ranks 2
grep -q 'the file' out && complain "$words: a resident plan with a file"

# moved KEY FILE: what follows KEY in the JSON of FILE: bytes read, bytes written, reads, writes.
moved() {
    tr -d ' \n' <"$2" | grep -o "\"$1\":{\"bytes_read\":[0-9]*,[^}]*}" | sed 's/^[^{]*//'
}

# compare N STAGE OPTIONS...: the plan of rank 0 and the run agree on the file.
compare() {
    ranks=$1
    options="$small --stage $2 --offload $disk"
    shift 2
    runs $ranks train $options "$@" --steps 3 --sample 0 --metrics run.jsonl
    says 'as planned, to the byte' out
    says 'B per rank: ' out
    "$checker" $ranks 3 run.jsonl >checked 2>&1 || complain "$words: $(cat checked)"
    tail -n 1 run.jsonl >run.json
    runs 0 plan $options "$@" --ranks $ranks --fake-nodes 1 --json
    moved all out >planned
    moved planned_step run.json >measured
    same planned measured "$words: bytes of a step"
    bytes=$(tr -d ' \n' <out | sed -n 's/.*"file":{"classes":{\([^}]*\)}.*/\1/p')
    tr -d ' \n' <run.json | grep -qF "\"measured_bytes\":{$(echo "$bytes" | tr -d ' ')}" ||
        complain "$words: other bytes in the file: $bytes"
}
compare 1 0 --dtype fp16
compare 2 1 --offload-when end
compare 2 2 --dtype bf16 --offload-depth 2 --partition owner
compare 3 3 --dtype bf16 --offload-parameters --recompute --offload-activations

# The program shows which block moves, and its bytes.
runs 0 plan $small --ranks 2 --stage 2 --offload "$disk" --show-schedule
grep '^ *[0-9]* *FETCH  *block 0 .*optimizer states, block 0' out >line ||
    complain "$words: no FETCH of block 0"
# 12 C^2 + 13 C elements in fp32, padded to 64 for 2 ranks: 8 bytes each, then full pages
grep -q ' 114688 ' line || complain "$words: not the bytes of a block: $(cat line)"

# times
runs 0 plan $small --ranks 2 --fake-nodes 1 --offload "$disk" --disk 0.8G,1.2G --flops 1G --fit 1G,1G
for word in 'the file, per step' 'of transfers per step' '2.7 F/B' '4 F/R' efficiency \
    'per day' 'before the first forward' 'and a file of' "node's 2 ranks"; do
    says "$word" out
done
narrow 100 out
# A checkpoint is 12 Psi bytes, and a step hides as much of the time that they take as it lasts.
for flops in 100M:0.4974 1M:0; do
    runs 0 plan $small --ranks 2 --fake-nodes 1 --disk 1M,1M --flops "${flops%:*}"
    says "saves          969.75 KiB in 0.993 s, exposed ${flops#*:} beside a step" out
    narrow 100 out
done
runs 0 plan $small --ranks 2 --stage all --offload "$disk" --disk 0.8G,1.2G --flops 1G
says 'in the file' out
says 'seconds of transfers' out
narrow 100 out
runs 0 plan $small --ranks 2 --offload "$disk" --disk 0.8G,1.2G --flops 1G --dtype bf16 --json
is_json out
for key in tokens_hiding_all tokens_hiding_reads efficiency bytes_written_per_day page_padding; do
    says "\"$key\"" out
done
refuses 2 'the file does not fit the disk' 0 plan $small --offload "$disk" --fit 1G,4K
refuses 2 'bytes of memory per rank' 0 plan $small --offload "$disk" --fit 1K,4G
refuses 2 'more than 1048576 blocks' 0 plan --offload "$disk" --layers 10000 --hidden 65536 \
    --heads 64 --stage 3 --ranks 64

# A run that is refused is told of --offload if that fits.
large="--layers 2 --hidden 512 --heads 8 --seq 16 --global-batch 2 --micro-batch 1 --data stories:64K"
run 2 train $large --stage 0 --memory-limit 110MiB
exits 3
says '--offload DIR' err
runs 2 train $large --stage 2 --memory-limit 110MiB --offload "$disk" --steps 1 --sample 0 --eval-every 0

finish
