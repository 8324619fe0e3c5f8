# The other scripts of this folder read this file first. Their nodes end when they do, even if they
# are killed.
nodes="sh $(cd "$(dirname "$0")" && pwd)/nodes.sh"
export ZERO_NODES_OWNER=$$
reason=$($nodes possible 2>&1) || {
    echo "skipped: $reason"
    exit 77
}
failed=0
ours=
limit=150 # seconds for a job
grep -q __asan_init "$1" && limit=300
work=$(mktemp -d) && cd "$work" || exit 1
trap 'for name in $ours; do $nodes down $name; done; cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

small='--layers 2 --hidden 48 --heads 3 --seq 32 --global-batch 8 --data stories:64K
    --eval-every 0 --sample 0'

up() { # up NAME N [RATE]: makes nodes, see nodes.sh
    ours="$ours $1"
    $nodes up "$@" || exit 1
}

complain() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

finish() {
    [ $failed -eq 0 ] || echo "$failed checks failed"
    [ $failed -eq 0 ]
    exit
}

now() { # in milliseconds
    echo $(($(date +%s%N) / 1000000))
}

# exits CODE NAME: the last job on the nodes NAME ended with this exit code.
exits() {
    [ $code -eq "$1" ] || complain "$words: exit code $code, expected $1: $(cat "$2.out")"
}

# digest_of FILE: prints the digest in these metrics.
digest_of() {
    sed -n 's/.*"digest": *"\([0-9a-f]*\)".*/\1/p' "$1"
}

# is_digest TEXT
is_digest() {
    [ ${#1} -eq 32 ] || complain "$words: expected a digest of 32 digits, found '$1'"
}

# settle NAME SINCE LIMIT PATTERN: waits, at most until LIMIT ms after SINCE, until the job has left
# nothing behind but what matches the pattern. Sets $left to the rest.
settle() {
    while left=$($nodes left "$1" | grep -v "$4") && [ $(($(now) - $2)) -lt "$3" ]; do
        sleep 0.05
    done
}

# on NAME RANKS,RANKS,... [OPTIONS] -- WORDS...: runs a job, which must end within $limit s and
# leave nothing behind. The file NAME.out gets its output, and $code its exit code.
on() {
    words="$*"
    timeout -k 5 $limit $nodes run "$@" >"$1.out" 2>&1
    code=$?
    settle "$1" "$(now)" 30000 '^$'
    [ -z "$left" ] || complain "$words: left behind: $left"
}

# begin NAME RANKS,RANKS,... [STEPS]: trains in the background, without end unless STEPS is given,
# and waits for 9 steps. The run prints nothing between its first step and its last.
begin() {
    words="zero train on $1 with $2 ranks"
    begun=$(now)
    rm -f "$1.metrics"
    timeout -k 5 $limit $nodes run "$1" "$2" -- "$zero" train $small --steps "${3-1000000}" \
        --log-every 1000000 --metrics "$work/$1.metrics" >"$1.out" 2>&1 &
    job=$!
    until grep -q '"step": *9,' "$1.metrics" 2>/dev/null; do
        if ! kill -0 $job 2>/dev/null || [ $(($(now) - begun)) -gt $((1000 * limit)) ]; then
            complain "$1: expected 9 steps within $limit s: $(cat "$1.out")"
            finish
        fi
        sleep 0.05
    done
}

# ends NAME JOB SINCE LIMIT 'WHAT' [PATTERN]: mpirun fails, and within LIMIT ms of SINCE the whole
# job is gone, except what matches the pattern.
ends() {
    wait "$2"
    code=$?
    ended=$(($(now) - $3))
    settle "$1" "$3" "$4" "${6-^$}"
    gone=$(($(now) - $3))
    echo "$5: mpirun returned $code after $ended ms, the job was gone after $gone ms"
    [ $code -ne 0 ] || complain "$5: mpirun returned 0"
    [ $ended -le "$4" ] ||
        complain "$5: mpirun took $ended ms, expected at most $4 ms: $(cat "$1.out")"
    [ -z "$left" ] || complain "$5: left behind: $left"
}

# strike NAME NODE...: kills all ranks on these nodes at once.
strike() {
    name=$1
    shift
    victims=
    for node; do victims="$victims $($nodes pids "$name" "$node" "$(basename "$zero")")"; done
    # shellcheck disable=SC2086 # one word each
    kill -9 $victims || complain "no ranks to kill"
}
