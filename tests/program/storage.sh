# A call of the writer of checkpoints fails, or is the last one. Takes $SHIM; of the calls that could
# go wrong every $EVERY-th does (1: all), in all of the ways of storage_shim.c.
. "$(dirname "$0")/common.sh"
every=${EVERY:-1}
export TMPDIR="$work" # MPI's directory of a killed process stays behind
any="--layers 1 --heads 1 --seq 8 --global-batch 6 --data stories:8K --eval-every 0 --sample 0 --warmup 0 --lr-min 1e-3 --lr 1e-3"
tiny="--hidden 16 $any"
runs_made=0

# train RANKS STEPS OPTIONS...: goes on in tree/ckpt; with the variables of $shimmed.
shimmed=
train() {
    n=$1 steps=$2
    shift 2
    words="$shimmed zero train --steps $steps $* ($n ranks)"
    on "$n" env $shimmed "$zero" train $tiny --steps "$steps" --checkpoint tree/ckpt --save-every 1 \
        --keep 2 --resume "$@" >out 2>err
    code=$?
    runs_made=$((runs_made + 1))
}

published() { ls tree/ckpt | sed -n 's/^step-0*\([1-9]\)/\1/p'; }
newest() { published | tail -n 1; }
announced() { sed -n 's/^checkpoint: step \([0-9]*\).*/\1/p' out | tail -n 1; }

# Before: steps 1 and 2, and what a dead writer and a dead remover have left. The run in which
# something goes wrong goes on to step 4; the next one to step 5.
begin() {
    rm -rf tree log log.data
    cp -r before tree
}
prepare() { # prepare RANKS
    rm -rf tree before
    mkdir tree tree/ckpt
    shimmed=
    train "$1" 2
    [ $code -eq 0 ] || complain "$words: exit code $code, expected 0"
    cp -r tree/ckpt/step-00000001 tree/ckpt/.tmp-step-00000003
    cp -r tree/ckpt/step-00000001 tree/ckpt/.del-step-00000009
    rm tree/ckpt/.tmp-step-00000003/manifest.json
    mv tree before

    begin
    shimmed="SHIM_DIR=tree SHIM_LOG=log LD_PRELOAD=$SHIM"
    train "$1" 4
    [ $code -eq 0 ] || complain "$words: exit code $code, expected 0"
    grep -q ' announce - - 4 ' log || complain "$words: step 4 was not announced, or not seen"
    mv log calls
    rm -rf undisturbed
    cp -r tree undisturbed
    shimmed=
    train "$1" 5
    sed -n 's/^  digest //p' out >digest
    [ -s digest ] || complain "$words: no digest"
    says ' s in 1 steps, ' out
}

# All that is published verifies, and nothing is lost.
check_published() {
    "$zero" checkpoint verify tree/ckpt >verified 2>&1 || {
        complain "$words: what is published does not verify"
        cat verified
    }
    least=$(announced)
    [ "$(newest)" -ge "${least:-2}" ] || complain "$words: announced ${least:-2}, newest $(newest)"
}

# The next start clears away what is left, and ends where an undisturbed run does.
check_next_start() { # check_next_start RANKS
    shimmed=
    train "$1" 5
    [ $code -eq 0 ] || complain "$words: exit code $code, expected 0"
    sed -n 's/^  digest //p' out >digest.now
    same digest digest.now "$words, after $1 ranks"
    [ "$(ls -A tree/ckpt | tr '\n' ' ')" = "step-00000004 step-00000005 " ] ||
        complain "$words: left are $(ls -A tree/ckpt)"
}

# wrong RANKS RANK KIND N OPTIONS...: in the N-th call of that rank.
wrong() {
    ranks=$1 rank=$2 kind=$3 call=$4
    shift 4
    begin
    shimmed="SHIM_DIR=tree SHIM_LOG=log SHIM_RANK=$rank SHIM_KIND=$kind SHIM_AT=$call LD_PRELOAD=$SHIM"
    train "$ranks" 4 "$@"
    case $kind in
        die-*)
            [ $code -ne 0 ] || complain "$words: exit code 0 of a killed run"
            ;;
        eintr | short | slow)
            grep -q " $kind\$" log || complain "$words: did not happen"
            [ $code -eq 0 ] || complain "$words: exit code $code, expected 0"
            diff -r undisturbed tree >out 2>&1 || complain "$words: changes what is written"
            ;;
        *)
            ! grep -q " $kind\$" log || grep -q '^zero: .*: ' err || complain "$words: no word of it"
            # Once it trains, a save is all that is lost; before, a start that fails says why.
            case $code in 0 | 3) ;; 2 | 4) [ ! -s out ] ;; *) false ;; esac ||
                complain "$words: exit code $code"
            [ $code -ne 0 ] || [ "$(newest)" -eq 4 ] || complain "$words: exit code 0 without step 4"
            ;;
    esac
    check_published
    case $kind in eintr | short | slow) ;; *) check_next_start "$ranks" ;; esac
}

