# Read by the other scripts of this folder. Their arguments are the program, check_metrics and
# the launch line, in which RANKS stands for the number of ranks.
zero=$1
checker=$2
shift 2
launch=$*
failed=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

small="--layers 2 --hidden 48 --heads 3 --seq 32 --global-batch 6 --data stories:64K"

# on N command...: by mpirun; N = 0: without.
on() {
    ranks=$1
    shift
    if [ "$ranks" -eq 0 ]; then
        "$@"
    else
        $(echo "$launch" | sed "s/RANKS/$ranks/") "$@"
    fi
}

# ranks_of PID: the processes below it that are the program, one line each.
ranks_of() {
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        [ "$(cat /proc/"$child"/comm 2>/dev/null)" = "$(basename "$zero")" ] && echo "$child"
        ranks_of "$child"
    done
}

complain() {
    echo "FAILED: $*"
    sed 's/^/  stdout: /' out
    sed 's/^/  stderr: /' err
    failed=$((failed + 1))
}

# run N words...: zero on N ranks; leaves the files out and err, and its exit code in $code.
run() {
    n=$1
    shift
    words="zero $* ($n ranks)"
    on "$n" "$zero" "$@" >out 2>err
    code=$?
}

# runs N words...: it ends well, says nothing but warnings on stderr, and draws no bar.
runs() {
    run "$@"
    [ $code -eq 0 ] || complain "$words: exit code $code, expected 0"
    grep '^zero: ' err | grep -qv '^zero: warning: ' && complain "$words: an error without its code"
    grep -q "$(printf '\r')" out err && complain "$words: a carriage return without --progress bar"
    return 0
}

# refuses CODE 'TEXT' N words...: it ends within 10 s with this code and one message, which has
# the text; nothing is printed as if it had begun. Without mpirun the message stands alone.
refuses() {
    expected=$1
    text=$2
    shift 2
    start=$(date +%s)
    run "$@"
    seconds=$(($(date +%s) - start))
    [ $code -eq "$expected" ] || complain "$words: exit code $code, expected $expected"
    [ "$(grep -c '^zero: ' err)" -eq 1 ] || complain "$words: expected one message"
    grep '^zero: ' err | grep -qF -e "$text" || complain "$words: expected '$text' in the message"
    [ $seconds -le 10 ] || complain "$words: the job ended after $seconds s only"
    [ -s out ] && complain "$words: expected nothing on stdout"
    [ "$1" -gt 0 ] || [ "$(wc -l <err)" -eq 1 ] || complain "$words: expected the message alone"
}

# says 'TEXT' FILE: for what was run last.
says() {
    grep -qF -e "$1" "$2" || complain "$words: expected '$1' in $2"
}

# same A B 'what' and differ A B 'what': two files.
same() {
    cmp -s "$1" "$2" && return
    complain "$3: $1 and $2 differ"
    diff "$1" "$2" | head -n 6
}
differ() {
    cmp -s "$1" "$2" && complain "$3: $1 and $2 are equal"
    return 0
}

# check RANKS STEPS FILE BITS: the metrics file is valid; BITS gets what must not depend on time.
check() {
    "$checker" "$1" "$2" "$3" >"$4" 2>checked || {
        complain "$words: the metrics are not valid"
        cat checked
    }
}

finish() {
    [ $failed -eq 0 ] || echo "$failed expectations failed"
    [ $failed -eq 0 ]
    exit
}
