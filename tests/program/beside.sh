# zero train --save: a checkpoint that is written beside steps has the bytes of one that the run waits for,
# in every layout, also where the disk is slower than the steps. SHIM is the library of freeze_shim.c.
. "$(dirname "$0")/common.sh"
finds_a_disk
steps="$small --eval-every 0 --sample 0 --steps 7 --save-every 2 --keep 9 --metrics m"

# saves N WAY OPTIONS...: a run that saves in DIR `WAY`.
saves() {
    n=$1
    way=$2
    shift 2
    rm -rf "$way" m
    runs "$n" train $steps --save "$way" --checkpoint "$way" "$@"
    holds "$way" step-00000002 step-00000004 step-00000006 step-00000007
    said=$(sed -n 's/^checkpoint: step \([0-9]*\) .*/\1/p' out | tr '\n' ' ')
    [ "$said" = '2 4 6 7 ' ] || complain "$words: announced $said"
    grep -q '"saves":{"count":4,"exposed_seconds":[0-9.e-]*,"update_seconds":[0-9.e-]*}' m ||
        complain "$words: the metrics have no saves"
}

# same_files N OPTIONS...
same_files() {
    saves "$1" sync $(shift; echo "$@")
    digest_of out >expected
    saves "$1" beside $(shift; echo "$@")
    digest_of out >digest
    same expected digest "$words"
    diff -r sync beside >out 2>&1 || complain "$words: other files than with --save sync"
}

while read -r n options; do same_files "$n" $options; done <<'END'
0 --stage 0 --dtype bf16
3 --stage 0
3 --stage 1 --dtype bf16 --partition owner
2 --stage 2 --dtype fp16 --collectives p2p
3 --stage 3 --dtype bf16 --check-memory --check-compute 2
2 --stage 2 --tp 2 --heads 2
4 --stage 2 --shard-ranks 2 --global-batch 8
2 --stage 3 --recompute --global-batch 8 --micro-batch 1 --reproducible
END
[ -z "$disk" ] || while read -r n options; do same_files "$n" --offload "$disk" $options; done <<'END'
0 --stage 0 --dtype bf16
3 --stage 1
3 --stage 2 --dtype bf16 --offload-when end
2 --stage 3 --offload-when backward --clip 0
2 --stage 3 --dtype bf16 --delayed-update 3
2 --stage 3 --dtype bf16 --offload-parameters --recompute --offload-activations
END

# Each write to a shard takes 10 ms, and a step a few: UPDATE waits, and so does the next save.
slowly() { # slowly N OPTIONS...
    saves "$1" sync $(shift; echo "$@")
    zero_itself=$zero
    zero=$work/slow
    printf '#!/bin/sh\nLD_PRELOAD=%s exec %s "$@"\n' "$SHIM" "$zero_itself" >slow
    chmod +x slow
    export FREEZE_PATH=shard- FREEZE_CALLS=write FREEZE_SECONDS=0.01
    saves "$1" beside $(shift; echo "$@")
    unset FREEZE_PATH FREEZE_CALLS FREEZE_SECONDS
    zero=$zero_itself
    diff -r sync beside >out 2>&1 || complain "$words: other files from a slow disk"
    waited=$(sed -n 's/.*"update_seconds":\([0-9.]*\).*/\1/p' m)
    awk "BEGIN { exit !(${waited:-0} > 0.1) }" ||
        complain "$words: UPDATE waited $waited s"
}
slowly 2 --stage 2
slowly 2 --stage 1 --dtype bf16
[ -z "$disk" ] || slowly 2 --stage 3 --dtype bf16 --offload "$disk"
[ -z "$disk" ] || slowly 2 --stage 2 --offload "$disk" --offload-when backward --clip 0

# A run whose next step fails on all ranks publishes what is in flight.
rm -rf lost
run 2 train $small --eval-every 0 --sample 0 --steps 9 --save-every 1 --warmup 0 --lr 100 --clip 0 \
    --checkpoint lost
[ "$code" -ne 0 ] || complain "$words: expected a step that is not finite"
says 'is not finite' err
last=$(sed -n 's/^checkpoint: step \([0-9]*\) .*/\1/p' out | tail -n 1)
done=$(sed -n 's/.*step \([0-9]*\): the [a-z]* is not finite.*/\1/p' err)
[ "${last:-0}" -eq $((${done:-0} - 1)) ] || complain "$words: step $last is the newest checkpoint"
verifies lost
finish
