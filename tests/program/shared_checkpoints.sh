# A run on N x T ranks saves; runs on any other N x T ranks resume it, with the same slices, and end with
# the digest of a run that never stopped. Others read the whole model from it.
. "$(dirname "$0")/common.sh"
tiny="--layers 1 --hidden 32 --heads 8 --seq 8 --data stories:16K --tokenizer byte --eval-every 0
    --sample 0 --global-batch 8 --micro-batch 1"
alike="$tiny --reproducible --tp-slices 8"

# saves RANKS TP DIR words...: four steps with a checkpoint after the second, the only one that stays.
saves() {
    ranks=$1 tp=$2 dir=$3
    shift 3
    runs "$ranks" train $alike --tp "$tp" "$@" --steps 4 --save-every 2 --checkpoint "$dir"
    digest_of out >"$dir.end"
    rm -r "$dir/step-00000004"
}

# continues RANKS TP DIR words...: resumes a copy up to the fourth step.
continues() {
    ranks=$1 tp=$2 dir=$3
    shift 3
    rm -rf copy && cp -r "$dir" copy
    runs "$ranks" train $alike --tp "$tp" "$@" --steps 4 --resume --checkpoint copy
    digest_of out >ended
    same "$dir.end" ended "$words"
    ! grep -q 'other sums' err || complain "$words: a warning of other sums"
}

saves 4 2 two --stage 1 --check-replicas 1
continues 4 1 two --stage 3
continues 4 4 two --stage 2 --partition owner
continues 2 2 two --stage 0
continues 8 1 two --stage 2
saves 2 1 one --stage 2 --partition owner
same two.end one.end "runs with --tp 2 and --tp 1"
continues 4 2 one --stage 3
saves 4 4 half --stage 1 --dtype bf16
continues 2 1 half --stage 2 --dtype bf16

# The reader of whole models does not see who wrote them.
saved=two/step-00000002
runs 0 checkpoint verify two
says 'OK: step 2, 4 shards (--tp 2 --tp-slices 8)' out
runs 0 checkpoint show two
says '4 ranks, --tp 2 --tp-slices 8, partition slice' out
says 'group 1, cut by cols in 3 parts' out
runs 0 checkpoint export two --to whole
runs 0 checkpoint export one --to alone
same whole/model.safetensors alone/model.safetensors "exported models"
for dir in two one; do
    runs 0 generate $dir --prompt 'Once' --tokens 20
    mv out "text.$dir"
done
same text.two text.one "generated texts"

# Damage of a part is named.
shard=$saved/shard-00003-of-00004.safetensors
printf 'x' | dd of="$shard" bs=1 seek="$(($(wc -c <"$shard") - 1))" conv=notrunc 2>/dev/null
run 0 checkpoint verify two
exits 4
says 'shard-00003-of-00004.safetensors: ' err
says '@1/2[' err

# Other slices are other sums.
rm -rf copy && cp -r one copy
runs 2 train $tiny --tp 2 --tp-slices 2 --reproducible=off --steps 3 --resume --checkpoint copy
says 'warning: other sums: this run adds along 2 slices, the one that was saved along 8' err

# Three slices: a rank alone may have them all.
alike="--layers 1 --hidden 48 --heads 6 --seq 8 --data stories:16K --tokenizer byte --eval-every 0
    --sample 0 --global-batch 8 --micro-batch 1 --reproducible --tp-slices 3"
saves 1 1 three
runs 0 checkpoint verify three
says 'OK: step 2, 1 shard (--tp 1 --tp-slices 3)' out
continues 3 3 three --stage 3
finish
