# A saved model generates text on any number of ranks. It goes to Hugging Face's files and back.
. "$(dirname "$0")/common.sh"
data="--seq 32 --global-batch 6 --eval-every 0 --sample 0"
shape="--layers 2 --hidden 48 --heads 3"
stories="--data stories:64K"

runs 3 train $shape $data $stories --steps 12 --stage 2 --checkpoint ck
runs 2 train $shape $data $stories --steps 4 --stage 1 --dtype bf16 --checkpoint half

# ---- any layout generates the same text ----
prompt='Once upon a time'
runs 0 generate ck --prompt "$prompt" --tokens 50
mv out text
[ "$(head -c 16 text)" = "$prompt" ] || complain "$words: expected the prompt first"
[ "$(wc -c <text)" -ge 67 ] || complain "$words: expected 50 tokens after the prompt"
for ranks in 1 2 3; do
    for stage in 0 3; do
        runs $ranks generate ck --prompt "$prompt" --tokens 50 --stage $stage
        same text out "the text on $ranks ranks in stage $stage"
    done
done
runs 3 generate ck/step-00000012 --prompt "$prompt" --tokens 50 --stage 1 --dtype=fp32
same text out "the text in stage 1, of the newest checkpoint by its name"
runs 0 generate half --tokens 40
mv out text_half
runs 3 generate half --tokens 40 --stage 3 --dtype bf16
same text_half out "the text in bf16"
runs 0 generate half --tokens 40 --dtype fp32

# ---- how tokens are drawn ----
runs 0 generate ck --prompt "$prompt" --tokens 50 --seed 2
differ text out "another seed"
runs 0 generate ck --prompt "$prompt" --tokens 50 --temperature 0
mv out likeliest
runs 0 generate ck --prompt "$prompt" --tokens 50 --top-k 1 --seed 5
same likeliest out "--temperature 0 and --top-k 1"
differ text likeliest "temperature 0 and 0.8"

# ---- options without effect ----
while IFS=: read -r words note; do
    runs 0 generate ck --tokens 2 $words
    says "zero: note: $note" err
done <<'END'
--top-k 3 --temperature 0:--top-k 3 has no effect with --temperature 0
--top-p 0.5 --temperature 0.0:--top-p 0.5 has no effect with --temperature 0
--seed 4 --temperature 0:--seed 4 has no effect with --temperature 0
--batch 4 --prompt A:--batch 4 has no effect without --prompts
--raw --prompt-tokens 1:--raw has no effect with --prompt-tokens
--tp-across-nodes:--tp-across-nodes has no effect without --tp
--stage 3:--stage 3 has no effect on one rank
END
printf 'A\n' >line
runs 3 generate ck --tokens 2 --prompts line --batch 4 --stage 3 --top-k 3 --top-p 0.5 --seed 4 --raw
grep -q 'note:' err && complain "$words: expected no note, found $(grep note: err)"

# ---- prompts ----
runs 0 generate ck --prompt-tokens 1,2,3 --tokens 5
grep -Eqx '1,2,3(,[0-9]+){5}' out || complain "$words: expected eight ids"
runs 0 generate ck --raw --tokens 2 --prompt "$(printf 'a\377\001\033[2J')"
[ "$(head -c 7 out | od -An -tx1 | tr -d ' ')" = 61ff011b5b324a ] ||
    complain "$words: expected the prompt's bytes"
runs 0 generate ck --tokens 2 --prompt "$(printf 'a\377\001\033[2J')"
[ "$(head -c 7 out)" = 'a???[2J' ] || complain "$words: expected no control characters"
# A model that sees 32 of 40 tokens ignores the first eight.
tail=$(awk 'BEGIN { for (i = 0; i < 32; i++) printf ",%d", 7 * i % 90 }')
for head in 1,2,3,4,5,6,7,8 9,9,9,9,9,9,9,9; do
    runs 0 generate ck --prompt-tokens "$head$tail" --tokens 9 --temperature 0
    says 'the prompt has 40 tokens, and the model sees the last 32 of them' err
    cut -d, -f 9- out >"after_$head"
done
same after_1,2,3,4,5,6,7,8 after_9,9,9,9,9,9,9,9 "another start that the model does not see"

# ---- several texts at one time: each is the same as alone, past the 32 tokens that are seen ----
printf '%s\nThe cat\nA dog and' "$prompt" >lines
for line in "$prompt" 'The cat' 'A dog and'; do
    runs 0 generate ck --prompt "$line" --tokens 50
    [ "$line" = "$prompt" ] || echo
    cat out
done >apart
for ranks in 1 2 3; do
    runs $ranks generate ck --prompts lines --tokens 50 --stage 3 --batch $ranks
    same apart out "three texts, $ranks at one time, on $ranks ranks"
done
for dtype in bf16 fp16; do
    runs 0 generate ck --prompts lines --tokens 50 --dtype $dtype --batch 1
    mv out one_by_one
    runs 0 generate ck --prompts lines --tokens 50 --dtype $dtype
    same one_by_one out "three texts in $dtype"
    runs 3 generate ck --prompts lines --tokens 50 --dtype $dtype --tp 3
    mv out shared
    runs 0 generate ck --prompts lines --tokens 50 --dtype $dtype --tp-slices 3 --batch 2
    same shared out "three texts in $dtype, in three slices"
