# subproject.sh CMAKE SOURCE LAUNCH...: zero changes nothing in a project that contains it, and the
# program of that project trains. The checks are in parent/CMakeLists.txt.
cmake=$1 source=$2
shift 2
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

does() {
    "$@" >out 2>&1 && return
    echo "FAILED: $*"
    cat out
    exit 1
}

parent="$source/tests/library/parent"
does "$cmake" -S "$parent" -B fetched -DZERO="$source" -DFETCH=ON -DBUILD_SHARED_LIBS=ON
does "$cmake" -S "$parent" -B build -DZERO="$source"
grep 'targets: ' out
does "$cmake" --build build --parallel 2
does "$@" build/mlp
cat out
