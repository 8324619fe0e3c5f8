# Ranks of a node that reach each other's devices, emulated, and messages from and to devices: the digest
# of the exchange through the host for stages, types, partitions, nodes and orders of execution, not a byte
# of it through the host inside a node or in messages, and the exchange through the host where devices
# cannot reach each other.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
"$zero" info >info 2>&1
grep -q '^devices .*cuda-emulated' info || skip "this build has no emulated device"
model="$tiny --micro-batch 1 --lr 0.01 --steps 4 --device cuda-emulated"

# copied FILE KEY: bytes of one metric between the host and the device, of all kinds of collectives.
copied() {
    grep -o "\"$2\": *[0-9]*" "$1" | sed 's/.*: *//' | sort -u | tr '\n' ' '
}

# exchanges WAY N words...: N ranks that exchange so measure what was planned.
exchanges() {
    way=$1
    n=$2
    shift 2
    rm -f $way.jsonl
    runs "$n" train $model --device-exchange $way --metrics $way.jsonl "$@"
    check "$n" 4 $way.jsonl bits
    says "exchange      $way: " out
    digest_of out >digest_$way
}

# equal N words...: both exchanges end with one digest.
equal() {
    exchanges staged "$@"
    exchanges ipc "$@"
    same digest_staged digest_ipc "the digests of $words"
}

# skips_host WAY: it copies nothing to or from the host.
skips_host() {
    [ "$(copied $1.jsonl bytes_fetched)$(copied $1.jsonl bytes_stored)" = "0 0 " ] ||
        complain "$words: expected no bytes of collectives through the host"
}

# agrees N words...: on one node, where nothing passes through the host.
agrees() {
    equal "$@"
    skips_host ipc
    [ "$(copied staged.jsonl bytes_fetched)" != "0 " ] ||
        complain "$words: expected bytes through the host"
}

# messages N words...: those from and to devices end with the digest of the exchanges before. They reach an
# emulated device only with this variable; the host then does, too.
messages() {
    export ZERO_EMULATED_MPI=1
    exchanges mpi "$@" --collectives p2p
    unset ZERO_EMULATED_MPI
    skips_host mpi
    same digest_staged digest_mpi "the digests of $words"
}

# all_agree N words...: on one node, all three.
all_agree() {
    agrees "$@"
    messages "$@"
}
for stage in 0 1 2 3; do
    agrees 2 --stage $stage
    all_agree 3 --stage $stage --dtype bf16
done
all_agree 4 --stage 3 --dtype fp16 --check-replicas 1
runs 4 train $model --stage 3 --dtype fp16 --fake-nodes 2
says 'ipc: devices read each other'"'"'s memory (inside nodes; between them through the host)' out
digest_of out >digest_nodes
same digest_ipc digest_nodes 'one node or two: the digests'
all_agree 3 --stage 1 --partition owner --dtype bf16
all_agree 3 --stage 3 --partition owner --prefetch 3
all_agree 2 --stage 2 --overlap off --dropout 0.1

# most FILE KEY: the largest number of bytes, and share KEY N: of what passes the host when staged, ipc
# needs one part in N.
most() {
    copied "$1" "$2" | tr ' ' '\n' | sort -n | tail -n 1
}
share() {
    [ $(($(most ipc.jsonl "$1") * $2)) = "$(most staged.jsonl "$1")" ] ||
        complain "$words: $1: $(most ipc.jsonl "$1") with ipc, expected one in $2 of $(most staged.jsonl "$1")"
}
equal 4 --fake-nodes 2 --stage 3
share bytes_fetched 2 # of 4 pieces the delegate's two, already summed
share bytes_stored 4  # of 4 pieces the one that this rank receives
equal 6 --fake-nodes 3 --stage 1 --dtype bf16 --partition owner
equal 3 --fake-nodes 2 --stage 2 --dtype bf16
messages 3 --fake-nodes 2 --stage 2 --dtype bf16
for way in staged ipc; do
    runs 2 train $model --stage 3 --offload host --device-exchange $way
    digest_of out >digest_$way
