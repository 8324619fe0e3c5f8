# require.sh CMAKE CTEST SOURCE: a test that cannot run here skips itself. With a label of it in
# ZERO_REQUIRE it fails. Nothing is built.
cmake=$1
ctest=$2
source=$3
failed=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

complain() {
    echo "FAILED: $*"
    sed 's/^/  /' out
    failed=$((failed + 1))
}

configure() { # configure LABELS
    "$cmake" -S "$source" -B build -DZERO_REQUIRE="$1" >out 2>&1
}

# multinode runs a test of several nodes where there are no commands to make them.
mkdir bin
for command in sh dirname id uname; do
    ln -s "$(command -v $command)" "bin/$command"
done
multinode() {
    PATH=$work/bin "$ctest" --test-dir build -R '^multinode_cut$' --no-tests=error \
        --output-on-failure >out 2>&1
}

configure '' || complain "without ZERO_REQUIRE: cannot configure"
multinode || complain "without ZERO_REQUIRE: expected success"
grep -q 'Skipped' out || complain "without ZERO_REQUIRE: expected a skipped test"
configure 'valgrind;multinode' || complain "with ZERO_REQUIRE: cannot configure"
multinode && complain "with ZERO_REQUIRE: expected a failure"
grep -q '^skipped: ' out || complain "with ZERO_REQUIRE: expected the reason"
configure 'multinodes' && complain "a label that is not there: expected an error"
grep -q 'ZERO_REQUIRE=multinodes' out || complain "a label that is not there: expected its name"

[ $failed -eq 0 ] || echo "$failed checks failed"
[ $failed -eq 0 ]
