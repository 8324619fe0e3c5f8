# Weights of other programs come with their shape and their tokenizer.
. "$(dirname "$0")/common.sh"
golden=$support/../golden/tokenizers
short="--global-batch 6 --eval-every 0 --sample 5 --steps 2"

awk 'BEGIN { for (i = 0; i < 200; i++) print "the fox", i, "jumped to the grapes, again!" }' >text
write_tokens tokens.bin
runs 2 train $short --layers 2 --hidden 48 --heads 3 --seq 32 --data text \
    --tokenizer "$golden/gpt2.json" --checkpoint ck
says '(gpt2.json)' out
says 'V 330' out
runs 0 generate ck --prompt 'the grapes' --tokens 5
[ "$(head -c 10 out)" = "the grapes" ] || complain "$words: expected the prompt first"
runs 0 checkpoint export ck --to model
says '"eos_token": "<|endoftext|>"' model/tokenizer_config.json
says '"eos_token_id": 0' model/generation_config.json
same model/tokenizer.json "$golden/gpt2.json" "the tokenizer that was read, exported"
rm model/tokenizer.json
# A limit cuts the weights into files with an index, which are the same model.
runs 0 checkpoint export ck --to files --shard-bytes 100000
[ "$(ls files/model-0000?-of-0000?.safetensors | wc -l)" -ge 3 ] || complain "$words: expected 3 files of weights or more"
refuses 2 '--shard-bytes is for export alone' 0 checkpoint show ck --shard-bytes 100000

# ---- the tokenizer ----
# One from a folder keeps what that says of it, with a length that is no 64-bit number: ids, and as many
# positions as the model has.
mkdir folder
cp "$golden/gpt2.json" folder/tokenizer.json
cat >folder/tokenizer_config.json <<'END'
{"eos_token": {"content": "<|stop|>"}, "bos_token": "<|begin|>",
 "model_max_length": 1000000000000000019884624838656, "x": 0.1234567890123456789}
END
echo '{"pad_token": "<|pad|>"}' >folder/special_tokens_map.json
runs 2 train $short --layers 1 --hidden 16 --heads 2 --seq 32 --data text --tokenizer folder --checkpoint ck-folder
runs 2 train --resume --checkpoint ck-folder --steps 3
runs 0 checkpoint export ck-folder --to from-folder
for id in '"bos_token_id": 330' '"eos_token_id": 331' '"pad_token_id": 332'; do
    says "$id" from-folder/config.json
    says "$id" from-folder/generation_config.json
done
says '"model_max_length": 32, "x": 0.1234567890123456789' from-folder/tokenizer_config.json
same folder/special_tokens_map.json from-folder/special_tokens_map.json "what was beside the tokenizer"
refuses 2 'there is no tokenizer' 0 train $short --data text --init-from model
refuses 2 'there is no tokenizer' 3 train $short --data stories:64K --init-from model
for name in byte bpe:300; do
    refuses 2 'mean nothing to the weights' 0 train $short --data text --init-from model \
        --tokenizer $name
done
cp "$golden/gpt2.json" model/tokenizer.json
runs 3 train $short --data text --init-from model
says '(tokenizer.json)' out
says '2 layers, 48 hidden, 3 heads, T 32, V 330' out
says '---- a sample before training' out
digest_of out >digest
runs 3 train $short --data text --init-from files
digest_of out >digest_files
same digest digest_files "the weights in several files"
runs 3 train $short --data text --init-from model/model.safetensors
digest_of out >digest_file
same digest digest_file "the weights by their file"
runs 3 train $short --data text --init-from model --tokenizer "$golden/merges.txt"
says '(vocab.json and merges.txt)' out
digest_of out >digest_pair
same digest digest_pair "the same tokenizer in GPT-2's two files"
refuses 2 "is not the model's" 3 train $short --data text --init-from model \
    --tokenizer "$golden/llama3.json" --vocab 400
