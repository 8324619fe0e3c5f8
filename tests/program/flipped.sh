# A bit flips in one rank's memory, by the library FLIP (flip_shim.c). The run ends with 1 before it
# saves; the message names the rank, the tensor and the checkpoint to resume from. Without the rank's
# fault the resumed run ends as if nothing had happened.
. "$(dirname "$0")/common.sh"
tiny="train $small --sample 0 --eval-every 0 --steps 12"
runs 3 $tiny
digest_of out >expected

# flips AT OPTIONS...: a run with a flip, at the AT-th hash of rank 1.
flips() {
    words="FLIP_AT=$1 zero $tiny"
    at=$1
    shift
    on 3 env FLIP_AT="$at" FLIP_RANK=1 LD_PRELOAD="$FLIP" "$zero" $tiny "$@" >out 2>err
    code=$?
    legible err
    exits 1
    [ "$(grep '^zero: ' err | grep -vc 'warning: ')" -eq 1 ] ||
        complain "$words: expected one message"
    says 'rank 1 holds other bits than the other ranks in the ' err
}

# A model of 2 layers has 4 groups of 3 arrays: a comparison takes 12 hashes. The second one comes
# before the second checkpoint.
flips 13 --checkpoint saved --save-every 5
says "the parameters of " err
says ', element 0 (0x' err
says 'on other hardware (saved/step-00000005)' err
[ "$(ls saved)" = step-00000005 ] || complain "$words: expected the checkpoint of step 5 alone"
runs 3 $tiny --checkpoint saved --resume
digest_of out >digest
same expected digest "a run resumed after a flipped bit"

# Within steps, and at the end of a run that saves nothing
flips 30 --check-replicas 1
says 'zero: step 3: rank 1 holds' err
flips 1
says 'rank 1 runs: resume from the newest checkpoint' err

# Nothing looks for it
on 3 env FLIP_AT=1 FLIP_RANK=1 LD_PRELOAD="$FLIP" "$zero" $tiny --check-replicas 0 >out 2>err ||
    complain "zero $tiny --check-replicas 0: expected exit code 0"

# Optimizer states are watched as well; bits and the ledger stay right.
for options in '--stage 1 --dtype bf16' '--stage 3'; do
    runs 3 $tiny $options --metrics m
    digest_of out >digest
    runs 3 $tiny $options --metrics n --check-memory --check-replicas 1
    digest_of out >watched
    same digest watched "a run with checks"
    tail -n 1 n | tr -d ' ' |
        grep -q '"control":{"planned_bytes_sent":\([0-9]*\),[^}]*"programs_bytes_sent":\1,' ||
        complain "$words: control traffic is not what was planned"
done
finish
