# demo.sh SOURCE PROGRAM LAUNCH...: the demo ends with four lines that compare stages 0 and 3, and
# fails if a run fails or the digests differ.
source=$1
zero=$2
shift 2
failed=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
export DEMO_STEPS=5 DEMO_OPTIONS="--layers 2 --hidden 48 --heads 3 --seq 32 --global-batch 8
    --data stories:64K --sample 5"

complain() {
    echo "FAILED: $*"
    sed 's/^/  stdout: /' out
    sed 's/^/  stderr: /' err
    failed=$((failed + 1))
}

# demo PROGRAM LAUNCH...: sets $code to the exit code.
demo() {
    sh "$source/cmake/demo.sh" "$@" >out 2>err
    code=$?
}

demo "$zero" "$@"
[ $code -eq 0 ] || complain "the demo: exit code $code"
tail -n 4 out >end
cat >expected <<'END'
^memory            [0-9.]* MiB of [0-9.]* MiB  *[0-9.]* MiB of [0-9.]* MiB 
^sent              [0-9.]* MiB  *[0-9.]* MiB 
^loss              \([0-9.]\{6\}\)  *\1 
^digest            [0-9a-f]\{32\}, equal
END
for n in 1 2 3 4; do
    sed -n "${n}p" end | grep -q "$(sed -n "${n}p" expected)" ||
        complain "line $n of the end: expected $(sed -n "${n}p" expected)"
done
# With 4 ranks stage 3 holds a quarter of the model states, and sends half as much again. The text
# has two decimals.
awk 'NR == 1 && $2 > 0.2 && $7 > 0.24 * $2 && $7 < 0.27 * $2 { good++ }
     NR == 2 && $2 > 0.2 && $4 > 1.4 * $2 && $4 < 1.6 * $2 { good++ }
     END { exit good != 2 }' end || complain "expected a quarter of the states, and 1.5 times sent"
[ "$(grep -c '^step  *5/5 | loss' out)" -eq 2 ] || complain "expected the last step of both stages"
[ "$(grep -c '^---- a sample after training' out)" -eq 1 ] || complain "expected one sample"

# A program that warns, one whose stages disagree, and one that cannot run.
cat >warns <<END
#!/bin/sh
echo 'zero: warning: something else' >&2
exec "$zero" "\$@"
END
chmod +x warns
demo "$work/warns" "$@"
[ $code -eq 0 ] || complain "a warning: exit code $code"
[ "$(grep -c '^zero: warning: ' err)" -eq 1 ] || complain "a warning: expected one line"
cat >other <<END
#!/bin/sh
case "\$*" in *'--stage 3'*) exec "$zero" "\$@" --seed 2 ;; esac
exec "$zero" "\$@"
END
chmod +x other
demo "$work/other" "$@"
[ $code -eq 1 ] || complain "stages that disagree: exit code $code, expected 1"
grep -q 'expected equal digests' err || complain "stages that disagree: expected a message"
DEMO_OPTIONS=$(echo "$DEMO_OPTIONS" | sed 's/stories:64K/nosuch/')
demo "$zero" "$@"
[ $code -eq 4 ] || complain "no data: exit code $code, expected 4"
grep -aq 'nosuch' err || complain "no data: expected the program's message"

[ $failed -eq 0 ] || echo "$failed checks failed"
[ $failed -eq 0 ]
