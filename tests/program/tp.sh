# Tensor parallelism through the program: with the same slices every --tp ends in one digest.
. "$(dirname "$0")/common.sh"
model="--layers 2 --hidden 32 --heads 8 --seq 8 --data stories:16K --tokenizer byte --eval-every 0
    --sample 0"

# Initial weights do not know T.
run="--steps 0 --global-batch 8"
for tp in 1 2 4 8; do ends_with initial 8 --tp $tp; done
one initial 4 "initial weights"

# Five steps whose sums are trees over eight slices do not either, also where ranks keep pieces of
# activations.
run="--steps 5 --global-batch 8 --micro-batch 1 --reproducible --tp-slices 8 --dropout 0.1"
pieces="--recompute --partition-activations"
for type in fp32 bf16; do
    # shellcheck disable=SC2086 # words
    ends_with $type 1 --dtype $type
    ends_with $type 8 --dtype $type --tp 1 --stage 3
    ends_with $type 8 --dtype $type --tp 2 --stage 1 --recompute
    ends_with $type 8 --dtype $type --tp 4 --stage 2 --collectives p2p --check collectives $pieces
    ends_with $type 8 --dtype $type --tp 4 --collectives hier --fake-nodes 2 --overlap off $pieces
    ends_with $type 8 --dtype $type --tp 8 --stage 3 --fake-nodes 2 --tp-across-nodes
    one $type 6 "$type, eight slices"
done

# A checkpoint resumes with any other N and T, also in another stage.
saves() { # saves N words...: six steps; `resumed` gets the digest
    n=$1
    shift
    # shellcheck disable=SC2086 # words
    runs "$n" train $model $batch --steps 6 --checkpoint saved --save-every 3 --keep 9 "$@"
    digest_of out >resumed
}
batch="--global-batch 8 --micro-batch 1 --reproducible --tp-slices 4 --dropout 0.1"
# shellcheck disable=SC2086 # words
saves 4 --tp 2 --stage 2 $pieces
mv resumed undisturbed
rm -r saved/step-00000006
mv saved first
for layout in "4 1 0" "4 4 1" "2 2 3" "8 1 2" "1 1 0"; do
    rm -rf saved
    cp -r first saved
    set -- $layout
    # shellcheck disable=SC2046 # words
    saves "$1" --tp "$2" --stage "$3" --resume $([ "$2" -ne 4 ] || echo "$pieces")
    same undisturbed resumed "resumed on $1 ranks with --tp $2, stage $3"
    verifies saved
done

# Text does not know T either.
for tp in 1 2 4; do
    runs 4 generate saved --tp $tp --tp-slices 4 --prompt 'Once' --tokens 12
    cp out text$tp
done
same text1 text2 "text with --tp 2"
same text1 text4 "text with --tp 4"

# What cannot be shared is refused with the numbers.
refuses 2 '--tp 4' 3 train $model --tp 4
refuses 2 "--tp 4: each rank needs whole heads" 4 train $tiny --tp 4
refuses 2 'needs --recompute' 4 train $model --tp 4 --partition-activations
refuses 2 'needs --tp 2 or more' 4 train $model --recompute --partition-activations
refuses 2 '--tp-slices 6' 4 train $model --tp 4 --tp-slices 6
refuses 2 '--tp-across-nodes' 4 train $model --tp 4 --fake-nodes 2
finish