done

# ---- prompts of any bytes and lengths, in any layout: each is the same as alone ----
long=$(awk 'BEGIN { for (i = 0; i < 40; i++) printf "the cat saw %d dogs ", i }')
printf 'The cat\r\n\377\376 \300x\200\r\n%s\r\nI' "$long" >odd_lines
tr -d '\r' <odd_lines >lines_of_unix
while IFS= read -r line || [ -n "$line" ]; do
    runs 0 generate ck --raw --prompt "$line" --tokens 30
    [ "$line" = I ] && cat out && break
    cat out && echo
done <lines_of_unix >apart
for ranks in 1 2 3; do
    runs $ranks generate ck --raw --prompts odd_lines --tokens 30 --stage 3
    same apart out "odd prompts on $ranks ranks"
    says 'and the model sees the last 32 of them' err
done
runs 3 generate ck --raw --prompts odd_lines --tokens 30 --tp 3
mv out shared
runs 0 generate ck --raw --prompts lines_of_unix --tokens 30 --tp-slices 3 --batch 3
same shared out "odd prompts, in three slices"
# Many texts at one time meet weights in another way than few.
for i in 1 2 3 4 5; do cat lines && echo; done >many
runs 0 generate ck --prompts many --tokens 40 --batch 1
mv out one_by_one
for ranks in 1 2 3; do
    runs $ranks generate ck --prompts many --tokens 40 --batch 15 --stage 3
    same one_by_one out "fifteen texts at one time on $ranks ranks"
done

# ---- empty lines: texts without a prompt, but for those at the end ----
printf 'a\n\nb\n' >gap
printf 'a\r\n\r\nb\r\n\r\n\r\n' >gap_of_windows
printf 'a\n\nb\n\n\n' >ends_empty
for prompt_of in a '' b; do
    runs 0 generate ck ${prompt_of:+--prompt $prompt_of} --tokens 9
    [ "$prompt_of" = a ] || echo
    cat out
done >apart
for file in gap gap_of_windows ends_empty; do
    runs 3 generate ck --prompts $file --tokens 9
    same apart out "$file"
    says "note: --prompts $file: line 2 is empty" err
done
runs 0 generate ck --prompts lines --tokens 9
[ ! -s err ] || complain "$words: no line is empty"

# ---- nucleus: --top-p 1 is all tokens, and a small one is the likeliest ----
runs 0 generate ck --prompt "$prompt" --tokens 50 --top-p 1
same text out "--top-p 1"
runs 0 generate ck --prompt "$prompt" --tokens 50 --top-p 0.000001
same likeliest out "--temperature 0 and --top-p 0.000001"
runs 0 generate ck --prompts many --tokens 40 --batch 1 --top-p 0.8 --top-k 30
mv out one_by_one
runs 3 generate ck --prompts many --tokens 40 --batch 15 --stage 3 --top-p 0.8 --top-k 30
same one_by_one out "fifteen texts from the nucleus at one time"
runs 0 generate ck --prompts many --tokens 40 --top-k 30
differ one_by_one out "--top-p 0.8"
refuses 2 'expected a decimal number from 1e-06 to 1' 0 generate ck --top-p 0
refuses 2 'expected a decimal number from 1e-06 to 1' 0 generate ck --top-p 1.5

