# A call of the writer of checkpoints fails, or is the last one. SHIM is the library of
# storage_shim.c, which has several ways to fail. Of all pairs of a call and a way, the test takes
# every EVERY-th (1: all). With SEED it takes CASES random ones, of runs in a random layout.
. "$(dirname "$0")/common.sh"
every=${EVERY:-1}
export TMPDIR="$work" # a killed process leaves MPI's directory there
any="--layers 1 --heads 1 --seq 8 --global-batch 6 --data stories:8K --eval-every 0 --sample 0
    --warmup 0 --lr-min 1e-3 --lr 1e-3"
tiny="--hidden 16 $any"
layout=
runs_made=0

# train RANKS STEPS OPTIONS...: continues in tree/ckpt, with the variables of $shimmed.
shimmed=
train() {
    n=$1 steps=$2
    shift 2
    words="$shimmed zero train --steps $steps $layout $* ($n ranks)"
    on "$n" env $shimmed "$zero" train $tiny $layout --steps "$steps" --checkpoint tree/ckpt \
        --save-every 1 --keep 2 --resume "$@" >out 2>err
    code=$?
    runs_made=$((runs_made + 1))
}

published() { ls tree/ckpt | sed -n 's/^step-0*\([1-9]\)/\1/p'; }
newest() { published | tail -n 1; }
announced() { sed -n 's/^checkpoint: step \([0-9]*\).*/\1/p' out | tail -n 1; }

# The tree begins with steps 1 and 2, and with leftovers of a killed writer and a killed remover.
# A run in which a call fails continues to step 4, and the next run to step 5.
begin() {
    rm -rf tree log log.data
    cp -r before tree
}
prepare() { # prepare RANKS
    rm -rf tree before
    mkdir tree tree/ckpt
    shimmed=
    train "$1" 2
    exits 0
    cp -r tree/ckpt/step-00000001 tree/ckpt/.tmp-step-00000003
    cp -r tree/ckpt/step-00000001 tree/ckpt/.del-step-00000009
    rm tree/ckpt/.tmp-step-00000003/manifest.json
    mv tree before

    begin
    shimmed="SHIM_DIR=tree SHIM_LOG=log LD_PRELOAD=$SHIM"
    train "$1" 4
    exits 0
    grep -q ' announce - - 4 ' log || complain "$words: the log has no announcement of step 4"
    mv log calls
    rm -rf undisturbed
    cp -r tree undisturbed
    shimmed=
    train "$1" 5
    digest_of out >digest
    [ -s digest ] || complain "$words: no digest"
    says ' s in 1 step, ' out
}

# All published checkpoints verify, and no announced one is lost.
check_published() {
    verifies tree/ckpt
    least=$(announced)
    [ "$(newest)" -ge "${least:-2}" ] || complain "$words: announced ${least:-2}, newest $(newest)"
}

# The next start removes the leftovers, and ends with the digest of an undisturbed run.
check_next_start() { # check_next_start RANKS
    shimmed=
    train "$1" 5
    exits 0
    digest_of out >digest.now
    same digest digest.now "$words, after $1 ranks"
    holds tree/ckpt step-00000004 step-00000005
}

# wrong RANKS RANK KIND N OPTIONS...: the N-th call of that rank goes wrong in this way.
wrong() {
    ranks=$1 rank=$2 kind=$3 call=$4
    shift 4
    begin
    shimmed="SHIM_DIR=tree SHIM_LOG=log LD_PRELOAD=$SHIM"
    shimmed="$shimmed SHIM_RANK=$rank SHIM_KIND=$kind SHIM_AT=$call"
    train "$ranks" 4 "$@"
    case $kind in
        die-*)
            [ $code -ne 0 ] || complain "$words: exit code 0 of a killed run"
            ;;
        eintr | short | slow)
            grep -q " $kind\$" log || complain "$words: did not happen"
            exits 0
            diff -r undisturbed tree >out 2>&1 || complain "$words: other files were written"
            ;;
        *)
            # Without a message nothing may differ: an examination that fails need not matter.
            ! grep -q " $kind\$" log || grep -q '^zero: .*: ' err ||
                { [ $code -eq 0 ] && ! grep " $kind\$" log | grep -qv '^[0-9]* [0-9]* stat ' &&
                    diff -r undisturbed tree >out 2>&1; } ||
                complain "$words: expected a message"
            # A run that trains loses the save only (0, 3). A start that fails prints nothing on
            # stdout (2, 4).
            case $code in 0 | 3) ;; 2 | 4) [ ! -s out ] ;; *) false ;; esac ||
                complain "$words: exit code $code"
            [ $code -ne 0 ] || [ "$(newest)" -eq 4 ] ||
                complain "$words: exit code 0 without step 4"
            ;;
    esac
    check_published
    case $kind in eintr | short | slow) ;; *) check_next_start "$ranks" ;; esac
}

