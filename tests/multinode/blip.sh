# blip.sh ZERO: the link of rank 0's node, or of another, is cut for 3 s and mended. TCP sends again
# what was lost, and training continues with the same result.
. "$(dirname "$0")/common.sh"
zero=$1
steps=80 # the links are slow, so steps take some time on any machine

# digest 'WHAT': waits for the run in the background, which must succeed, and sets $found to its
# digest.
digest() {
    words=$1
    wait $job
    code=$?
    exits 0 blip
    found=$(digest_of blip.metrics)
    echo "$1: $found"
}

steps_done() {
    grep -c '"step":' blip.metrics
}

up blip 2 20mbit
begin blip 2,2 $steps
digest "never cut"
alone=$found
is_digest "$alone"

for k in 0 1; do
    what="node $k cut off for 3 s"
    begin blip 2,2 $steps
    $nodes cut blip $k
    # What had arrived may still make a step.
    sleep 1
    before=-1
    while [ "$before" -ne "$(steps_done)" ]; do
        before=$(steps_done)
        sleep 2
    done
    [ "$before" -lt $steps ] || complain "$what: it did not stop the run before its last step"
    $nodes heal blip $k
    since=$(now)
    until [ "$(steps_done)" -gt "$before" ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
    echo "$what: the next step came after $(($(now) - since)) ms"
    digest "$what"
    [ "$found" = "$alone" ] || complain "$what: digest $found, without a cut $alone"
    settle blip "$(now)" 30000 '^$'
    [ -z "$left" ] || complain "$what: left behind: $left"
done
finish
