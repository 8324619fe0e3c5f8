# faults.sh: a rank that leaves the others alone is named within the watchdog's limit, and all end.
# shellcheck source=tests/python/common.sh
. "$(dirname "$0")/common.sh"
demand_torch
export ZERO_TORCH_WATCHDOG=4
module='' limit=''

# fault WHAT CODE TEXT...: rank 2 of 3 does WHAT. All ends within a minute, and nobody goes on.
fault() {
    what=$1 code=$2
    shift 2
    began=$(date +%s)
    # shellcheck disable=SC2086 # words
    fails "$code" 3 timeout 100 "$python" $module "$here/faults.py" "$what" $limit
    took=$(($(date +%s) - began))
    [ $took -lt 60 ] || complain "$what took $took s"
    for text in "$@"; do says "$text" err; done
    ! grep -q 'went through' out || complain "$what: a rank went on"
    ! pgrep -f "$here/faults.py $what" >/dev/null || complain "$what: ranks are left"
}

fault operation 86 'rank 2'
fault size 86 'rank 2'
fault type 86 'rank 2'
fault skip 86 'rank 2'
fault asleep 86 'rank 2.*load_batch, faults.py:[0-9]'
fault raise 1 'ValueError: bad batch on this rank'
fault kill 137 'signal 9'
fault exit 86 'rank 2: waiting for the end of the group'
unset ZERO_TORCH_WATCHDOG # the program's own limit, which comes after the start of MPI
module='-m zero_torch' limit=5
fault asleep 86 'longer than the watchdog.*rank 2.*load_batch, faults.py:[0-9]'
exit $failed
