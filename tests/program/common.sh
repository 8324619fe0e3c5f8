# The other scripts of this folder read this file first. Their arguments are the program,
# check_metrics and the launch line, in which RANKS stands for the number of ranks.
zero=$1
checker=$2
tracer=$(dirname "$2")/check_trace
shift 2
launch=$*
support=$(cd "$(dirname "$0")/../support" && pwd)
failed=0
started_in=$PWD
disk=
made_disk= # only finds_a_disk sets it: it is removed at the end
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work" ${made_disk:+"$made_disk"}' EXIT
trap 'exit 1' HUP INT TERM

small="--layers 2 --hidden 48 --heads 3 --seq 32 --global-batch 6 --data stories:64K"
tiny="--layers 1 --hidden 16 --heads 2 --seq 8 --data stories:16K --tokenizer byte
    --eval-every 0 --sample 0"

# Limits on time are multiplied by this.
slow=1
! grep -qs __asan_init "$zero" || slow=5

# with_mpich: the launcher is that of MPICH, which waits for the other ranks if one fails before MPI
# has started. So each rank prints its message.
with_mpich() {
    "${launch%% *}" --version 2>/dev/null | grep -q HYDRA
}

# skip REASON...: ends the script; CTest counts the test as skipped.
skip() {
    echo "skipped: $*"
    exit 77
}

# finds_a_disk: sets $disk to a new directory for --offload. If the tests do not run on a disk, $disk
# is empty, and the file `info` says why.
finds_a_disk() {
    made_disk=$(mktemp -d "$started_in/zero_disk_XXXXXX") || exit 1
    disk=$made_disk
    "$zero" info --offload "$disk" >info 2>&1 && return
    rmdir "$disk"
    disk=
    made_disk=
}

# on N command...: runs the command on N ranks with mpirun, or without mpirun if N is 0.
on() {
    ranks=$1
    shift
    if [ "$ranks" -eq 0 ]; then
        "$@"
    else
        $(echo "$launch" | sed "s/RANKS/$ranks/") "$@"
    fi
}

# ranks_of PID: prints the processes below PID that run the program, one per line.
ranks_of() {
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        [ "$(cat /proc/"$child"/comm 2>/dev/null)" = "$(basename "$zero")" ] && echo "$child"
        ranks_of "$child"
    done
}

# await SECONDS command...: repeats the command until it succeeds; fails after that time.
await() {
    tries=$((50 * $1))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.02
    done
}

# complain TEXT...: on stderr, since the output of a loop may go to a file.
complain() {
    {
        echo "FAILED: $*"
        sed 's/^/  stdout: /' out
        sed 's/^/  stderr: /' err
    } >&2
    failed=$((failed + 1))
}

# legible FILE: makes what mpirun wrote fit for grep. Open MPI 5 ends its texts with NUL bytes, so
# that grep takes the file for binary, and may put our message on a line that it has begun.
legible() {
    tr -d '\000' <"$1" | sed 's/\(.\)zero: /\1\
zero: /' >"$1.legible"
    mv "$1.legible" "$1"
}

# run N words...: runs zero on N ranks. Writes the files out and err; sets $code to the exit code.
run() {
    n=$1
    shift
    words="zero $* ($n ranks)"
    on "$n" "$zero" "$@" >out 2>err
    code=$?
    [ "$n" -eq 0 ] || legible err
}

# exits CODE: the last run ended with this exit code.
exits() {
    [ "$code" -eq "$1" ] || complain "$words: exit code $code, expected $1"
}

# runs N words...: zero succeeds, prints nothing but warnings and notes on stderr, and draws no
# live line.
runs() {
    run "$@"
    exits 0
    grep '^zero: ' err | grep -qv '^zero: \(warning\|note\): ' &&
        complain "$words: unexpected error message"
    grep -q "$(printf '\r')" out err && complain "$words: a carriage return without --progress live"
    return 0
}

