# headers.sh INCLUDE CC CXX [FLAGS...]: every public header on its own compiles as C11 and as C++17
# without a warning. CXX may be empty.
include=$1 cc=$2 cxx=$3
shift 3
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
warnings='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror'
failed=0

# alone COMPILER OPTIONS... FILE: the file, which includes one header twice, compiles.
alone() {
    "$@" -I"$include" $warnings -fsyntax-only || {
        echo "FAILED: $*"
        failed=1
    }
}

for header in "$include"/zero/*.h; do
    name=zero/$(basename "$header")
    printf '#include <%s>\n#include <%s>\nextern int used;\n' "$name" "$name" | tee a.c >a.cpp
    alone "$cc" -std=c11 "$@" a.c
    [ -z "$cxx" ] || alone "$cxx" -std=c++17 "$@" a.cpp
done
[ -n "$cxx" ] || echo "no C++ compiler: tested with C only"
exit $failed
