# ranks.sh PACKAGE PYTHON SCRIPT N LAUNCH...: SCRIPT.py on N ranks.
package=$1 python=$2 script=$3 ranks=$4
shift 4
set -- "$package" "$python" "$@"
# shellcheck source=tests/python/common.sh
. "$(dirname "$0")/common.sh"
demand_torch
runs "$ranks" "$python" "$here/$script.py" "$work"
[ "$failed" -ne 0 ] || cat out
exit $failed
