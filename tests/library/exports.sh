# exports.sh INCLUDE BUILD NM CC [FLAGS...]: libzero.so exports exactly what the public headers
# declare, and no global symbol of libzero.a can collide with a program's.
include=$1 build=$2 nm=$3
shift 3
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT

# Without braces and their contents each declaration is one statement. mpi.h declares no zero_*.
for header in "$include"/zero/*.h; do echo "#include \"$header\""; done >all.c
"$@" -I"$include" -E -P all.c | grep -v '^#' | tr '\n' ' ' | sed ':a
s/{[^{}]*}/;/g
ta' | tr ';' '\n' | grep -vE '^ *(static|typedef)' | grep -oE '\bzero_[a-z0-9_]+ *\(' |
    tr -d '( ' | sort -u >declared
[ "$(wc -l <declared)" -gt 30 ] || { echo "FAILED: the headers were not read"; exit 1; }

# Names that begin with _ belong to the linker and to sanitizers.
"$nm" -D --defined-only "$build/libzero.so" | awk '$NF !~ /^_/ { print $NF }' | sort >exported
"$nm" -g --defined-only "$build/libzero.a" |
    awk 'NF == 3 && $3 !~ /^(_|zero_)/ { print $3 }' >foreign

failed=0
diff declared exported >wrong || {
    echo "FAILED: declared (<) and exported (>) differ:"
    grep '^[<>]' wrong
    failed=1
}
[ ! -s foreign ] || {
    echo "FAILED: global symbols of libzero.a without zero_:" $(cat foreign)
    failed=1
}
echo "$(wc -l <declared) functions are declared and exported"
exit $failed
