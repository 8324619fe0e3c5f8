# Texts of others, in files, names and variables, act on no terminal: all that is printed is legible. SEAL
# gives a changed manifest its checksum; LEGIBLE finds characters that base/legible.h hides.
. "$(dirname "$0")/common.sh"
tiny="$tiny --global-batch 4"

# A control character of C1, a change of direction, one without width, and what JSON escapes: a line's end and
# an escape. `bad` is as a name of a file and as an argument; `json` within a JSON file.
bad=$(printf 'x\302\23331m\342\200\256y\342\200\213z\033[31m\n\007q')
soft=$(printf 'x\302\23331m\342\200\256y\342\200\213z')
json="$soft\\\\u001b[31m\\\\n\\\\u0007q" # for sed and awk, too

# plain N words...: zero runs with these words on N ranks, whatever its exit code, and what it prints is
# legible. `told FILE`: and it shows the text, escaped, in out or err.
plain() {
    run "$@"
    for stream in out err; do
        "$LEGIBLE" "$stream" <$stream >checked 2>&1 || complain "$words: $(cat checked)"
    done
}
told() {
    cat out err | grep -q 'x\\u{9B}31m\\u{202E}y\|x\\u009b31m\\u202ey' ||
        complain "$words: expected the name with its characters' numbers"
}

# ---- names of files and directories ----
yes 'a line of text for the model to read' | head -n 400 >text
plain 0 train $tiny --steps 2 --checkpoint "$bad" --metrics "$bad.jsonl" --trace "$bad.json"
exits 0
told
cp text "$bad.txt"
plain 0 train $tiny --steps 2 --checkpoint "$bad" --resume --lr 0.5 --data "$bad.txt"
told
for verb in show verify; do
    plain 0 checkpoint $verb "$bad"
    exits 0
    told
done
plain 0 checkpoint export "$bad" --to "$bad.hf"
exits 0
told
plain 0 checkpoint export "$bad" --to "$bad.hf"
told
plain 0 train $tiny --init-from "$bad.hf" --data "$bad.txt" --steps 1
plain 0 generate "$bad" --prompt 'a' --tokens 4
exits 0
plain 0 generate "$bad" --prompts "$bad.txt" --tokens 4
plain 0 train $tiny --steps 1 --offload "$bad"
told
for option in --data --val-data --tokenizer --init-from --config --metrics --trace --checkpoint; do
    plain 0 train $tiny --steps 1 $option "no-$bad/x"
    told
done
plain 2 train $tiny --steps 1 --checkpoint "no-$bad/x"
plain 0 plan --machine "$bad"
told
plain 0 plan --model "$bad"
told
plain 0 report "$bad.jsonl"
exits 0
plain 0 report "$bad.jsonl" --trace "$bad.json"
exits 0
for form in '' --csv --json; do plain 0 report "$bad.jsonl" $form --out "$bad.report"; done
told
plain 0 report "$bad.jsonl" "$bad.jsonl" --json
exits 0
plain 0 compare "$bad.jsonl" "$bad.jsonl"
exits 0
plain 0 simulate --ranks 2 --stage 1 --network 1us,1G --flops 1T --trace "$bad.sim.json"
plain 0 sweep --ranks 1 --weak --micro-batch 1 --steps 4 --warm-up 1 $(echo "$tiny" | sed 's/--global-batch 4//; s/--eval-every 0//; s/--sample 0//') --out "$bad.study"
exits 0
for form in '' --csv --json; do plain 0 report "$bad.study" $form; done
plain 0 "$bad"
told
plain 0 train "--$bad"
told
plain 0 train --stage "$bad"
told
plain 0 checkpoint "$bad" "$bad"
told
plain 0 help "$bad"
told
plain 0 lesson 1 --student "$bad" --no-questions
plain 0 lesson 1 --student "$bad" --answers --save "$bad.txt"

# ---- variables ----
OMP_NUM_THREADS="$bad" plain 0 train $tiny --steps 1
SLURM_JOB_ID="$bad" SLURM_NTASKS="$bad" plain 0 train $tiny --steps 1
OMP_PROC_BIND="$bad" plain 0 info
COLUMNS="$bad" TERM="$bad" plain 0 train $tiny --steps 2

