# peers.sh BENCH-FOLDER: bench/peers.sh and peers_generate.sh with programs of known speed in the place
# of ours and of PyTorch: who races, who leaves, who is left out and why, and each number of the tables.
set -u
work=$(mktemp -d) && cp -r "$1" "$work/bench" && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
mkdir build bin
failed=0

complain() {
    echo "peers.sh: $*" >&2
    failed=1
}

says() { # says TEXT FILE: blanks count as one
    tr -s ' ' <"$2" | grep -qF -e "$1" || { complain "expected \"$1\" in:" && cat "$2" >&2; }
}

says_not() { # says_not TEXT FILE
    ! grep -qF -e "$1" "$2" || complain "expected no \"$1\""
}

# 2 ranks take 1 s for a step after the warm-up, 1 rank of 2 threads 0.8 s.
cat >bin/mpirun <<'END'
#!/bin/sh
ranks=$2
while [ "$1" != --metrics ]; do
    [ "$1" != --tp ] || tp=$2
    shift
done
for s in 9 9 $([ "$ranks" = 1 ] && echo 0.8 || echo 1.0); do echo "{\"step_seconds\":$s}"; done >"$2"
echo '{"resident_peak_bytes":104857600}' >>"$2"
echo "  machine       tp $tp"
END
cat >bin/python <<'END'
#!/bin/sh
case $* in
*__version__*) echo 9.8.7+cpu | cut -d+ -f1 ;;
*find_spec*) exit 1 ;;
*--versions*) echo torch 9.8.7 ;;
*torch_generate*--compile*) echo '{"step_seconds": 0.030}' ;;
*torch_generate*) echo '{"step_seconds": 0.020}' ;;
*"backend zero"*) echo "no MPI here" >&2 && exit 1 ;;
*"mode fsdp2"*) echo "no such process group" >&2 && exit 1 ;;
*"mode single"*) s=2.0 ;;
*"mode ddp"*) s=1.6 ;;
*"mode zero"*) s=2.1 ;;
esac
[ -z "${s:-}" ] ||
    echo "{\"step_seconds\": $s, \"least_seconds\": $s, \"resident_bytes\": [209715200, 1]}"
END
printf '#!/bin/sh\n' >build/zero
printf '#!/bin/sh\necho "bf16 32 100.0 - - 0.5"\n' >build/bench_generate
chmod +x bin/* build/*
PATH=$work/bin:$PATH
export PYTHON="$work/bin/python"

# ---- steps ----

CASES=gpt2-1024 DTYPES=bf16 sh bench/peers.sh 3 >out 2>err || complain "exit code $?"
says 'round 3 of 3: gpt2-1024 bf16 torch-9.8.7,ddp,compiled: 1.6000 s a step' err
says 'torch-9.8.7,single,compiled 3 2 2 512 200 2.50' out
says 'torch-9.8.7,zero,compiled 1 2.1 2.1' out
says 'ours,2-ranks,stage-2 3 1 1 1024 100 1.25' out
says 'gpt2-1024 bf16 torch-9.8.7,ddp,compiled 1.6 200 ours,2-ranks,stage-2 1 1.60 (1.60-1.60) 0.50 1.00' out
says 'gpt2-1024 bf16 ours,2-threads* 0.8 2.00 (2.00-2.00) 0.50 0.80' out
says 'fsdp2,compiled: left out: failed: no such process group' out
says 'fsdp2-mpi,compiled: left out: failed: no MPI here' out
says "deepspeed: left out: not installed for $PYTHON" out
says_not QUICK out

# One sequence is for one process of torch; two ranks of ours share its products.
CASES=gpt2-2048x1 DTYPES=fp32 MODES="single ddp" OURS=2x1 COMPILE=off sh bench/peers.sh 3 >out 2>err ||
    complain "exit code $?"
says 'gpt2-2048x1 ddp: left out: 2 processes cannot share 1 sequence' out
says 'torch-9.8.7,single 2 200 ours,2-ranks,tp* 1 2.00' out
says 'ours, fp32: tp 2' out

# ---- generation ----

CONTEXTS=32 DTYPES=bf16 sh bench/peers_generate.sh >out 2>err || complain "exit code $?"
says 'context-32 bf16 torch-9.8.7,plain 0.02 - ours,2-threads* 0.01 2.00' out
says 'round 1 of 3: context-32 bf16 torch-9.8.7,mask' err
says_not 'round 2 of 3: context-32 bf16 torch-9.8.7,mask' err

# ---- refusals ----

refuses() { # refuses TEXT COMMAND...
    text=$1
    shift
    ! env "$@" >out 2>err || complain "$*: expected an error"
    says "$text" err
}

refuses 'ROUNDS: expected a whole number from 3 on, not 2' sh bench/peers.sh 2
refuses 'ROUNDS: expected a whole number from 3 on, not 2' sh bench/peers_generate.sh 2
refuses 'ROUNDS: expected a whole number from 1 on, not x' QUICK=1 sh bench/peers.sh x
refuses 'no case gpt3: expected gpt2-1024' CASES=gpt3 sh bench/peers.sh
refuses 'no mode fast: expected' MODES=fast sh bench/peers.sh
refuses 'no mode fast: expected' MODES=fast sh bench/peers_generate.sh
QUICK=1 CASES=wide MODES=single sh bench/peers.sh 1 >out 2>err || complain "exit code $?"
says 'QUICK: not for quoting' out
rm build/zero
refuses 'zero is not built' sh bench/peers.sh
exit $failed