rm model/tokenizer.json
cp "$golden/vocab.json" model/encoder.json
cp "$golden/merges.txt" model/vocab.bpe
runs 3 train $short --data text --init-from model
digest_of out >digest_pair
same digest digest_pair "encoder.json and vocab.bpe beside the weights"
# Tokens are the model's, and so is the tokenizer beside it: checkpoints and samples have it.
runs 3 train $short --data tokens.bin --init-from model --checkpoint of_tokens
says 'V 330' out
says '(nanoGPT, encoder.json and vocab.bpe)' out
runs 0 generate of_tokens --prompt 'the grapes' --tokens 5
[ "$(head -c 10 out)" = "the grapes" ] || complain "$words: expected the prompt first"
runs 0 train $short --layers 1 --hidden 16 --heads 2 --seq 16 --data tokens.bin --tokenizer "$golden/gpt2.json"
says 'V 330' out
# Tokens that were added to it count as transformers counts them.
awk 'BEGIN { for (i = 0; i < 200; i++) print "<|user|>the fox<|bot|>jumped<|endoftext|>" }' >chat
runs 0 train --steps 1 --sample 0 --eval-every 0 --layers 1 --hidden 16 --heads 2 --seq 16 --data chat \
    --tokenizer model
before=$(sed -n 's/.*bytes, \([0-9]*\) tokens.*/\1/p' out)
echo '{"<|bot|>": 331, "<|user|>": 330}' >model/added_tokens.json
runs 3 train --steps 1 --global-batch 3 --sample 0 --eval-every 0 --layers 1 --hidden 16 --heads 2 --seq 16 \
    --data chat --tokenizer model --checkpoint of_chat
after=$(sed -n 's/.*bytes, \([0-9]*\) tokens.*/\1/p' out)
# "<|user|>" and "<|bot|>" are 8 and 7 tokens without it.
[ $((before - after)) -eq $((200 * (7 + 6))) ] || complain "$words: $before tokens before, $after after"
says 'V 332' out
runs 0 generate of_chat --prompt '<|user|>' --tokens 1
refuses 2 'too small for the tokenizer' 0 train $short --data chat --init-from model
echo '{"add_prefix_space": true}' >model/tokenizer_config.json
refuses 2 '"add_prefix_space": true is not supported' 3 train $short --data chat --tokenizer model
rm model/added_tokens.json model/tokenizer_config.json
refuses 2 'there is no such path' 0 train --data text --tokenizer nowhere
echo '{"model": {"type": "Unigram"}}' >unigram.json
refuses 2 'Unigram is not supported' 0 train --data text --tokenizer unigram.json

for path in ck ck/step-00000002; do
    refuses 2 "--init-from $path holds a checkpoint of zero train: --resume" 3 train $short \
        --data text --init-from $path
    says "zero checkpoint export $path --to OUT" err
done

# ---- the shape ----
runs 2 train $short --data text --init-from model --seq 16
says 'T 16' out
refuses 2 'give --seq 32' 0 train $short --data text --init-from model --seq 33
refuses 2 'give --layers 2' 0 train $short --data text --init-from model --layers 3
mv model/config.json .
refuses 2 'give --heads N' 0 train $short --data text --init-from model
runs 0 train $short --data text --init-from model --heads 3
mv config.json model

# ---- what no computation needs goes with the checkpoints, and out again ----
cp -r model whole
cp "$golden/gpt2.json" whole/tokenizer.json
sed -e 's/"eos_token_id": 0/"eos_token_id": 1, "pad_token_id": 2/' -e 's/_pdrop": 0.0/_pdrop": 0.1/' \
    model/config.json >whole/config.json
echo '{"eos_token": "<|endoftext|>", "model_max_length": 32}' \
    >whole/tokenizer_config.json
echo '{"top_p": 0.9, "eos_token_id": [1, 2]}' >whole/generation_config.json
printf '{{ "chat" }}\n' >whole/chat_template.jinja
echo '{"pad_token": "<|endoftext|>"}' >whole/special_tokens_map.json
runs 3 train $short --data text --init-from whole --tp 3 --checkpoint kept
says 'from whole: dropout 0, where its config.json has 0.1' out
runs 0 checkpoint show kept
says 'chat_template.jinja' out
says 'kept for export' out
runs 0 checkpoint export kept --to again
for file in tokenizer.json tokenizer_config.json generation_config.json chat_template.jinja \
    special_tokens_map.json; do
    same whole/$file again/$file "$file of the model that a run began with"
done
says '"eos_token_id": 1' again/config.json
says '"pad_token_id": 2' again/config.json
says '"attn_pdrop": 0.1' again/config.json
says '"n_positions": 32' again/config.json
# A run that resumes keeps what its checkpoint does, whatever lies beside its weights now.
mv whole gone
runs 2 train $short --steps 4 --data text --layers 2 --hidden 48 --heads 3 --seq 32 \
    --tokenizer gone --tp-slices 1 --resume --checkpoint kept
