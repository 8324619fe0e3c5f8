# package.sh: what needs no torch: all sources compile, and the package registers itself with a stub of
# torch 2.15; it refuses an older one.
# shellcheck source=tests/python/common.sh
. "$(dirname "$0")/common.sh"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null ||
    { python=python3 && python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; } ||
    skip "no Python 3.9 or newer ($python)"

for source in "$package"/*.py "$package"/zero_torch/*.py "$here"/*.py; do
    "$python" -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$source" ||
        complain "$source does not compile"
done

for version in 2.15.0 2.16.1+cpu 3.0 2.14.1; do
    TORCH_VERSION=$version PYTHONPATH="$here/stub:$package" "$python" "$here/stub/register.py" >out 2>err
    code=$?
    case $version in
    2.14.1)
        [ $code -eq 1 ] || complain "torch $version was accepted"
        says 'zero needs torch 2.15 or newer \(this is 2.14.1\): earlier ones have no backends in Python' err
        ;;
    *)
        [ $code -eq 0 ] || complain "torch $version was refused: $(cat err)"
        says 'backend zero for cpu, rendezvous zero' out
        ;;
    esac
done
exit $failed
