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
# One rank without a launcher needs neither a home directory, nor PATH, nor ssh.
launch=
for variables in '' "PATH=$PATH" 'HOME=/'; do
    words="env -i $variables zero train"
    # shellcheck disable=SC2086 # words; sanitizers have options of their own
    env -i ${LSAN_OPTIONS:+LSAN_OPTIONS="$LSAN_OPTIONS"} $variables "$zero" train $tiny \
        --steps 1 --global-batch 2 --quiet >out 2>err
    code=$?
    exits 0
    [ "$(digest_of out | wc -c)" -eq 33 ] || complain "$words: no digest"
done
finish
