# consumers.sh WAY TREE LIBDIR SOURCE CMAKE LAUNCH...: builds the examples against the installed
# TREE as other projects do, and runs them on 2 and 3 ranks. WAY is cmake:KIND:LANGUAGES, or
# commands, which takes the commands of include/zero/README.md literally.
way=$1 tree=$2 libdir=$3 source=$4 cmake=$5
shift 5
launch=$*
failed=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# does 'WHAT' command...: the command succeeds.
does() {
    what=$1
    shift
    "$@" >out 2>&1 && return
    echo "FAILED: $what"
    sed 's/^/  /' out
    failed=$((failed + 1))
    return 1
}

trains() { # trains PROGRAM 'WHAT'
    for n in 2 3; do
        does "$2, $n ranks" $(echo "$launch" | sed "s/RANKS/$n/") "$1" && tail -n 1 out
    done
}

by_cmake() { # by_cmake KIND LANGUAGES
    does "cmake, $*" "$cmake" -S "$source/tests/library/consumer" -B build \
        -DCMAKE_PREFIX_PATH="$tree" -DEXAMPLES="$source/tests/examples" -DKIND="$1" \
        -DLANGUAGES="$2" || return
    does "build, $*" "$cmake" --build build || return
    for program in mlp loop collective train groups; do
        [ ! -x build/$program ] || trains build/$program "$program by cmake, $*"
    done
}

# Prints the commands in the README that call a compiler, one per line.
commands() {
    sed -e ':a' -e '/\\$/{N;s/\\\n//;ta' -e '}' "$source/include/zero/README.md" | grep '^mpic' |
        sed "s,\$prefix/lib\\>,\$prefix/$libdir,g"
}

by_commands() {
    prefix=$tree
    export PKG_CONFIG_PATH="$tree/$libdir/pkgconfig:$PKG_CONFIG_PATH"
    commands >all
    [ "$(wc -l <all)" -eq 5 ] || does "five commands in include/zero/README.md" false
    command -v mpicxx >/dev/null || sed -i /^mpicxx/d all
    while read -r command <&3; do
        for example in mlp.c loop.c collective.c train.cpp groups.cpp; do
            case $command:$example in
                mpicc*.c | mpicxx*.cpp) ;;
                *) continue ;;
            esac
            cp "$source/tests/examples/$example" "yours.${example#*.}"
            does "$command" eval "$command" && trains ./yours "$example by '$command'"
        done
    done 3<all
}

case $way in
    cmake:*) by_cmake "$(echo "$way" | cut -d: -f2)" "$(echo "$way" | cut -d: -f3)" ;;
    commands) by_commands ;;
esac
exit $failed