# refuses CODE 'TEXT' N words...: zero ends within a minute with this code and one message, which
# contains TEXT. A second is enough where nothing else runs, and a rank that waits for the others would
# wait for two minutes. It prints nothing on stdout and, without mpirun, one line on stderr. With MPICH
# each rank may have a message, and its launcher may end before it has passed any on: then once more.
refuses() {
    expected=$1
    text=$2
    shift 2
    for _ in 1 2 3 4; do
        start=$(date +%s)
        run "$@"
        seconds=$(($(date +%s) - start))
        if grep -q '^zero: ' err || ! with_mpich; then break; fi
    done
    exits "$expected"
    messages=$(grep -c '^zero: ' err)
    [ "$messages" -eq 1 ] || { [ "$messages" -eq "$1" ] && with_mpich; } ||
        complain "$words: expected one message"
    grep '^zero: ' err | grep -qF -e "$text" || complain "$words: expected '$text' in the message"
    grep -q '^zero: zero ' err && complain "$words: the message begins with two names"
    [ $seconds -le 60 ] || complain "$words: the job took $seconds s, expected at most 60 s"
    [ -s out ] && complain "$words: expected nothing on stdout"
    [ "$1" -gt 0 ] || [ "$(wc -l <err)" -eq 1 ] || complain "$words: expected one line on stderr"
}

# says 'TEXT' FILE: this output of the last run contains TEXT, which is not empty.
says() {
    [ -n "$1" ] && grep -qF -e "$1" "$2" || complain "$words: expected '$1' in $2"
}

# same A B 'WHAT': the two files are equal and not empty. differ A B 'WHAT': they are not equal.
same() {
    [ -s "$1" ] && cmp -s "$1" "$2" && return
    complain "$3: $1 and $2 differ or are empty"
    diff "$1" "$2" | head -n 6
}
differ() {
    cmp -s "$1" "$2" && complain "$3: $1 and $2 are equal"
    return 0
}

# is_json FILE: the file contains JSON objects and nothing else.
is_json() {
    "$checker" json <"$1" >checked 2>&1 || complain "$words: $1 is not JSON: $(cat checked)"
}

# is_trace FILE: it is a trace that viewers can draw. `traced` gets its spans and flights by rank.
is_trace() {
    "$tracer" drawn "$1" >traced 2>checked || complain "$words: $1: $(cat checked)"
}

# narrow N FILE: no line of the file has more than N columns.
narrow() {
    awk -v most="$1" 'length > most { exit 1 }' "$2" ||
        complain "$words: $2 has a line of more than $1 columns"
}

# check RANKS STEPS FILE BITS: the metrics in FILE are valid. BITS gets the part of them that does
# not depend on time.
check() {
    "$checker" "$1" "$2" "$3" >"$4" 2>checked || {
        complain "$words: the metrics are not valid"
        cat checked
    }
}

# digest_of FILE: prints the digest in this output of a run.
digest_of() {
    sed -n 's/^  digest *//p' "$1"
}

# ends_with FILE N words...: a run on N ranks with the options $model and $run adds its digest to FILE.
ends_with() {
    file=$1
    n=$2
    shift 2
    # shellcheck disable=SC2086,SC2154 # words; the script sets them
    runs "$n" train $model $run "$@"
    digest_of out >>"$file"
}

# one FILE N 'WHAT': the file has N equal digests.
one() {
    [ "$(sort -u "$1" | wc -l) $(grep -c . "$1")" = "1 $2" ] ||
        complain "$3: these digests: $(cat "$1")"
}

# holds DIRECTORY NAMES...: the directory contains these, in the order of LC_ALL=C, and no others.
# Only a run that was killed leaves .lock, which names its process.
holds() {
    directory=$1
    shift
    found=$(echo $(LC_ALL=C ls -A "$directory" | grep -vx '\.lock'))
    [ "$found" = "$*" ] || complain "$words: $directory contains '$found', expected '$*'"
}

# verifies DIRECTORY: all checkpoints in it are whole.
verifies() {
    "$zero" checkpoint verify "$1" >verified 2>&1 && return
    complain "$words: a checkpoint in $1 does not verify"
    cat verified
}

# write_tokens FILE: writes 2000 tokens from 0 to 49 as nanoGPT does, in 16 bits each.
write_tokens() {
    printf "$(awk 'BEGIN { for (i = 0; i < 2000; i++) printf "\\%03o\\000", i % 50 }')" >"$1"
}

# goes_on_to STEP RANKS words...: trains with the options $batch and checkpoints in run/, up to this
# step: as if the run had been killed after it had saved it.
goes_on_to() {
    step=$1
    n=$2
    shift 2
    # shellcheck disable=SC2086,SC2154 # words; the script sets it
    runs "$n" train $batch --checkpoint run --save-every 1 --keep 9 "$@"
    for later in run/step-*; do
        [ "${later#run/step-}" -le "$step" ] || rm -r "$later"
    done
}

finish() {
    [ $failed -eq 0 ] || echo "$failed checks failed"
    [ $failed -eq 0 ]
    exit
}
