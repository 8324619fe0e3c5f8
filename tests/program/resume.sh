# Any number of ranks in any stage resumes any checkpoint, and ends like a run that never stopped.
# WHOLE=1 takes every pair of 20 layouts, and every pair of 16 reproducible ones.
. "$(dirname "$0")/common.sh"

# layouts 'RANKS...': prints RANKS/STAGE for all stages.
layouts() {
    for ranks in $1; do
        for stage in 0 1 2 3; do echo "$ranks/$stage"; done
    done
}

if [ "${WHOLE:-0}" = 1 ]; then
    from=$(layouts "1 2 3 4 8") to=$from
    goes_on=$from
    from_reproducible=$(layouts "1 2 4 8") to_reproducible=$from_reproducible
else
    from="1/0 2/1 3/2 4/3 8/1" to="1/1 2/3 3/0 4/2 8/3"
    goes_on="3/0 3/1 3/3"
    from_reproducible="2/1" to_reproducible="1/0 2/3 4/2 8/3"
fi

# saves LAYOUT DIR words...: trains four steps with a checkpoint after the second, the only one that
# stays in DIR. DIR.half and DIR.end get the digests after two and four steps.
saves() {
    layout=$1
    dir=$2
    shift 2
    runs "${layout%/*}" train $tiny "$@" --stage "${layout#*/}" --steps 4 --save-every 2 \
        --checkpoint "$dir"
    digest_of out >"$dir.end"
    rm -r "$dir/step-00000004"
    runs 0 checkpoint show "$dir"
    digest_of out >"$dir.half"
    [ "$(wc -c <"$dir.half") $(wc -c <"$dir.end")" = "33 33" ] || complain "$words: no digests"
}

# loads LAYOUT DIR words...: resumes with no step left, so the digest is the loaded state's.
loads() {
    layout=$1
    dir=$2
    shift 2
    runs "${layout%/*}" train $tiny "$@" --stage "${layout#*/}" --steps 2 --resume \
        --checkpoint "$dir"
    digest_of out >loaded
    same "$dir.half" loaded "$words"
    says "resumed       step 2 of " out
    says "digest $(cat "$dir.half")" out
}

# continues LAYOUT DIR words...: resumes up to the fourth step.
continues() {
    layout=$1
    dir=$2
    shift 2
    cp -r "$dir" copy
    runs "${layout%/*}" train $tiny "$@" --stage "${layout#*/}" --steps 4 --resume --checkpoint copy
    digest_of out >ended
    same "$dir.end" ended "$words, from $dir"
    rm -r copy
}

batch="--global-batch 24"
for layout in $from; do
    saves "$layout" "from-${layout%/*}-${layout#*/}" $batch
done
for dir in from-*-?; do
    for layout in $to; do loads "$layout" "$dir" $batch; done
    ranks=${dir#from-}
    for layout in $goes_on; do # without --reproducible, equal bits need equal numbers of ranks
        [ "${layout%/*}" = "${ranks%-*}" ] && continues "$layout" "$dir" $batch
    done
done

batch="--reproducible --global-batch 8 --micro-batch 1"
for layout in $from_reproducible; do
    dir=reproducible-${layout%/*}-${layout#*/}
    saves "$layout" "$dir" $batch
    for other in $to_reproducible; do continues "$other" "$dir" $batch; done
done
cat reproducible-*.end | sort -u >ends
[ "$(wc -l <ends)" -eq 1 ] || complain "reproducible runs of several layouts ended differently"

# README's words: one global batch, and nothing about the micro batch.
batch="--reproducible --global-batch 24"
saves 2/1 readme $batch
for layout in 1/0 4/2 8/3; do continues "$layout" readme $batch; done

# Another micro batch would end with other bits.
refuses 2 "saved with --reproducible --micro-batch 1, and this run has --micro-batch 2" 2 \
    train $tiny --reproducible --global-batch 8 --micro-batch 2 --steps 4 --resume \
    --checkpoint reproducible-2-1
says "give --micro-batch 1, or --reproducible=off" err
# So would other slices.
refuses 2 "saved with --reproducible --tp-slices 1, and this run has --tp-slices 2" 2 \
    train $tiny --reproducible --global-batch 8 --steps 4 --tp-slices 2 --resume \
    --checkpoint reproducible-2-1
runs 2 train $tiny --reproducible --global-batch 8 --steps 4 --resume --checkpoint reproducible-2-1

# A run with another global batch continues at the next sample: 2 steps of 24 and 4 of 12 are 96.
cp -r from-3-2 copy
runs 3 train $tiny --global-batch 12 --stage 2 --steps 6 --resume --checkpoint copy
says '--global-batch 12 (saved: 24)' out
runs 0 checkpoint show copy
says 'step          6; 96 samples read' out
finish
