# Mistakes of users, without mpirun: exit codes and messages.
. "$(dirname "$0")/common.sh"

mkdir empty_directory
: >empty
printf 'too short for one sample' >short
printf '{"stpes": 3}' >wrong_key.json
printf '{"steps": ' >broken.json
printf '[1, 2]' >list.json
write_tokens tokens.bin
printf '\210\330\064\001\002\000\000\000' >version2.bin # llm.c's first number, then version 2
dd if=/dev/zero bs=1024 count=2 >>version2.bin 2>/dev/null

# data: the exit code is 4, or 2 where the remedy is an option
refuses 4 'No such file or directory' 0 train --data nosuch
refuses 4 'no file matches' 0 train --data 'nosuch*'
refuses 4 'the file is empty' 0 train --data empty
refuses 4 'no regular file' 0 train --data empty_directory
refuses 4 'expected a regular file' 0 train --data /dev/null
refuses 4 'has the id 20' 0 train --data tokens.bin --vocab 20
refuses 4 'version2.bin' 0 train --data version2.bin
refuses 2 'pass --vocab' 0 train --data tokens.bin
refuses 2 'cannot be honoured' 0 train --data tokens.bin --vocab 50 --tokenizer byte
refuses 2 'one sample of --seq 32 needs 33' 0 train --data short --seq 32
refuses 2 'one sample of --seq 100000 needs 100001' 0 train --data stories:64K --seq 100000
refuses 2 'stories:SIZE' 0 train --data stories:100T
refuses 2 'stories:SIZE' 0 train --data stories:0
refuses 2 'stories:4MiB' 0 train --data stories:4XiB
if [ "$(id -u)" -ne 0 ]; then
    cp short unreadable && chmod 0 unreadable
    refuses 4 'Permission denied' 0 train --data unreadable
fi

# tokenizers and vocabulary
refuses 2 '257 to 65536' 0 train --data stories:64K --tokenizer bpe:10
refuses 2 'ask for at most bpe:' 0 train --data stories:64K --tokenizer bpe:60000
refuses 2 'expected byte, char or bpe:N' 0 train --tokenizer bytes
refuses 2 'too small for the tokenizer bpe:512' 0 train --data stories:64K --vocab 511

# the model and the batch
refuses 2 'there are tiny, gpt2' 0 train --model nosuch
refuses 2 'expected one of cpu|naive' 0 train --backend nosuch
refuses 2 '--hidden 128 is not a multiple of --heads 5' 0 \
    train --data stories:64K --hidden 128 --heads 5
refuses 2 '--global-batch 6 is not a multiple of --micro-batch 4 x 1 rank = 4' 0 \
    train --global-batch 6 --micro-batch 4
refuses 2 '--warmup 5 is longer' 0 train --warmup 5 --steps 4
refuses 2 '--lr-min 1 is above --lr 0.5' 0 train --lr-min 1 --lr 0.5
refuses 2 'microbatches' 0 train --global-batch 2000000000 --micro-batch 1
run 0 train --data stories:64K --hidden 131072 --heads 1
exits 3
says 'MiB are available' err
says '--stage 0' err
refuses 2 'powers of two' 0 \
    train --data stories:64K --global-batch 6 --micro-batch 2 --reproducible
refuses 2 'adds in an order of its own' 0 \
    train --data stories:64K --reproducible --collectives mpi

# options, and a file of options
refuses 2 'did you mean --steps' 0 train --stesp 1
refuses 2 "unexpected argument '100'" 0 train 100
refuses 2 '--steps needs a value' 0 train --steps
refuses 2 '--steps -1: expected a whole number from 0' 0 train --steps -1
refuses 2 '--lr nan: expected a decimal number' 0 train --lr nan
refuses 2 '--lr 1e30: expected a decimal number from 0 to 100' 0 train --lr 1e30
refuses 2 'expected a whole number from 0 to ' 0 train --stage 99
refuses 2 'fp32|bf16|fp16' 0 train --dtype fp8
refuses 2 '--tp 2 does not divide 1 rank (2 x 0 + 1)' 0 train --tp 2
refuses 2 'auto|live|lines|none' 0 train --progress bar
refuses 2 'threads' 0 train --data stories:64K --threads 4096
refuses 2 'did you mean "steps"' 0 train --config wrong_key.json
refuses 2 'broken.json:1:' 0 train --config broken.json
refuses 2 'found a list' 0 train --config list.json
refuses 2 'nosuch.json: cannot be opened' 0 train --config nosuch.json
refuses 2 '--metrics nosuch/m: cannot be opened' 0 train --data stories:64K --metrics nosuch/m
finish