# can KIND RANK N: the N-th call of that rank can go wrong in this way.
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

# calls_of RANK: prints the numbers of its calls. Of the writes to one file it takes the first and
# the last only, unless EVERY is 1.
calls_of() {
    awk -v rank="$1" -v every="$every" '
        $1 == rank && $2 > 0 { n++; number[n] = $2; what[n] = $3 == "write" ? $4 : "-" n }
        END { for (i = 1; i <= n; i++)
                  if (every == 1 || what[i] != what[i - 1] || what[i] != what[i + 1])
                      print number[i] }' calls
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
    [ "$turn" -gt 40 ] || complain "rank $2 of $1: $turn ways to go wrong, expected more than 40"
    echo "rank $2 of $1: $turn ways to go wrong, $cases taken; $runs_made runs so far"
}

# A limit on the size of files is handled like a full disk: its signal must not kill the process.
# The limit is 8 MiB because MPI has large files of its own.
limited() {
    rm -rf tree
    mkdir tree
    words="zero train under ulimit -f"
    (ulimit -f 16384 && exec "$zero" train $any --hidden 256 --steps 3 --checkpoint tree/ckpt \
        --save-every 1) >out 2>err
    code=$?
    exits 3
    [ "$(grep -c '^zero: .*tree/ckpt.*: File too large' err)" -eq 3 ] ||
        complain "$words: expected 3 lines about the large file"
    holds tree/ckpt
}

# A directory that cannot be written to ends the run before it trains.
refused_at_once() { # refused_at_once RANKS
    begin
    shimmed="SHIM_DIR=tree SHIM_RANK=0 SHIM_KIND=eio SHIM_AT=$(call_of mkdir 1) LD_PRELOAD=$SHIM"
    train "$1" 4
    exits 3
    [ ! -s out ] || complain "$words: expected nothing on stdout"
}

# call_of NAME TURN [LOCK]: prints the number of rank 0's first (1) or last (-1) call of that name;
# with LOCK (1) on .lock, otherwise on anything else.
call_of() {
    awk -v name="$1" -v turn="$2" -v lock="${3:-0}" '
        $1 == 0 && $3 == name && ($4 ~ /\.lock$/) == lock && (turn < 0 || !n) { n = $2 }
        END { print n }' calls
}

# mounted RANKS VARIABLES...: a run on a file system that can do less, from the start to step 4.
mounted() {
    n=$1
    shift
    begin
    shimmed="SHIM_DIR=tree $* LD_PRELOAD=$SHIM"
    train "$n" 4
}

# What a file system cannot do is said in the first second, by one line: privacy and locks as a warning, the
# rest as a refusal before anything is trained, which leaves nothing behind.
mounts() { # mounts RANKS
    mounted "$1" SHIM_MODES=1
    exits 0
    check_published
    says 'zero: warning: tree/ckpt: its file system keeps nothing private: other users may read' err
    [ "$(grep -c '^zero: .*tree/ckpt' err)" -eq 1 ] || complain "$words: expected one warning"
    [ "$(stat -c %a tree/ckpt/step-00000004)" = 777 ] || complain "$words: the mount has no mode"
    mounted "$1" SHIM_REFUSED=chmod SHIM_ERRNO=95 # EOPNOTSUPP
    exits 0
    ! grep -q '^zero: .*tree/ckpt' err || complain "$words: expected no message"
    mounted "$1" SHIM_REFUSED=flock SHIM_ERRNO=38 # ENOSYS
    exits 0
    says 'zero: warning: tree/ckpt: its file system has no locks, so nothing keeps another run' err
    for call in 'rename renamed' 'fsync synced' 'write written' 'mkdir made'; do
        mounted "$1" SHIM_REFUSED="${call% *}" SHIM_ERRNO=5
        exits 3
        [ ! -s out ] || complain "$words: expected nothing on stdout"
        says "cannot be ${call#* }" err
        [ "$call" != 'fsync synced' ] || continue # as DIR is opened, before leftovers are removed
        says '; so no checkpoint can be saved there' err
        holds tree/ckpt step-00000001 step-00000002
    done
    [ "$1" -eq 0 ] && return
    mounted "$1" SHIM_RANK=2 SHIM_REFUSED=write SHIM_ERRNO=30 # EROFS
    exits 3
    says 'rank 2: tree/ckpt/.tmp-step-00000001/rank-2: cannot be written' err
    says 'so no checkpoint can be saved there' err
    holds tree/ckpt step-00000001 step-00000002
}

