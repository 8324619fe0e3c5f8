# A link that is cut for 3 s and mended, that of rank 0's node or another's: blip.sh ZERO
# TCP repeats what was lost, and training goes on as if nothing had been.
. "$(dirname "$0")/common.sh"
zero=$1
steps=80 # on links that are slow, so that steps take some time on any machine

# Sets $found to the digest of the run that was begun last; it has to end well.
digest() {
    wait $job
    code=$?
    [ $code -eq 0 ] || complain "$1: exit code $code: $(cat blip.out)"
    found=$(sed -n 's/.*"digest": *"\([0-9a-f]*\)".*/\1/p' blip.metrics)
    echo "$1: $found"
}

steps_done() {
    grep -c '"step":' blip.metrics
}

up blip 2 20mbit
begin blip 2,2 $steps
digest "never cut"
alone=$found
[ ${#alone} -eq 32 ] || complain "expected a digest of 32 digits, found '$alone'"

for k in 0 1; do
    what="node $k cut off for 3 s"
    begin blip 2,2 $steps
    $nodes cut blip $k
    sleep 1
    before=$(steps_done)
    sleep 2
    [ "$(steps_done)" -eq "$before" ] && [ "$before" -lt $steps ] ||
        complain "$what: expected no step meanwhile, found $before and $(steps_done) of $steps"
    $nodes heal blip $k
    since=$(now)
    until [ "$(steps_done)" -gt "$before" ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
    echo "$what: goes on after $(($(now) - since)) ms"
    digest "$what"
    [ "$found" = "$alone" ] || complain "$what: digest $found, never cut $alone"
    settle blip "$(now)" 2000 '^$'
    [ -z "$left" ] || complain "$what: left behind: $left"
done
finish
