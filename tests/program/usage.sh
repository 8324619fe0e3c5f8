# The program's help and other information about itself. None of it starts MPI.
. "$(dirname "$0")/common.sh"

# With a bad component list MPI fails to start, so a command that succeeds has not started it.
no_mpi() {
    OMPI_MCA_pml=none MPICH_INTERFACE_HOSTNAME=none "$zero" "$@"
}

runs 0 --version
[ "$(wc -l <out)" -eq 1 ] && grep -qE '^zero [0-9]+\.[0-9]+\.[0-9]+$' out ||
    complain "$words: expected 'zero' and its version"
runs 0 --help
for word in 'zero train' 'zero info' 'zero help COMMAND' 'Exit codes'; do says "$word" out; done
[ -s err ] && complain "$words: expected nothing on stderr"
runs 0 -h
says 'zero train' out
runs 0 train --help
for word in Model: Data: Optimisation: General: --lr --metrics --global-batch; do
    says "$word" out
done
runs 0 info
for key in version mpi blas backends devices memory stages; do says "$key" out; done
runs 0 info --defaults gpt2
for line in '--layers  *12$' '--lr  *0.0006$' '--micro-batch  *4$'; do
    grep -qe "$line" out || complain "$words: expected $line"
done
refuses 2 'no such preset' 0 info --defaults gtp2
runs 0 help train
cp out by_help
runs 0 train --help
same out by_help "zero train --help and zero help train"
runs 0 version
[ "$(cat out)" = "$("$zero" --version)" ] || complain "$words: differs from zero --version"
refuses 2 "did you mean 'train'" 0 help trian
for page in '' train plan simulate generate checkpoint compare config info lesson homework report help; do
    runs 0 help $page --man
    head -n 1 out | grep -q '^\.TH ZERO' || complain "$words: not a man page"
    command -v groff >/dev/null || continue
    groff -man -Tascii -ww out 2>warned >/dev/null
    [ -s warned ] && complain "$words: groff says $(cat warned)"
done
runs 0 info --json
is_json out
# bf16 has kernels of its own, and a factor over fp16; or neither.
grep -q '"bf16_products": null' out && factor=null || factor='[0-9]'
grep -q "\"bf16_over_fp16\": $factor" out || complain "$words: expected bf16_over_fp16 $factor"

# A directory of the build is on a disk unless the build lies in memory.
disk=$(dirname "$zero")
names=$(ls -A "$disk" | wc -l)
if [ "$(stat -f -c %T "$disk")" != tmpfs ]; then
    runs 0 info --offload "$disk"
    for word in 'file system' 'free  *[0-9.]* [GM]iB' transfers 'alignment' '^file '; do
        grep -q "$word" out || complain "$words: expected $word"
    done
    grep -q 'B/s' out && complain "$words: expected no rates without --trial"
    runs 0 info --offload "$disk" --json
    is_json out
    for key in directory file_system free_bytes direct memory_align_bytes offset_align_bytes \
        nameless; do
        says "\"$key\": " out
    done
    says '"trial": null' out
    runs 0 info --offload "$disk" --trial --json
    is_json out
    for key in file_bytes threads read_bytes_per_second write_bytes_per_second \
        mixed_bytes_per_second; do
        grep -q "\"$key\": [1-9]" out || complain "$words: expected $key, not 0"
    done
    grep -qE '"disk": "[0-9.]+[GMK]?,[0-9.]+[GMK]?"' out || complain "$words: no --disk"
    no_mpi info --offload "$disk" >out 2>err || complain "zero info --offload needs MPI"
    [ "$(ls -A "$disk" | wc -l)" -eq "$names" ] || complain "zero info --offload left a file"
fi
[ "$(stat -f -c %T /dev/shm)" = tmpfs ] &&
    refuses 2 '/dev/shm lies in memory' 0 info --offload /dev/shm
refuses 3 'No such file or directory' 0 info --offload no/such/directory
refuses 2 'trial needs --offload DIR' 0 info --trial
refuses 2 'give --offload or --defaults, not both' 0 info --offload . --defaults tiny

no_mpi --version >out 2>err || complain "zero --version needs MPI"
no_mpi train --help >out 2>err || complain "zero train --help needs MPI"
no_mpi info --json >out 2>err || complain "zero info --json needs MPI"
no_mpi compare --help >out 2>err || complain "zero compare --help needs MPI"
no_mpi generate --help >out 2>err || complain "zero generate --help needs MPI"
words='zero generate --help'
narrow 80 out
no_mpi generate nowhere --stage 99 >out 2>err
[ $? -eq 2 ] || complain "zero generate --stage 99 needs MPI"
no_mpi train --steps -1 >out 2>err
[ $? -eq 2 ] || complain "zero train --steps -1 needs MPI"

# With several ranks the help is printed once.
"$zero" train --help >alone
for words in --version --help 'train --help' 'generate --help' 'info --json'; do
    "$zero" $words >alone
    on 2 "$zero" $words >out 2>err || complain "zero $words on 2 ranks failed"
    [ "$(wc -l <alone)" -eq "$(wc -l <out)" ] || complain "zero $words on 2 ranks: not printed once"
done

run 0
exits 2
says 'no command given' err
says 'zero train' out
refuses 2 "did you mean 'train'" 0 trian
refuses 2 "no command 'nonsense'" 0 nonsense
refuses 4 'here' 0 report here
refuses 2 'did you mean --json' 0 info --jsno

# Output to a full disk fails.
if [ -c /dev/full ]; then
    "$zero" --help >/dev/full 2>err
    [ $? -ne 0 ] || complain "zero --help to a full disk ended with exit code 0"
    says 'standard output' err
fi
finish
