# readme.sh README BUILD WORKFLOW: what the README prints below its commands is what they print here,
# and its other commands of the program end well, as does the last command of the workflow. Digests
# depend on the CPU: here they need only be equal where those of the README are. Commands that install,
# clone or build are other tests.
readme=$1 build=$2 workflow=$3
failed=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
ln -s "$build" build
cp "$readme" README.md
cat >mpirun <<END
#!/bin/sh
exec $(command -v mpirun) --map-by :OVERSUBSCRIBE --bind-to none "\$@"
END
chmod +x mpirun
PATH=$work:$PATH

complain() {
    echo "FAILED: $1"
    sed 's/^/  /' "$2"
    failed=$((failed + 1))
}

# name_digests FILE: digests become d1, d2, ... in the order in which they come.
name_digests() {
    grep -oE '[0-9a-f]{32}' "$1" | awk '!seen[$0]++ { print "s/" $0 "/d" ++n "/g" }' >digests
    sed -f digests "$1"
}

# ends COMMAND FILE: the command is a whole one, and not followed by more lines.
ends() {
    case $1 in *\\) return 1 ;; esac
    printf '%s\n' "$1" | sh -n 2>/dev/null
}

# A command that begins with "$ ", and what it prints.
compares() {
    printf '%s\n' "$1" >command
    sh command >out 2>err
    name_digests out >found
    name_digests printed | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >expected # blank lines divide commands
    diff expected found >wrong || {
        cat err >>wrong
        complain "printed in the README (<) and here (>): $(head -n 1 command)" wrong
    }
    compared=$((compared + 1))
}

# Blocks of commands and their output, one file each.
awk '/^```/ { inside = !inside; fresh = $0 == "```"; wanted = 0; next }
    inside && fresh && /^\$ / { n++; wanted = 1 }
    { fresh = 0 }
    inside && wanted { print > ("block" n) }' README.md
compared=0
for block in block*; do
    command= open=0
    : >printed
    while IFS= read -r line; do
        case $line in
            '$ '*)
                [ -z "$command" ] || compares "$command"
                command=${line#'$ '} open=1
                : >printed
                ;;
            *)
                if [ $open -eq 1 ]; then
                    command="$command
$line"
                else
                    printf '%s\n' "$line" >>printed
                fi
                ;;
        esac
        if [ $open -eq 1 ] && ends "$command"; then open=0; fi
    done <"$block"

    compares "$command"
done

# Commands without output: lines of blocks of shell, and whole pieces between backquotes.
{
    awk '/^```/ { inside = !inside && $0 == "```sh"; next }
        inside && /\\$/ { sub(/\\$/, ""); line = line $0; next }
        inside { print line $0; line = "" }' README.md
    tr '\n' ' ' <README.md | sed 's/```[^`]*```//g' | grep -oE '`[^`]*`' | tr -d '`' |
        grep -vwE '[A-Z]{3,}' # a word to replace
} | sed 's/  *#.*//' | grep -E '^(build/zero|mpirun) ' >commands
ran=0
while IFS= read -r command; do
    sh -c "$command" <&- >out 2>&1 || complain "exit code $?: $command" out
    ran=$((ran + 1))
done <commands

# The last block of commands of the workflow.
awk '/- run: \|$/ { inside = 1; text = ""; next }
    inside && /^          / { text = text substr($0, 11) "\n"; next }
    { inside = 0 } END { printf "%s", text }' "$workflow" >command
sh command >out 2>&1 || complain "exit code $?: the commands of $workflow" out

echo "$compared outputs were compared, $ran commands ran"
[ $compared -ge 3 ] && [ $ran -ge 8 ] && [ -s command ] || failed=$((failed + 1))
exit $((failed > 0))
