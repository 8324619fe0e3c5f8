# Every form of --data.
. "$(dirname "$0")/common.sh"

shape="--layers 1 --hidden 16 --heads 2 --seq 16 --global-batch 4 --steps 5 --sample 5"

# 100 lines of text, the same text in two files, and its bytes as tokens of 16 bits.
awk 'BEGIN { for (i = 0; i < 100; i++) print "line", i, "of a text that says", i * i }' >text
mkdir -p folder/below
head -n 50 text >folder/a.txt
tail -n +51 text >folder/below/b.txt
printf 'not read' >folder/.hidden
cp folder/a.txt part1
cp folder/below/b.txt part2
od -An -v -tu1 text | awk '{ for (i = 1; i <= NF; i++) printf "\\%03o\\000", $i }' >escaped
printf "$(cat escaped)" >nano.bin
n=$(wc -c <text)
# llm.c's files begin with 256 int32: 20240520, version 1, the number of tokens. Tokens follow.
{
    printf '\210\330\064\001\001\000\000\000'
    printf "\\$(printf %03o $((n % 256)))\\$(printf %03o $((n / 256)))\\000\\000"
    dd if=/dev/zero bs=1012 count=1 2>/dev/null
    cat nano.bin
} >shard.bin

# Five ways to give the same tokens.
runs 0 train $shape --data text --metrics m
check 1 5 m bits_file
says 'tokens (byte)' out
for data in folder 'part?' nano.bin shard.bin; do
    vocab=
    case $data in *.bin) vocab='--vocab 256' ;; esac
    runs 0 train $shape --data "$data" $vocab --metrics m
    check 1 5 m bits_same
    same bits_file bits_same "the same text as $data"
done

runs 0 train $shape --data text --shuffle --metrics m
check 1 5 m bits_shuffled
differ bits_file bits_shuffled "--shuffle"
runs 2 train $shape --data text --shuffle --metrics m
check 2 5 m bits_2
runs 0 train $shape --data text --tokenizer bpe:300 --metrics m
check 1 5 m bits_bpe
says '(bpe:300)' out
says 'V 300' out
runs 0 train $shape --data text --vocab 1000 --metrics m
says 'V 1000' out
runs 0 train $shape --data self
says 'self,' out
runs 0 train $shape --data stories:32K --tokenizer byte
says 'entropy' out
finish