# ---- a manifest: names of tensors, options, the arithmetic ----
runs 0 train $tiny --steps 2 --checkpoint ck
manifest=ck/step-00000002/manifest.json
cp $manifest kept
# What JSON escapes is refused early; without it the rest comes further.
for text in "$json" "$soft"; do
    for change in "s/\"wte.weight\"/\"$text\"/" "s/\"options\": {/&\"$text\":\"$text\",/" \
        "s/\"stage\":\"0\"/\"stage\":\"$text\"/" "s/\"arithmetic\": \"/&$text/" \
        "s/\"seed\": 1337/&, \"$text\": 1/" "s/\"digest\": \"/&$text/" \
        "s/\"scheme\":\"slice\"/\"scheme\":\"$text\"/" "s/\"dtype\": \"fp32\"/\"dtype\": \"$text\"/"; do
        sed "$change" kept >$manifest
        cmp -s kept $manifest && complain "$change: changes nothing"
        "$SEAL" $manifest || complain "$manifest: cannot be sealed"
        for verb in show verify 'export --to exported'; do
            plain 0 checkpoint ${verb%% *} ck ${verb#${verb%% *}}
        done
        rm -rf exported
        [ "$text" = "$soft" ] || continue
        plain 0 generate ck --tokens 2
        plain 0 train $tiny --steps 3 --checkpoint ck --resume
        rm -rf ck/step-00000003
    done
done
plain 2 train $tiny --steps 3 --checkpoint ck --resume
sed "s/\"wte.weight\"/\"$soft\"/" kept >$manifest
"$SEAL" $manifest
plain 0 checkpoint show ck
exits 0
told

# hostile FILE FORM MOST words...: zero reads the file with one text after the other replaced, MOST of them at
# equal distances; FORM is how a text begins in it.
hostile() {
    file=$1 form=$2 most=$3
    shift 3
    cp "$file" whole
    count=$(grep -o "$form" whole | wc -l)
    [ "$count" -gt 3 ] || complain "$file: $count texts, expected several"
    turn=1
    while [ $turn -le "$count" ]; do
        awk -v turn=$turn -v form="$form" -v text="$json" '{
            line = $0; out = ""
            while (match(line, form)) {
                out = out substr(line, 1, RSTART + RLENGTH - 1)
                line = substr(line, RSTART + RLENGTH)
                if (++n == turn) out = out text
            }
            print out line }' whole >"$file"
        plain 0 "$@"
        turn=$((turn + 1 + count / most))
    done
    cp whole "$file"
}

# ---- metrics, studies, traces ----
runs 0 train $tiny --steps 2 --metrics m.jsonl --trace t.json
cp m.jsonl other.jsonl
for form in '' --csv --json; do hostile m.jsonl '[{,:[]"' 30 report m.jsonl other.jsonl $form; done
hostile m.jsonl '[{,:[]"' 20 report m.jsonl --out page.html
"$LEGIBLE" page.html <page.html || complain "page.html is not legible"
hostile m.jsonl '[{,:[]"' 40 compare m.jsonl other.jsonl
hostile t.json '[{,:[]"' 20 report m.jsonl --trace t.json
hostile t.json '[{,:[]"' 20 report --trace t.json --csv
cp -r "$bad.study" study
for form in '' --csv --json; do hostile study/study.json '[{,:[] *"' 20 report study $form; done
hostile study/study.json '[{,:[] *"' 20 sweep --ranks 1 --weak --micro-batch 1 --steps 4 --out study
hostile study/study.csv ',' 20 report study/study.csv
hostile study/points/*.jsonl '[{,:[]"' 20 report study

# ---- models, tokenizers, configurations ----
runs 0 checkpoint export "$bad" --to hf
hostile hf/config.json '"' 12 train $tiny --init-from hf --steps 1
hostile hf/tokenizer.json '"' 12 train $tiny --tokenizer hf --data text --steps 1
# The header of the weights has a length, which one text in the place of another keeps.
weights() { # weights NAME TEXT: of the same length
    sed "s/\"$1\"/\"$2\"/" hf/model.safetensors >changed
    cp hf/model.safetensors whole
    cmp -s whole changed && complain "weights: no $1"
    mv changed hf/model.safetensors
    plain 0 train $tiny --init-from hf --tokenizer byte --data text --steps 1
    cp whole hf/model.safetensors
}
weights transformer.wte.weight "$(printf 'x\302\23331m\342\200\256y.wte.weight1')"
weights F32 "$(printf '\342\200\256')"
printf '{"layers": 1, "stage": "0", "data": "text", "tokenizer": "byte", "metrics": "m2"}\n' >run.json
hostile run.json '"' 12 train --config run.json --steps 1
printf '{"train_batch_size": 8, "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}},
  "optimizer": {"type": "Adam", "params": {"lr": 0.1}}, "fp16": {"enabled": "auto"}}\n' >ds.json
hostile ds.json '"' 40 config --from deepspeed ds.json --ranks 2
cat >my.machine <<'EOF'
name             mine
about            a machine
source           somebody
date             2026-11-23
fit              none
devices          8
memory           80G
peak             fp32 19.5T
efficiency       0.5 1450
inside           2e-6 300G
between          2e-6 200G
EOF
hostile my.machine '  *' 20 plan --ranks 2 --stage 1 --machine my.machine
hostile my.machine '  *' 20 plan --machine help

# ---- answers of students, prompts ----
runs 0 lesson 1 --answers
cat >answers <<EOF
STUDENT anna
1.1 4800
1.2 $bad
STUDENT $bad
1.1 $bad
$bad 1
EOF
plain 0 lesson 1 --check answers
plain 0 lesson 1 --grade answers
plain 0 lesson --grade answers
# A text may join letters without width, as some languages do; it may not steer a terminal.
prompt=$(printf 'x\302\23331m\342\200\256yz\033[31m\007q')
printf '%s\n' "$prompt" "$prompt" >prompts
plain 0 generate "$bad" --prompts prompts --tokens 4
exits 0
plain 0 generate "$bad" --prompt "$prompt" --tokens 4
exits 0
plain 0 generate "$bad" --prompt-tokens "$bad"
finish