# ---- mistakes ----
: >empty
printf '\n\r\n\n' >empty_lines
refuses 2 'there is no text in the file' 2 generate ck --prompts empty_lines
mkdir folder
refuses 4 'folder' 2 generate ck --prompts folder
printf '\377\376t\000h\000e\000' >utf16
refuses 4 'utf16: this is text in UTF-16' 3 generate ck --prompts utf16
printf 't\000h\000e\000' >utf16le
refuses 4 'utf16le: this is not text' 0 generate ck --prompts utf16le
printf '{"prompt": "the"}\n' >lines.jsonl
refuses 4 'a JSON object in each line' 0 generate ck --prompts lines.jsonl
{ printf '\357\273\277' && cat lines; } >marked
runs 0 generate ck --prompts lines --tokens 5 --batch 1
cp out unmarked
runs 3 generate ck --prompts marked --tokens 5 --batch 1
same unmarked out "prompts after a byte order mark"
refuses 2 'there is no text in the file' 0 generate ck --prompts empty
refuses 4 'cannot be opened' 3 generate ck --prompts nowhere
refuses 2 'give --prompts or --prompt, not both' 0 generate ck --prompts lines --prompt a
refuses 2 'from 1 to 256' 0 generate ck --prompts lines --batch 257
refuses 2 'needs a checkpoint' 0 generate
refuses 4 'nowhere' 0 generate nowhere
refuses 2 'expected a decimal number from 0 to 1000' 0 generate nowhere --temperature 0.5K
refuses 2 'expected a decimal number from 0 to 1000' 0 generate ck --temperature -1
refuses 2 'expected a whole number from 0 to ' 0 generate ck --stage 99
refuses 2 'did you mean --temperature' 0 generate ck --temprature 1
refuses 2 'quote a prompt' 0 generate ck --prompt Once upon
refuses 2 'found an empty text' 0 generate ck --prompt=
refuses 2 'not both' 0 generate ck --prompt a --prompt-tokens 1
refuses 2 'expected ids with commas' 0 generate ck --prompt-tokens 1,,2
refuses 2 "beyond the model's vocabulary" 2 generate ck --prompt-tokens 1,100000
refuses 3 'use more ranks and a higher --stage' 2 generate ck --memory-limit 1M
# Damages the first weight of the second shard.
cp -r ck broken && shard=$(ls broken/*/shard-00001*)
header=$(od -An -tu4 -N4 "$shard")
printf xxxx | dd of="$shard" bs=1 seek=$((8 + header)) conv=notrunc 2>/dev/null
refuses 4 'was changed after it was written' 3 generate broken --stage 3

# ---- a model of tokens has no tokenizer ----
write_tokens tokens.bin
runs 1 train $shape $data --steps 2 --data tokens.bin --vocab 64 --checkpoint ids
runs 0 generate ids --prompt-tokens 1,2,3 --tokens 4
refuses 2 'give --prompt-tokens' 0 generate ids --prompt Once
runs 0 checkpoint export ids --to ids_exported
says 'no tokenizer' out
holds ids_exported config.json generation_config.json model.safetensors

# ---- to Hugging Face's files and back: the same bytes ----
umask 022
runs 0 checkpoint export ck --to exported
says 'with its tokenizer' out
says '"model_type": "gpt2"' exported/config.json
find exported -type d ! -perm 0755 -o -type f ! -perm 0644 >modes
[ ! -s modes ] || complain "$words: unexpected modes: $(cat modes)"
# The exported model generates the same text by itself.
runs 0 generate exported --prompt "$prompt" --tokens 50
same text out "the text of the exported model"
runs 3 generate exported/model.safetensors --prompt "$prompt" --tokens 50 --stage 3
same text out "the text of the exported file on 3 ranks"
runs 3 generate exported --prompt-tokens 1,2,3 --tokens 5 --tp 3 --dtype bf16
grep -Eqx '1,2,3(,[0-9]+){5}' out || complain "$words: expected eight ids"
runs 0 generate ids_exported --prompt-tokens 1,2,3 --tokens 4
refuses 2 'has no tokenizer' 0 generate ids_exported --prompt Once
refuses 2 'beyond the model' 0 generate exported --prompt-tokens 1,100000
mkdir bare && cp exported/model.safetensors bare
refuses 4 'the number of heads is not known: expected a config.json' 3 generate bare
refuses 4 'or model.safetensors' 0 generate folder
mv bare/model.safetensors bare/pytorch_model.bin && cp exported/config.json bare
refuses 2 'a file of PyTorch, and this program reads safetensors' 2 generate bare
mkdir 0 1 && cp -r exported 0/model && cp -r exported 1/model
sed -i 's/"n_head": 3/"n_head": 6/' 1/model/config.json
# shellcheck disable=SC2016 # expanded by the ranks
on 2 sh -c 'cd "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$0" generate model' "$zero" >out 2>err
code=$?
exits 4
says "rank 1: model describes another model than rank 0's (6 heads" err
runs 2 train $shape $data $stories --steps 0 --stage 3 --init-from exported --checkpoint back
says 'weights       from exported' out
runs 0 checkpoint export back --to=exported_again
for file in model.safetensors config.json generation_config.json tokenizer.json \
    tokenizer_config.json; do
    same exported/$file exported_again/$file "$file exported, imported, exported again"
done
runs 0 generate back --prompt "$prompt" --tokens 50
same text out "the text of the model that came back"
runs 1 train $shape $data $stories --steps 1 --stage 1 --dtype bf16 \
    --init-from exported/model.safetensors

refuses 2 'exported exists: remove it' 0 checkpoint export ck --to exported
refuses 2 'needs --to OUT' 0 checkpoint export ck
refuses 4 'was changed after it was written' 0 checkpoint export broken --to none
[ ! -e none ] && [ ! -e .tmp-none ] || complain "$words: expected nothing left behind"
refuses 2 'give --layers 2' 2 \
    train $data $stories --layers 3 --hidden 48 --heads 3 --init-from exported
refuses 2 'give --heads 3' 0 \
    train $data $stories --layers 2 --hidden 48 --heads 4 --init-from exported
refuses 2 'give --vocab 512' 0 train $shape $data $stories --vocab 600 --init-from exported
refuses 4 'not the weights of a GPT-2' 0 train $shape $data $stories \
    --init-from "$(ls ck/*/shard-00000*)"
head -c 100000 exported/model.safetensors >torn.safetensors
refuses 4 'torn.safetensors' 3 train $shape $data $stories --init-from torn.safetensors
finish