# can KIND RANK N: whether that call can go wrong in this way.
can() {
    case $1 in
        short) names=write ;;
        eintr) names='open write fsync allocate flock chmod statvfs' ;;
        *) return 0 ;;
    esac
    name=$(awk -v rank="$2" -v n="$3" '$1 == rank && $2 == n { print $3 }' calls)
    case " $names " in *" $name "*) return 0 ;; esac
    return 1
}

# calls_of RANK: their numbers. Of the writes of one file the first and the last are enough, unless
# all are to go wrong.
calls_of() {
    awk -v rank="$1" -v every="$every" '
        $1 == rank && $2 > 0 { n++; number[n] = $2; what[n] = $3 == "write" ? $4 : "-" n }
        END { for (i = 1; i <= n; i++)
                  if (every == 1 || what[i] != what[i - 1] || what[i] != what[i + 1]) print number[i]
        }' calls
}

walk() { # walk RANKS RANK EVERY
    turn=0 cases=0
    for call in $(calls_of "$2"); do
        for kind in die-before die-after eio enospc gone eintr short; do
            can $kind "$2" "$call" || continue
            turn=$((turn + 1))
            [ $((turn % $3)) -eq 0 ] || continue
            cases=$((cases + 1))
            wrong "$1" "$2" $kind "$call"
        done
    done
    [ "$turn" -gt 40 ] || complain "rank $2 of $1: $turn ways to go wrong, expected more"
    echo "rank $2 of $1: $turn ways to go wrong, $cases taken; $runs_made runs so far"
}

# A limit on the size of files is met like a full disk; the signal that comes with it would kill the
# process. 8 MiB, for MPI has large files of its own.
limited() {
    rm -rf tree
    mkdir tree
    words="zero train under ulimit -f"
    (ulimit -f 16384 && exec "$zero" train $any --hidden 256 --steps 3 --checkpoint tree/ckpt \
        --save-every 1) >out 2>err
    code=$?
    [ $code -eq 3 ] || complain "$words: exit code $code, expected 3"
    [ "$(grep -c '^zero: .*tree/ckpt.*: File too large' err)" -eq 3 ] ||
        complain "$words: expected 3 lines about it"
    [ -z "$(ls -A tree/ckpt)" ] || complain "$words: left are $(ls -A tree/ckpt)"
}

# A directory in which nothing can be made ends the run before it trains.
refused_at_once() { # refused_at_once RANKS
    begin
    shimmed="SHIM_DIR=tree SHIM_RANK=0 SHIM_KIND=eio SHIM_AT=$(call_of mkdir 1) LD_PRELOAD=$SHIM"
    train "$1" 4
    [ $code -eq 3 ] || complain "$words: exit code $code, expected 3"
    [ ! -s out ] || complain "$words: expected nothing on stdout"
}

# call_of NAME TURN: the number of rank 0's first (1) or last (-1) call of that name.
call_of() {
    awk -v name="$1" -v turn="$2" '
        $1 == 0 && $3 == name && (turn < 0 || !n) { n = $2 } END { print n }' calls
}

# A file system that takes its time to remove old checkpoints is no reason to end the run: neither
# at the start nor when the next one is published do the others lose their patience.
patient() { # patient RANKS
    for turn in 1 -1; do wrong "$1" 0 slow "$(call_of unlink $turn)" --watchdog 3; done
}

# A run may remove a checkpoint that is being verified: that does not make it a broken one.
removed_meanwhile() {
    begin
    shimmed="SHIM_DIR=tree SHIM_LOG=log LD_PRELOAD=$SHIM"
    env $shimmed "$zero" checkpoint verify tree/ckpt >out 2>err
    call=$(awk '$3 == "open" && $4 ~ /shard/ { print $2; exit }' log)
    rm log log.data
    words="$shimmed SHIM_AT=$call zero checkpoint verify"
    env $shimmed SHIM_KIND=slow SHIM_AT="$call" "$zero" checkpoint verify tree/ckpt >out 2>err &
    until [ "$(cat log 2>/dev/null | wc -l)" -ge $((call - 1)) ] || ! kill -0 $!; do sleep 0.1; done
    mv tree/ckpt/step-00000001 tree/ckpt/.del-step-00000001
    rm -r tree/ckpt/.del-step-00000001
    wait $!
    code=$?
    [ $code -eq 0 ] || complain "$words: exit code $code, expected 0"
    says 'step-00000001: was removed meanwhile' out
    says 'step-00000002: OK' out
}

limited
prepare 0
removed_meanwhile
refused_at_once 0
walk 0 0 "$every"
prepare 3
refused_at_once 3
patient 3
walk 3 0 $((3 * every + 1))
walk 3 2 $((3 * every + 1))
finish
