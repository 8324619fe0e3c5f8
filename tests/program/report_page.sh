# report_page.sh: the page of zero report: whole, small, well-formed, without a network or a script.
. "$(dirname "$0")/common.sh"

# shellcheck disable=SC2086 # words
runs 3 train $tiny --global-batch 6 --micro-batch 2 --eval-every 4 --steps 12 --stage 3 \
    --metrics a.jsonl --trace a.json --trace-steps 3-5
# shellcheck disable=SC2086 # words
runs 3 train $tiny --global-batch 6 --micro-batch 2 --steps 12 --stage 0 --metrics b.jsonl

# page FILE words...: zero report makes this page, which holds what all pages promise.
page() {
    to=$1
    shift
    runs 0 report "$@" --out "$to"
    grep -qi 'http' "$to" && complain "$words: the page has http"
    grep -qi '<script' "$to" && complain "$words: the page has a script"
    grep -qE '[^a-z](nan|inf)[^a-z]' "$to" && complain "$words: a number of the page is none"
    tail -n 1 "$to" | grep -q '</html>' || complain "$words: the page has no end"
    [ "$(wc -c <"$to")" -lt 300000 ] || complain "$words: $(wc -c <"$to") bytes"
    command -v xmllint >xmllint || return 0
    xmllint --noout "$to" >checked 2>&1 || complain "$words: $(head -n 3 checked)"
}

# ---- one run ----

page a.html a.jsonl --trace a.json
digest=$(sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' a.jsonl)
for text in '<h1>a.jsonl</h1>' 'stage 3, fp32, 3 ranks on 1 node, 12 steps' "$digest" \
    'planned = used' 'dots: validation' '>rank 2</text>' 'steps 3 to 5' 'peak ' \
    'rank 0 to rank 2' 'as planned' 'REDUCE_WAIT' 'Late ranks'; do
    says "$text" a.html
done
grep -q DIFFERS a.html && complain "a ledger differs from its plan"
grep -q 'class="missing"' a.html && complain "something is missing from the page of a whole run"

# The same files make the same page.
page again.html a.jsonl --trace a.json
same a.html again.html "two pages of one run"

# The loss of the last step is that of the metrics.
loss=$(sed -n 's/^{"step":12,"loss":\([0-9.]*\).*/\1/p' a.jsonl)
says "step 12: $(printf %.5g "$loss")" a.html

# ---- runs that are not whole ----

head -n 8 a.jsonl >killed.jsonl
page killed.html killed.jsonl
says '7 steps' killed.html
says 'The end is missing' killed.html
says 'No trace was given' killed.html
says 'it did not end' killed.html
head -n 2 a.jsonl >one.jsonl
page one.html one.jsonl
says '1 step<' one.html
sed 's/"loss":[^,]*/"loss":null/' a.jsonl >lost.jsonl
page lost.html lost.jsonl
says 'The loss of 12 steps is not finite' lost.html
[ "$(grep -c 'class="note"' lost.html)" -eq 1 ] || complain 'the page says it twice'

# ---- several runs, and names from outside ----

page both.html a.jsonl b.jsonl killed.jsonl
for text in 'Side by side' '--stage</th><td>3</td><td>0</td><td>3</td>' 'curve strong r2'; do
    says "$text" both.html
done
name='<b>"&.jsonl'
cp a.jsonl "$name"
page hostile.html "$name"
says '<h1>&lt;b&gt;&quot;&amp;.jsonl</h1>' hostile.html
grep -q '<b>"' hostile.html && complain "a name of a file is markup"
odd=$(printf 'e\033\377-https:.jsonl')
cp a.jsonl "$odd" && page odd.html a.jsonl "$odd"
says 'e\u{1B}\x{FF}-&#104;ttps:.jsonl' odd.html

# ---- traces of simulations ----

runs 0 simulate --model gpt2 --ranks 8 --stage 3 --micro-batch 1 --fake-nodes 2 \
    --network 1e-6,1.5e9 --node-network 1e-7,2e10 --flops 1e12 --slow 5:0.8 --trace eight.json
page eight.html --trace eight.json
says 'Simulated. 8 of 8 ranks' eight.html
says 'class="node"' eight.html
says '>F3</text>' eight.html

finish