runs 0 checkpoint export kept --to later
for file in again/*.json* ; do
    [ "$file" = again/config.json ] || same "$file" "later/${file#again/}" "$file, resumed"
done
same again/config.json later/config.json "config.json, resumed"
mv gone whole
# Of data that are tokens the model's tokenizer makes text.
runs 2 train $short --data tokens.bin --init-from whole --seq 16 --checkpoint ids
says 'where its config.json has 0.1; the first 16 of its 32 positions' out
runs 0 generate ids --prompt 'the grapes' --tokens 3
runs 0 checkpoint export ids --to short
says 'the first 16 of the 32 positions that it began with' out
says '"n_positions": 16' short/config.json
says '"model_max_length": 16' short/tokenizer_config.json
same whole/tokenizer.json short/tokenizer.json "the tokenizer of data that are tokens"
echo '{"model": {"type": "Unigram"}}' >whole/tokenizer.json
runs 0 train $short --data tokens.bin --init-from whole --checkpoint bare
says 'whole/tokenizer.json is not kept' err
runs 2 train $short --data text --dropout 0.25 --checkpoint scratch --layers 1 --hidden 16 --heads 1
runs 0 checkpoint export scratch --to scratch_out
says '"resid_pdrop": 0.25' scratch_out/config.json

# ---- the ends of texts ----
until_one_of() { # until_one_of 'IDS' FILE: the ids of a text up to the first of these that was drawn
    awk -F, -v ids="$1" 'BEGIN { split(ids, list, " "); for (i in list) is_end[list[i]] = 1 }
        { text = $1; for (i = 2; i <= NF; i++) { text = text "," $i; if ($i in is_end) break }; print text }' "$2"
}
# The tokenizer's own, <|endoftext|>; so hot that any token comes soon.
hot="--temperature 1000 --tokens 3000"
runs 0 generate ck --prompt-tokens 5 $hot --ignore-end
grep -q ',0,' out || complain "$words: token 0 was not drawn"
until_one_of 0 out >ended
runs 3 generate ck --prompt-tokens 5 $hot
same ended out "a text up to the end that its tokenizer knows"
run 0 generate ck --prompt 'the grapes' $hot --ignore-end --raw # any bytes
exits 0
mv out endless
run 2 generate ck --prompt 'the grapes' $hot --raw
exits 0
head -c "$(($(wc -c <out) - 1))" endless >begin
printf '<|endoftext|>' >>begin
head -c "$(wc -c <begin)" endless >begin_of_endless
same begin_of_endless begin "a text without its end"
# Those of a generation_config.json, which may be several; else that of the config.json.
runs 0 generate ck --prompt-tokens 5 --tokens 30 --temperature 5
mv out endless
set -- $(cut -d, -f 9,20 endless | tr , ' ')
cp -r model several
echo "{\"eos_token_id\": [$2, $1, 99999]}" >several/generation_config.json
sed 's/"eos_token_id": 0/"eos_token_id": 1/' model/config.json >several/config.json
cp "$golden/gpt2.json" several/tokenizer.json
runs 0 train $short --data text --init-from several --steps 0 --checkpoint several_ends
until_one_of "$1 $2" endless >ended
runs 3 generate several_ends --prompt-tokens 5 --tokens 30 --temperature 5 --stage 3
same ended out "a text up to one of two ends"
runs 0 generate several_ends --prompt-tokens 5 --tokens 30 --temperature 5 --ignore-end
same endless out "--ignore-end"
rm several/generation_config.json
sed "s/\"eos_token_id\": 0/\"eos_token_id\": $2/" model/config.json >several/config.json
runs 0 train $short --data text --init-from several --steps 0 --checkpoint one_end
until_one_of "$2" endless >ended
runs 0 generate one_end --prompt-tokens 5 --tokens 30 --temperature 5
same ended out "a text up to the end in config.json"
# A run's samples, too: ranks other than the first know no kept file.
sample="--global-batch 6 --eval-every 0 --data tokens.bin --sample 40 --steps 1"
rm several/tokenizer.json several/encoder.json several/vocab.bpe # so samples are ids
echo '{"eos_token_id": [0]}' >several/generation_config.json
runs 2 train $sample --init-from several
sed -n '/^---- a sample before/{n;p;q}' out | sed 's/ *$//; s/ /,/g' >endless
set -- $(cut -d, -f 7 endless)
echo "{\"eos_token_id\": [0, $1]}" >several/generation_config.json
runs 2 train $sample --init-from several
sed -n '/^---- a sample before/{n;p;q}' out | sed 's/ *$//; s/ /,/g' >got
until_one_of "0 $1" endless >ended
same ended got "a run's sample up to its end"
echo '{"eos_token_id": "none"}' >several/generation_config.json
refuses 4 '"eos_token_id": expected a token or a list' 2 train $sample --init-from several

# ---- nodes with copies of their own: each rank stands for one, in the folder of its number ----

# on_nodes words...: trains on 3 of them.
on_nodes() {
    words="zero train $* on 3 nodes"
    # shellcheck disable=SC2016 # expanded by the ranks
    on 3 sh -c 'cd "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$@"' sh "$zero" train \
        $short --lr 1e-4 --data text --init-from whole --fake-nodes 3 "$@" >out 2>err
    code=$?
    legible err
}

cp "$golden/gpt2.json" whole/tokenizer.json
for node in 0 1 2; do mkdir $node && cp -r whole text $node; done
for stage in 0 3; do
    on_nodes --stage $stage
    exits 0
    digest_of out >digest.$stage
done
runs 3 train $short --lr 1e-4 --data text --init-from whole
digest_of out >digest
same digest digest.0 "copies in stage 0 and one file"
same digest digest.3 "copies in stage 3 and one file"
# The middle of the embedding is missing in one.
header=$(od -An -tu4 -N4 2/whole/model.safetensors)
dd if=/dev/zero of=2/whole/model.safetensors bs=48 seek=$(((8 + header + 48 * 4 * 200) / 48)) \
    count=400 conv=notrunc 2>/dev/null
for stage in 0 2; do
    on_nodes --stage $stage
    exits 4
    says "rank 2: whole/model.safetensors differs from rank 0's copy in wte.weight" err
    says 'where it has zeros from element' err
done
# One file with zeros trains, with a warning.
runs 2 train $short --lr 1e-4 --data text --init-from 2/whole --stage 3
says 'warning: 2/whole/model.safetensors: wte.weight has zeros from element' err
cp whole/model.safetensors 2/whole
sed -i 's/"n_head": 3/"n_head": 4/' 1/whole/config.json
on_nodes --stage 1
exits 4
says "rank 1: whole describes another model than rank 0's (4 heads" err
cp whole/config.json 1/whole
sed 's/"<|endoftext|>"/"<|end|>"/g' "$golden/gpt2.json" >1/whole/tokenizer.json
rm 1/whole/tokenizer_config.json 1/whole/special_tokens_map.json # they name the token
on_nodes --stage 1
exits 4
says "rank 1: --data text differs from rank 0's, or its tokenizer does" err
cp whole/*.json 1/whole
for node in 0 1 2; do sed 2,3d text >$node/later; done
echo 'of another night' >>2/later
on_nodes --stage 1 --val-data later
exits 4
says "rank 2: --data text, or --val-data later, differs from rank 0's" err

# ---- the rate ----
runs 0 train $short --data text --init-from model --lr 2e-3
says 'try --lr 0.0004' err
runs 0 train $short --data text --init-from model --lr 1e-3
[ -s err ] && grep -q 'random weights' err && complain "$words: unexpected warning"

# ---- another architecture: out, in on three ranks, each with a third, and out again ----
small="--global-batch 6 --eval-every 0 --sample 0 --steps 1"
runs 0 train $small --architecture qwen3 --layers 2 --hidden 24 --heads 6 --kv-heads 2 --head-size 8 \
    --inner 40 --seq 32 --data text --tokenizer "$golden/gpt2.json" --checkpoint qwen
runs 0 checkpoint export qwen --to qwen_out --shard-bytes 20000
says '"Qwen3ForCausalLM"' qwen_out/config.json
runs 3 train $small --data text --init-from qwen_out --stage 3 --lr 0 --lr-min 0 --checkpoint same
runs 0 checkpoint export same --to same_out --shard-bytes 20000
diff -r qwen_out same_out >differences || complain "an export that was imported and not trained: $(head -n 3 differences)"
refuses 2 'give --architecture qwen3' 0 train $small --data text --init-from qwen_out --model gpt2 --vocab 330 --seq 32

finish
