# hardened.sh READELF PROGRAM TRACES...: the program has these traces of the compiler's protections.
# What it does is the same without them, so this test looks at the program itself.
readelf=$1 program=$2
shift 2
failed=0
{
    "$readelf" -W --dyn-syms "$program"
    "$readelf" -W -d "$program"
} >traces || exit 1
for trace; do
    grep -q "$trace" traces || {
        echo "FAILED: expected $trace in the symbols or the dynamic section of $program"
        failed=1
    }
done
rm traces
exit $failed
