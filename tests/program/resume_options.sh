# A resumed run is what its checkpoint says, unless it is told otherwise.
. "$(dirname "$0")/common.sh"
quiet="--sample 0 --eval-every 0"

# stops_at STEP DIR: as if the run had been killed after it had saved this step.
stops_at() {
    for later in "$2"/step-*; do
        [ "${later#"$2"/step-}" -le "$1" ] || rm -r "$later"
    done
}

# resumes DIR N words...: continues a copy of DIR, without any other option; `resumed` gets its digest.
resumes() {
    rm -rf copy && cp -r "$1" copy
    n=$2
    shift 2
    runs "$n" train --sample 0 --resume --checkpoint copy "$@"
    digest_of out >resumed
}

# ---- shape, tokenizer, type, data, batch, seed and rates come from the checkpoint ----
awk 'BEGIN { for (i = 0; i < 200; i++) print "the fox", i, "jumped to the", 7 * i % 13, "grapes" }' >text
head -n 50 text >validation
numbers="--layers 2 --hidden 24 --heads 4 --seq 12 --dropout 0.1 --data text --val-data validation
    --tokenizer bpe:270 --shuffle --seed 3 --steps 8 --global-batch 12 --micro-batch 2 --lr 0.013
    --lr-min 0.0031 --warmup 3 --beta1 0.8 --beta2 0.97 --eps 1e-7 --weight-decay 0.3 --clip 0.7
    --eval-every 3 --eval-batches 2 --eval-random --dtype bf16 --activations bf16 --tp-slices 2"