# A file system that is slow to remove old checkpoints does not end the run: the other ranks wait,
# at the start, when the next checkpoint is published, and when the directory is closed. The shim takes
# 9 s; the limit also holds for the start of MPI, on a machine that may have other work.
patient() { # patient RANKS
    for which in 1 -1 '-1 1'; do wrong "$1" 0 slow "$(call_of unlink $which)" --watchdog 6; done
}

# removed_while NAME RANKS words...: the newest checkpoint goes away while zero, on so many ranks, opens its
# first file of that name. Rank 0 opens it; `gone` is the checkpoint.
removed_while() {
    name=$1 ranks=$2 gone=$3
    shift 3
    begin
    rm -rf gpt2
    words="zero $* ($ranks ranks), while $gone is removed"
    shimmed="SHIM_DIR=tree SHIM_LOG=log LD_PRELOAD=$SHIM"
    on "$ranks" env $shimmed "$zero" "$@" >out 2>err
    call=$(awk -v of="$gone/$name" '$1 == 0 && $3 == "open" && index($4, of) { print $2; exit }' log)
    rm -rf log log.data gpt2
    [ -n "$call" ] || complain "$words: opens no $name"
    on "$ranks" env $shimmed SHIM_RANK=0 SHIM_KIND=slow SHIM_AT="${call:-1}" "$zero" "$@" >out 2>err &
    job=$!
    reached() { awk -v n="$call" '$1 == 0 && $2 == n - 1 { found = 1 } END { exit !found }' log; }
    await 120 reached 2>/dev/null || complain "$words: does not come to call $call"
    mv "tree/ckpt/$gone" tree/ckpt/.del-step-00000001
    rm -r tree/ckpt/.del-step-00000001
    wait $job
    code=$?
    exits 0
}

# A checkpoint that a run removes while it is read is no failure: verify leaves it out, and the others take
# the newest that is there.
removed_while_read() {
    removed_while shard 0 step-00000001 checkpoint verify tree/ckpt
    says 'step-00000001: removed by a run' out
    says 'step-00000002: OK' out
    removed_while manifest 0 step-00000002 checkpoint show tree/ckpt
    says 'tree/ckpt/step-00000001' out
    for file in manifest shard; do
        removed_while $file 0 step-00000002 checkpoint export tree/ckpt --to gpt2
        says 'gpt2: GPT-2 of step 1 in fp32' out
        [ -s gpt2/model.safetensors ] || complain "$words: no model"
    done
    removed_while shard 0 step-00000002 generate tree/ckpt --tokens 4 --temperature 0
    mv out taken
    "$zero" generate tree/ckpt/step-00000001 --tokens 4 --temperature 0 >out 2>err
    same out taken "the text of step 1"
}

if [ -n "${SEED:-}" ]; then
    seed=$SEED
    . "$(dirname "$0")/draws.sh"
    finds_a_disk
    draws_kind
    draws_layout
    tiny="$kind --layers 1 --heads 2 --seq 8 --global-batch 12 --data stories:8K --eval-every 0
        --sample 0 --warmup 0 --lr-min 1e-3 --lr 1e-3"
    n=$ranks
    prepare "$n"
    cases=0
    while [ $cases -lt "${CASES:-4}" ]; do
        draw "$n"
        rank=$drawn
        one_of $(calls_of "$rank")
        call=$one
        one_of die-before die-after eio enospc gone eintr short
        can "$one" "$rank" "$call" || continue
        wrong "$n" "$rank" "$one" "$call"
        cases=$((cases + 1))
    done
    echo "cases $cases"
    finish
fi

limited
prepare 0
removed_while_read
mounts 0
refused_at_once 0
walk 0 0 "$every"
prepare 3
refused_at_once 3
mounts 3
removed_while shard 2 step-00000002 generate tree/ckpt --tokens 4
patient 3
walk 3 0 $((3 * every + 1))
walk 3 2 $((3 * every + 1))
finish
