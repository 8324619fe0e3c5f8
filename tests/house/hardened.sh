# hardened.sh PROGRAM READELF: the compiler's protections are in a program of a release build. A test that is
# compiled without them would pass all the same, so this looks at the program.
program=$1 readelf=$2
failed=0

# has WORDS PATTERN COMMAND...: the command prints the pattern.
has() {
    words=$1 pattern=$2
    shift 2
    "$@" | grep -q "$pattern" || {
        echo "FAILED: $program has no $words: expected '$pattern' from $*"
        failed=1
    }
}

has "protection of its stack" __stack_chk_fail "$readelf" -W --dyn-syms "$program"
has "checked calls of the C library" '_chk@' "$readelf" -W --dyn-syms "$program"
has "binding at its start" 'NOW' "$readelf" -W -d "$program"
exit $failed
