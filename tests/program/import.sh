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

# ---- the tokenizer ----
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

# ---- the shape ----
runs 2 train $short --data text --init-from model --seq 16
says 'T 16' out
refuses 2 'give --seq 32' 0 train $short --data text --init-from model --seq 33
refuses 2 'give --layers 2' 0 train $short --data text --init-from model --layers 3
mv model/config.json .
refuses 2 'give --heads N' 0 train $short --data text --init-from model
runs 0 train $short --data text --init-from model --heads 3
mv config.json model

# ---- the rate ----
runs 0 train $short --data text --init-from model --lr 2e-3
says 'try --lr 0.0004' err
runs 0 train $short --data text --init-from model --lr 1e-3
[ -s err ] && grep -q 'random weights' err && complain "$words: unexpected warning"
finish
