# Mistakes of users under mpirun: one rank prints the message, all end at once, and mpirun returns
# the exit code.
. "$(dirname "$0")/common.sh"

# apart WORDS0 WORDS1: trains on 2 ranks with different words, in the folders 0 and 1 if they exist.
# The mpirun of Open MPI 5.0 crashes with one application for each rank.
apart() {
    words="zero train: rank 0 $1: rank 1 $2"
    echo "$1" >words.0
    echo "$2" >words.1
    # shellcheck disable=SC2016 # expanded by the ranks
    on 2 sh -c 'rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
        words=$(cat "words.$rank")
        [ ! -d "$rank" ] || cd "$rank"
        exec "$0" train $words' "$zero" >out 2>err
    code=$?
    legible err
}

refuses 2 'did you mean --steps' 2 train --stesp 1
refuses 2 'no command' 2 nonsense
refuses 2 'there are tiny, gpt2' 2 train --model nosuch
refuses 2 '--global-batch 6 is not a multiple of --micro-batch 2 x 2 ranks = 4' 2 \
    train --global-batch 6 --micro-batch 2
refuses 4 'No such file or directory' 2 train --data nosuch
refuses 2 '--metrics nosuch/m: cannot be opened' 2 train --data stories:64K --metrics nosuch/m

# Open MPI's mpirun keeps its own text to itself if it is asked to, and returns the code all the same.
if "${launch%% *}" --version 2>/dev/null | grep -q '(Open MPI) 4'; then
    loud=$launch
    launch="${launch%% *} --quiet ${launch#* }"
    for options in '--data nosuch' '--stesp 1'; do
        run 2 train $options
        [ "$code" -gt 1 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q '^zero: ' err ||
            complain "$words: expected one line and the exit code of zero, found $code"
    done
    launch=$loud
fi

# Ranks with different options or data notice it after MPI has started.
apart "$small --sample 0" "$small --sample 0 --lr 0.01"
exits 2
says "rank 1: options differ from rank 0's" err
for option in '--watchdog 0' '--check collectives' '--collectives p2p'; do
    apart "$small --sample 0 $option" "$small --sample 0"
    exits 2
    says "rank 1: options differ from rank 0's" err
done
mkdir -p 0 1 && seq 100 >0/data && seq 101 >1/data
# Each node reads the files: two nodes, here in different directories, must find the same.
alike='--layers 1 --hidden 16 --heads 1 --seq 1 --sample 0 --fake-nodes 2 --data data'
apart "$alike" "$alike"
exits 4
says "rank 1: --data data differs from rank 0's" err
# A rank that fails before MPI has started ends the job alone.
if with_mpich; then
    echo "the part with a rank that fails alone is skipped: MPICH's launcher does not end the job"
else
    apart "$small --sample 0" '--config nosuch.json'
    exits 2
    says 'rank 1: --config nosuch.json' err
fi

# With hopeless learning rates a run diverges: it ends with exit code 1 and keeps its metrics.
start=$(date +%s)
run 2 train $small --steps 500 --sample 0 --eval-every 0 --metrics m \
    --lr 100 --warmup 0 --clip 0 --eps 1e-30 --weight-decay 100
exits 1
[ "$(grep -c '^zero: step .* is not finite' err)" -eq 1 ] || complain "$words: expected one message"
says 'Try a smaller --lr' err
[ $(($(date +%s) - start)) -le 60 ] || complain "$words: the job did not end within a minute"
[ -s m ] || complain "$words: no metrics of the steps before"
is_json m
finish