# shellcheck disable=SC2086 # words
runs 3 train $numbers --sample 0 --stage 2 --checkpoint saved --save-every 4 --metrics whole
digest_of out >undisturbed
[ $failed -eq 0 ] || finish
stops_at 4 saved
resumes saved 3 --stage 3 --metrics m
same undisturbed resumed "resumed without options"
numbers_of() { # the losses, rates and norms of steps 5 to 8
    sed -n 's/^{"step":\([5-8],"loss.*\),"loss_scale.*\("val_loss":[^,}]*\).*/\1 \2/p; t
        s/^{"step":\([5-8],"loss.*\),"loss_scale.*/\1/p' "$1"
}
numbers_of whole >expected
numbers_of m >got
same expected got "steps 5 to 8"
says 'taken         --layers 2, --hidden 24, --heads 4, --seq 12, --dropout 0.1, --data text, ' out
says ', --shuffle on, --seed 3, --steps 8, --global-batch 12, --micro-batch 2, --lr 0.013, ' out
says 'changed       --stage 3 (saved: 2)' out
# What the next checkpoint says is the same.
grep -o '"options": {.*' saved/step-00000004/manifest.json | sed 's/"stage":"."//' >expected
grep -o '"options": {.*' copy/step-00000008/manifest.json | sed 's/"stage":"."//' >got
same expected got "the options in the manifests"
# Other ranks keep the batch. They cut it anew where they must.
resumes saved 2 --tp 1
says '12 sequences = 2 x 3 x 2 ' out
resumes saved 4
says '12 sequences = 4 x 1 x 3 ' out
says '--micro-batch 3 (saved: 2)' out
# The tokenizer is the checkpoint's own: the text from which it was learnt is not needed.
resumes saved 3 --tokenizer bpe:270
same undisturbed resumed "resumed with the tokenizer that it had"
refuses 2 "another text for token" 0 train --resume --checkpoint saved --tokenizer byte --vocab 270
# A default that follows another option follows the one that is given.
resumes saved 0 --lr 0.02
says '--lr 0.02 (saved: 0.013), --lr-min 0.002 (saved: 0.0031)' out
says 'note: the learning rate goes from 0.013 in step 4 to 0.0174 in the next one' err
resumes saved 0 --dtype fp32
says '--activations at its default (saved: bf16)' out

# ---- what contradicts is refused with both values, before anything is built ----
refuses 2 '--layers 3 (saved: 2), --seed 4 (saved: 3)' 3 train --resume --checkpoint saved \
    --layers 3 --seed 4
refuses 2 '--layers 12 (saved: 2), --hidden 768 (saved: 24)' 0 train --resume --checkpoint saved \
    --model gpt2
refuses 2 'it is at step 4, beyond --steps 3: give --steps 4 or more' 0 train --resume \
    --checkpoint saved --steps 3
refuses 2 '--tp-slices 2 with --device fake' 0 train --resume --checkpoint saved --device fake
says 'options that were not given are those of saved/step-00000004' err
mv text moved
refuses 4 'options that were not given are those of saved/step-00000004' 0 train --resume \
    --checkpoint saved
resumes saved 3 --data moved
same undisturbed resumed "resumed with the data in another place"
mv moved text

# ---- a longer run keeps its warm-up ----
tiny="$tiny --global-batch 6"
runs 0 train $tiny --steps 10 --checkpoint short --save-every 4 --keep 9 --metrics m
says 'lr 0.004 after 2 steps' out
stops_at 4 short
runs 0 train $tiny --steps 40 --warmup 2 --metrics whole
resumes short 0 --steps 40 --metrics m
says 'lr 0.004 after 2 steps' out
says 'note: the learning rate goes from 0.00382 in step 4 to 0.00397 ' err
lr_of_step_5() { sed -n 's/^{"step":5,.*"lr":\([^,]*\),.*/\1/p' "$1"; }
lr_of_step_5 whole >expected
lr_of_step_5 m | tail -n 1 >got
same expected got "the rate of step 5 of a run of 40 steps and 2 of warm-up"
runs 0 train $tiny --steps 10 --resume --checkpoint short
[ ! -s err ] || ! grep 'learning rate' err || complain "$words: the schedule is the same"

# ---- other data, from their first sample, with the same moments ----
# `both` is what a run reads that changes from `first` to `second` after 4 steps of 6 samples of 8
# bytes: the last target of step 4 is the letter with which `second` begins.
awk 'BEGIN { for (i = 0; i < 2000; i++) printf "%c", 97 + i * i % 19 }' >first
{
    head -c 193 first | tail -c 1
    awk 'BEGIN { for (i = 0; i < 2000; i++) printf "%c", 98 + i * (i + 3) % 23 }'
} >second
{
    head -c 192 first
    cat second
} >both
byte="--layers 1 --hidden 16 --heads 2 --seq 8 --global-batch 6 --steps 8 $quiet"
# shellcheck disable=SC2086 # words
runs 3 train $byte --data both --stage 1
digest_of out >undisturbed
# shellcheck disable=SC2086 # words
runs 3 train $byte --data first --checkpoint moving --save-every 4
stops_at 4 moving
refuses 2 '--data second holds other tokens for training than the saved run had (--data first)' 3 \
    train --resume --checkpoint moving --data second
says 'or give --new-data' err
cp -r moving again
resumes moving 3 --data second --new-data
same undisturbed resumed "a run that changes its data"
says '; on other data, from their first sample' out
says '--data second (saved: first)' out
runs 0 checkpoint show copy
says 'step          8; 24 samples read' out
# Started again with the same words, or without any, it continues where it was.
for step in 6 7; do
    runs 3 train --resume --checkpoint again --data second --new-data --save-every 1 --keep 9
    stops_at $step again
done
says 'note: --new-data has no effect: the checkpoint was trained on this data, which continues after sample 12' err
resumes again 3
same undisturbed resumed "a run that changed its data, resumed"
refuses 2 'give --data SPEC as well' 0 train --resume --checkpoint again --new-data
refuses 2 'give --resume as well' 0 train --checkpoint again --new-data --data second
mkdir empty
refuses 2 'empty holds none' 0 train --resume --checkpoint empty --new-data --data second
# Another text gets the tokens of the checkpoint's tokenizer, not of one that would be learnt from it.
resumes saved 0 --data first --new-data
same saved/step-00000004/tokenizer.json copy/step-00000008/tokenizer.json "the tokenizer"
grep -q 'validation    validation' out && complain "$words: validation data of other training data"
write_tokens tokens.bin
resumes saved 0 --data tokens.bin --new-data
says 'vocabulary 270' out
rm -rf ids && runs 0 train $byte --data tokens.bin --vocab 64 --checkpoint ids
refuses 2 "beside the model's weights there is no tokenizer" 0 train --resume --checkpoint ids \
    --data text --new-data

# ---- a run of no steps saves its initial weights ----
runs 3 train $tiny --steps 12 --lr 0.01
digest_of out >undisturbed
runs 2 train $tiny --steps 0 --checkpoint zero --stage 3
says 'checkpoint: step 0 in zero/step-00000000, ' out
says 'nothing to do: --steps 0' out
cp -r zero none
resumes zero 3 --steps 12 --lr 0.01
same undisturbed resumed "a run that begins with saved initial weights"
says 'after 2 steps' out # a fifth of 12, not of 0
runs 0 train --steps 0 --resume --checkpoint none --sample 0
grep '^checkpoint: ' out && complain "$words: it saved again what is there"
runs 0 checkpoint export none --to exported
runs 2 train --steps 0 --init-from exported --data stories:16K --sample 0 --checkpoint imported
runs 0 checkpoint export imported --to exported_again
same exported/model.safetensors exported_again/model.safetensors "weights imported and exported"
runs 0 generate imported --tokens 3
rm -r exported # a run that resumes reads no file of --init-from
resumes imported 0 --steps 2 --global-batch 6
says 'is a rate for random weights' err
runs 0 train --sample 0 --resume --checkpoint copy --steps 3
grep -q 'random weights' err && complain "$words: the model has been trained"
finish
