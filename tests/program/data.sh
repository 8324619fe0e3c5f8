# Every form of --data.
. "$(dirname "$0")/common.sh"

shape="--layers 1 --hidden 16 --heads 2 --seq 16 --global-batch 4 --steps 5 --sample 5"
shape_3=$(echo "$shape" | sed 's/--global-batch 4/--global-batch 6/')

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

# The same tokens in 4 bytes each. Read as 2, every second one would be 0.
awk '{ gsub(/\\000/, "\\000\\000\\000"); print }' escaped >escaped4
printf "$(cat escaped4)" >nano4.bin
runs 3 train $shape_3 --data nano4.bin --vocab 256 --token-bytes 4
says ' tokens (uint32)' out
runs 0 train $shape --data nano4.bin --vocab 256 --token-bytes 4 --metrics m
check 1 5 m bits_same
same bits_file bits_same "the same text as tokens of 4 bytes"
refuses 4 'give --token-bytes 4' 3 train $shape_3 --data nano4.bin --vocab 256
refuses 2 'expected 1, 2, 4 or 8' 0 train $shape --data nano4.bin --vocab 256 --token-bytes 3
refuses 2 'reach 65535' 0 train $shape --data nano.bin --vocab 70000

# Packed data is not text. What a directory has besides texts is left out, with one warning.
printf '\037\213\010\000packed' >text.gz
refuses 4 'text.gz: this is a gzip file' 3 train $shape_3 --data text.gz
refuses 4 'text.gz: this is a gzip file' 0 train $shape --data text --val-data text.gz
printf '\211PNG\r\n\032\n\000\000\000\rIHDR' >folder/below/picture.png
runs 0 train $shape --data folder --metrics m
check 1 5 m bits_same
same bits_file bits_same "a folder with a picture"
runs 3 train $shape_3 --data folder
[ "$(grep -c 'warning: --data folder: 1 of its files' err)" -eq 1 ] ||
    complain "$words: expected one warning"
rm folder/below/picture.png

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
# Validation data of their own: the same text for training gives the same training.
head -n 40 text >validation
head -n 60 text >training
runs 0 train $shape --data training --val-data validation --eval-every 5 --metrics m
says "validation    validation, $(wc -c <validation) tokens" out
check 1 5 m bits_own
runs 3 train $shape_3 --data training --val-data validation --eval-random \
    --checkpoint saved
says 'validation, ' out
says 'random windows' out
digest_of out >digest
runs 3 train $shape_3 --data training --val-data text --resume --checkpoint saved
digest_of out >digest_other
same digest digest_other "another --val-data"
says '--val-data text (saved: validation)' out
runs 3 train $shape_3 --data training --resume --checkpoint saved
says "validation    validation, " out # the saved run's
refuses 2 'other tokens for training' 3 train $shape_3 --data text --resume --checkpoint saved
refuses 2 'the stories of one seed' 0 train $shape --data text --val-data stories

# The names of llm.c and nanoGPT: a pattern that takes both kinds of files validates on one.
tokens=$(wc -c <text)
mkdir named
cp shard.bin named/t_train_000001.bin
cp shard.bin named/t_train_000002.bin
cp shard.bin named/t_val_000000.bin
runs 0 train $shape --data 'named/*.bin' --vocab 256
says "validation    the files named val, $tokens tokens" out
says " $((2 * tokens)) tokens (llm.c)" out
cp nano.bin named/val.bin
refuses 2 'leave --val-data out' 0 train $shape --data 'named/t*.bin' --val-data named/val.bin \
    --vocab 256
runs 0 train $shape --data 'named/t_train*' --val-data named/t_val_000000.bin --vocab 256
says " $((2 * tokens)) tokens (llm.c)" out

# Characters: as many as the text has.
runs 2 train $shape --data text --tokenizer char --checkpoint characters
says 'tokens (char)' out
says ', V 24;' out # 10 digits, 12 letters, the blank and the line's end
runs 0 generate characters --prompt 'line 7' --tokens 20
[ "$(head -c 6 out)" = "line 7" ] || complain "$words: expected the prompt first"
refuses 2 'character 2 of aÄb' 0 generate characters --prompt 'aÄb'
refuses 2 'give --vocab N' 0 plan --tokenizer char
printf 'no\377' >binary
refuses 4 'not UTF-8 at byte 2' 0 train $shape --data binary --tokenizer char

runs 0 train $shape --data self
says 'self,' out
runs 0 train $shape --data stories:32K --tokenizer byte
says 'entropy' out
# Names of files cannot act on a terminal (U+009B) or turn the writing round (U+202E): they are
# shown by number in the head of a run, by checkpoint show and compare, and in errors.
raw=$(printf '\342\200\256\|\302\233')
shows_no_raw_names() {
    LC_ALL=C grep -q "$raw" out err && complain "$words: a name reached the terminal as it is"
    grep -q 'a\\u{202E}b\\u{9B}c' out err || complain "$words: expected the name by numbers"
}
odd=$(printf 'a\342\200\256b\302\233c')
cp text "$odd"
runs 0 train $shape --data "$odd" --checkpoint "ck$odd" --metrics "m$odd"
shows_no_raw_names
runs 0 checkpoint show "ck$odd"
shows_no_raw_names
runs 0 compare "m$odd" "m$odd"
shows_no_raw_names
printf '{"%s": 1}' "$odd" >odd.json
refuses 2 '\u{202E}b' 0 train --config odd.json
shows_no_raw_names
finish
