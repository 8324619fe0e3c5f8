# The default run learns the stories, in two thirds of its steps. Its loss never falls below their
# entropy.
. "$(dirname "$0")/common.sh"

runs 2 train --steps 240 --eval-every 40 --metrics m
check 2 240 m bits
entropy=$(awk '/^  entropy/ { print $2 }' out)
sed -n 's/.*"val_loss":\([^,}]*\).*/\1/p' m >losses
[ "$(wc -l <losses)" -eq 6 ] || complain "$words: expected an evaluation every 40 steps"
awk -v floor="$entropy" '!($1 > floor) { exit 1 }' losses ||
    complain "$words: a validation loss below the entropy $entropy: $(tr '\n' ' ' <losses)"
awk 'END { exit !($1 < 1.0) }' losses || complain "$words: the last loss is not below 1.0"

# The sample contains more of the commonest words than noise would.
sed -n '/^---- a sample after/,/^----$/p' out | sed '1d;$d' | tr -cs 'A-Za-z' '\n' >sample
known=$(grep -cxE 'a|an|the|to|was|who|and|with|her|his|she|he|they|of|in|had|who|for' sample)
[ "$known" -ge 20 ] || complain "$words: few common words in the sample: $(tr '\n' ' ' <sample)"
finish
