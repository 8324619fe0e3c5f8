# The scripts of this folder read this file first. Their arguments are the folder of the package, and the
# launch line, in which RANKS stands for the number of ranks. $PYTHON, or ZERO_PYTHON of the build, is a
# Python with torch 2.15 or newer; without one a test skips itself.
here=$(cd "$(dirname "$0")" && pwd)
package=$1
python=${PYTHON:-$2}
shift 2
launch=$*
failed=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
export PYTHONPATH="$package" OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

skip() {
    echo "skipped: $*"
    exit 77
}

demand_torch() {
    "$python" - <<'END' || skip "no torch 2.15 or newer for $python (PYTHON=, or -DZERO_PYTHON=)"
import sys
try:
    import torch
    sys.exit(tuple(int(x) for x in torch.__version__.split(".")[:2]) < (2, 15))
except ImportError:
    sys.exit(1)
END
}

on() { # on N command...: on N ranks
    ranks=$1
    shift
    $(echo "$launch" | sed "s/RANKS/$ranks/") "$@"
}

complain() {
    echo "$(basename "$0"): $*" >&2
    failed=1
}

says() { # says TEXT FILE...: an extended regular expression
    text=$1
    shift
    cat "$@" | tr '\n' ' ' | grep -qE -e "$text" || {
        complain "expected \"$text\" in:"
        tail -n 40 "$@" >&2
    }
}

runs() { # runs N command...: succeeds; its output is in the files out and err
    on "$@" >out 2>err || {
        complain "exit code $? of: $*"
        tail -n 60 out err >&2
    }
}

fails() { # fails CODE N command...
    code=$1
    shift
    on "$@" >out 2>err
    found=$?
    [ "$found" -eq "$code" ] || complain "exit code $found, expected $code, of: $*"
}
