# A whole run on 3 ranks and its metrics. Some options change its bits, others must not.
. "$(dirname "$0")/common.sh"
length="--steps 30 --eval-every 10"

runs 3 train $small $length --metrics m --sample 30 --log-every 5
check 3 30 m bits
grep -q 'a sample before' out && complain "$words: a sample of random weights"
for line in '^zero .*3 ranks' '^---- a sample after training' '^step     30/30 | loss' \
    '^done' '^  step time .* median of 27 steps .*, without the first 3$' \
    '^  control .* (planned: .*): losses, norms, votes;$' '^  digest'; do
    [ "$(grep -c "$line" out)" -eq 1 ] || complain "$words: expected '$line' once"
done
[ "$(grep -c '^step .*| loss' out)" -eq 7 ] || complain "$words: expected steps 1, 5, 10 ... 30"
says "$(sed -n 's/^digest //p' bits)" out

# The head begins with four lines about where the results come from. The first line of the metrics
# has the same, and enough to repeat the run.
first='^zero [0-9.]* ([0-9a-z-]*): stage 0, fp32, 3 ranks, 3 on this node, 1 node;'
for line in "$first started 20..-..-..T..:..:..Z\$" \
    "^  command       zero train --layers 2 .* --log-every 5\$" \
    "^  machine       $(uname -n); .*; .*; .*; cpu backend, .* kernels; fp32 products by " \
    '^  model         tiny: 2 layers, 48 hidden, 3 heads, T 32, V 512; 82752 parameters$'; do
    grep -n "$line" out >found || complain "$words: expected '$line'"
    cut -d : -f 1 found
done >numbers
[ "$(echo $(cat numbers))" = '1 2 3 4' ] || complain "$words: expected these lines first"
for text in '"options":{"layers":2,"hidden":48,' '"seq":32,' '"nodes":{"count":1,"fake":false}' \
    "\"hosts\":[\"$(uname -n)\"]" "\"command\":\"zero train --layers 2 " '"resumed_step":0'; do
    head -n 1 m >first
    says "$text" first
done
"$checker" config m >repeat.json || complain "$words: no configuration in the metrics"
rm -f m
runs 3 train --config repeat.json
check 3 30 m bits_repeat
same bits bits_repeat "a run repeated from its metrics"
says ' train --config repeat.json # --layers 2 ' out

# The profile is a short table of 80 columns with the longest time first. Its times and shares add
# up to those of the step.
says '(6 N + 6 L T H D) flops per token' out
says ' Gflop/s per rank in that step (' out
awk '/^  time / { step = $7 }
     /^    in a step of rank 0/ { inside = 1; next }
     !inside { next }
     /^  [^ ]/ { exit }
     { n++; name = substr($0, 5, 20); ms = substr($0, 33, 10) + 0; sum += ms
       share += substr($0, 43, 8); if (length($0) > 80) bad = 1
       if (name ~ /^the rest/) next
       if (n > 1 && ms > before) bad = 1
       before = ms }
     END { exit !(n >= 4 && n <= 20 && !bad && sum > 0.9 * step && sum < 1.002 * step &&
                  share > 90 && share < 101) }' out ||
    complain "$words: the profile does not add up"

runs 3 train $small $length --metrics again --sample 0 --bucket 600
check 3 30 again bits_again
same bits bits_again "the same run with another bucket and no sample"
runs 3 train $small $length --metrics other --sample 0 --seed 2
check 3 30 other bits_other
differ bits bits_other "another seed"

# One rank without mpirun, and with it.
runs 0 train $small $length --metrics alone --sample 0
check 1 30 alone bits_alone
# Several ranks on a busy machine may wait so long that a pass is among the rest of the profile.
for text in 'BACKWARD block' 'FORWARD block'; do says "$text" out; done
runs 1 train $small $length --metrics one --sample 0
check 1 30 one bits_one
same bits_alone bits_one "one rank with and without mpirun"

# The same options from a file give the same run.
printf '{"layers": 2, "hidden": 48, "heads": 3, "seq": 32, "global-batch": 6,
  "data": "stories:64K", "steps": 99, "eval-every": 10, "sample": 0}' >run.json
runs 3 train --config run.json --steps 30 --metrics file
check 3 30 file bits_file
same bits bits_file "the same options from a file"

# Ranks with another BLAS, or other kernels, are named, and whether bits depend on them.
core() { OPENBLAS_CORETYPE=$1 "$zero" info | grep '^blas'; }
if [ "$(core Haswell)" != "$(core Nehalem)" ]; then
    cat >mixed <<'END'
OPENBLAS_CORETYPE=Haswell
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" -eq 1 ] && OPENBLAS_CORETYPE=Nehalem
export OPENBLAS_CORETYPE
exec "$@"
END
    words="a job with two kinds of BLAS"
    on 3 sh mixed "$zero" train $small --steps 1 --sample 0 --eval-every 0 --metrics mixed.jsonl \
        >out 2>err || complain "$words: failed"
    says ' ranks 0,2: ' out
    says ' rank 1: ' out
    says 'note: ranks have 2 kinds of kernels or BLAS; their bits are equal' err
    on 3 sh mixed "$zero" train $small --steps 1 --sample 0 --eval-every 0 --backend naive \
        >out 2>err || complain "$words: failed"
    says 'warning: ranks have 2 kinds of kernels or BLAS' err
    head -n 1 mixed.jsonl | tr -d ' ' >first
    says '"rank_kinds":[{"ranks":"ranks0,2"' first
fi

# The digest covers the parameters and both moments. After one step at rate 0 the parameters are
# unchanged, the momentum depends on beta1 alone and the variance on beta2 alone. Another rate
# changes the parameters alone.
digest() {
    runs 2 train $small --steps 1 --warmup 0 --sample 0 --eval-every 0 "$@"
    digest_of out
}
digest --lr 0 >plain
digest --lr 0 --beta1 0.8 >momentum
digest --lr 0 --beta2 0.8 >variance
digest --lr 1e-3 >parameters
for state in momentum variance parameters; do
    differ plain $state "the digest with other $state"
done
finish