done
same digest_staged digest_ipc "$words"
for seed in 0 7 8; do
    words="ZERO_EMULATED_ORDER=$seed"
    on 3 env ZERO_EMULATED_ORDER=$seed "$zero" train $model --stage 3 >out 2>err ||
        complain "$words: it fails"
    digest_of out >digest_$seed
    same digest_0 digest_$seed "$words"
done

# ---- which of the two, and why ----

runs 2 train $model
says 'exchange      ipc: devices read each other'"'"'s memory (all ranks on one node); MPI is ' out
says "neighbours' devices read it, 0 B through the host" out
digest_of out >digest_ipc
words="no peers"
on 2 env ZERO_EMULATED_PEERS=0 "$zero" train $model >out 2>err || complain "$words: it fails"
says '--device-exchange auto takes staged: ' err
says 'peer access is not supported between these two devices' err
says 'exchange      staged: through the host (' out
digest_of out >digest_staged
same digest_ipc digest_staged "$words"
words="no peers, one device" # within which there is nothing to reach
on 2 env ZERO_EMULATED_PEERS=0 "$zero" train $model --device cuda-emulated:1 \
    --device-exchange ipc >out 2>err || complain "$words: it fails"
digest_of out >digest_one
same digest_ipc digest_one "$words"
words="no peers, ipc"
on 2 env ZERO_EMULATED_PEERS=0 "$zero" train $model --device-exchange ipc >out 2>err &&
    complain "$words: expected a refusal"
says '--device-exchange ipc: device ' err
says 'use --device-exchange auto or staged' err

runs 2 train $model --collectives p2p
says 'staged: through the host (only --collectives shm and hier read neighbours'"'"' memory)' out
runs 2 train $model --fake-nodes 2
says 'staged: through the host (one rank per node)' out
runs 2 train $tiny --micro-batch 1 --steps 1 --device fake
says "staged: through the host (other processes cannot reach this device's memory)" out
refuses 3 "memory of device 'fake' cannot be reached" 2 train $tiny --micro-batch 1 --steps 1 \
    --device fake --device-exchange ipc
refuses 2 'only --collectives shm and hier read' 2 train $model --device-exchange ipc --collectives p2p
refuses 2 '--device-exchange ipc without a device' 0 train $tiny --device-exchange ipc
refuses 2 'only --collectives p2p sends' 2 train $model --device-exchange mpi
refuses 3 "MPI does not reach the memory of device 'cuda-emulated': this MPI is " 2 train $model \
    --device-exchange mpi --collectives p2p
refuses 3 "memory of device 'fake' cannot be reached" 2 train $tiny --micro-batch 1 --steps 1 \
    --device fake --device-exchange mpi --collectives p2p
refuses 2 'for a plan --fake-nodes 1' 0 plan --device cuda --ranks 2 --device-exchange ipc
runs 0 plan --device cuda --ranks 2 --fake-nodes 1 --stage 1
says 'ipc: devices read each other' out
grep -Eq '^  REDUCE +0 +0$' out || complain "$words: expected no copies"
runs 0 plan --device cuda --ranks 2 --collectives p2p --stage 1 --device-exchange mpi
says 'mpi: messages from and to the devices' out
grep -Eq '^  REDUCE +0 +0$' out || complain "$words: expected no copies"
runs 0 plan --device cuda --ranks 2 --fake-nodes 1 --stage 1 --device-exchange staged
says 'staged: between devices through the host' out
grep -Eq '^  REDUCE +0 +0$' out && complain "$words: expected copies"
"$zero" info >out 2>err
grep -Eq '^mpi cuda .*CUDA-aware' out || complain "zero info: expected mpi cuda"

# ---- texts, and a failure on the way ----

runs 2 train $model --checkpoint run --stage 2
runs 0 generate run --tokens 12 --temperature 0
mv out text
runs 3 generate run --tokens 12 --temperature 0 --device cuda-emulated --stage 3
same text out "the text of $words"
words="a failure"
on 3 env ZERO_EMULATED_FAIL=400 "$zero" train $model --steps 20 --stage 2 >out 2>err &&
    complain "$words: expected a failure"
says 'unspecified launch failure' err
finish
