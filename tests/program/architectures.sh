# Every architecture: one digest whatever moves or computes a run, sums in slices, checkpoints in another
# layout, texts, and what is refused.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
finds_a_disk
common="--layers 2 --seq 9 --data stories:16K --tokenizer byte --eval-every 0 --sample 0"

# Fewer key heads than heads, one key head, ties and biases, heads wider than rows, two channels that turn
cat >shapes <<'END'
tiny-llama --hidden 24 --heads 8 --kv-heads 4 --head-size 6 --inner 40
tiny-mistral --hidden 24 --heads 4 --kv-heads 4 --head-size 8 --inner 60
tiny-qwen2 --hidden 24 --heads 4 --kv-heads 4 --head-size 6 --inner 48
tiny-qwen3 --hidden 24 --heads 8 --kv-heads 4 --head-size 10 --inner 40
tiny-neox --hidden 24 --heads 4 --inner 60 --rotary 0.34
END
while read -r name numbers; do
    model="--model $name $numbers $common"
    for half in "--dtype fp32" "--dtype bf16 --activations bf16"; do
        run="$half --steps 3 --micro-batch 2 --global-batch 6 --dropout 0.1"
        list=$name-${half##* }
        ends_with $list 3 --stage 0 --collectives p2p
        ends_with $list 3 --stage 1 --partition owner --collectives shm --threads 2
        ends_with $list 3 --stage 2 --recompute --overlap off
        ends_with $list 3 --stage 3 --recompute --collectives hier --fake-nodes 2
        n=4
        if [ -n "$disk" ]; then
            ends_with $list 3 --stage 3 --recompute --offload "$disk" --offload-activations \
                --offload-parameters
            n=5
        fi
        one $list $n "$list, three ranks"

        run="$half --steps 2 --micro-batch 1 --global-batch 4 --reproducible --tp-slices 4"
        ends_with tp-$list 1
        ends_with tp-$list 4 --tp 2 --stage 1
        ends_with tp-$list 4 --tp 4 --stage 3 --recompute --partition-activations
        one tp-$list 3 "$list, four slices"
    done

    # A checkpoint of four ranks, resumed by two in another stage; texts from it.
    runs 4 train $model --global-batch 4 --micro-batch 1 --reproducible --lr-decay none --steps 4
    digest_of out >whole
    runs 4 train $model --global-batch 4 --micro-batch 1 --reproducible --lr-decay none --steps 2 \
        --stage 3 --checkpoint "$name"
    runs 2 train --checkpoint "$name" --resume --steps 4 --stage 1
    digest_of out >resumed
    same whole resumed "$name, resumed by two ranks"
    runs 1 generate "$name" --prompt a --tokens 5
done <shapes

# A head of its own words, and the embedding's
run="--dtype fp32 --steps 1 --global-batch 2 --hidden 32 --heads 2 $common"
for model in tiny-llama tiny-neox; do
    for tied in on off; do
        runs 1 train --model $model $run --tied $tied --checkpoint $model-$tied --save-every 1
        runs 1 checkpoint export $model-$tied --to $model-$tied-out
        case $tied in on) says=true ;; *) says=false ;; esac
        grep -q "\"tie_word_embeddings\": $says" $model-$tied-out/config.json ||
            complain "$model --tied $tied is not what config.json says"
        runs 1 train --resume --checkpoint $model-$tied --steps 2
    done
done
refuses 2 "tied 0" 0 train --resume --checkpoint tiny-llama-on --tied off
refuses 2 "architecture gpt2 has no such number" 0 train --kv-heads 2
refuses 2 "not a multiple of --kv-heads 3" 0 train --model tiny-llama --kv-heads 3
refuses 2 "expected one of gpt2, llama" 0 train --architecture lama
refuses 2 "words of a gpt2's head are the embedding's" 0 train --tied off
refuses 2 "even --head-size" 0 train --model tiny-llama --head-size 9
refuses 2 "another --rotary" 0 train --model tiny-neox --rotary 0.1
refuses 2 "gpt_neox has no such number" 0 train --model tiny-neox --kv-heads 2
refuses 2 "give --tp-slices 2" 0 train --model tiny-llama --tp 1 --tp-slices 4
finish
