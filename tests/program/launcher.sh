# The tests find our messages in what Open MPI 5's mpirun writes: NUL bytes, and text of its own in
# the line of our message. A script stands for mpirun, so that every MPI tests this.
. "$(dirname "$0")/common.sh"

cat >launcher <<'END'
shift # the number of ranks
printf 'prterun: a text that has ' >&2
"$@"
code=$?
printf 'not ended yet\000\n' >&2
exit $code
END
launch="sh $work/launcher RANKS"
refuses 2 'did you mean --steps' 1 train --stesp 1
finish
