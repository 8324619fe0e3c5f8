# check.sh SOURCE: the parts of gpu/check.sh about speed and memory, with programs of known speed in the
# place of ours, of PyTorch and of the driver: verdicts, what cannot run, and the file of results.
set -u
work=$(mktemp -d) && mkdir "$work/bin" && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
cp "$1"/gpu/check*.sh "$1"/bench/torch_*.py .
failed=0

complain() {
    echo "check.sh: $*" >&2
    failed=1
}

says() { # says TEXT FILE: blanks count as one
    tr -s ' ' <"$2" | grep -qF -e "$1" || { complain "expected \"$1\" in:" && cat "$2" >&2; }
}

# ---- the programs ----

cat >mpi.env <<'END'
mpi_prefix='' mpi_bin=/bin mpi_libraries='' mpi_data='' mpi_settings='' mpi_pmix=''
END
cat >bin/mpirun <<'END'
#!/bin/sh
until [ "${1#/}" != "$1" ]; do shift; done
exec "$@"
END
# A plan needs 5000 MiB of the GPU, and $HOST_KIB of the host for each layer; 40 layers fit.
cat >bin/zero <<'END'
#!/bin/sh
layers=48 offload=device exchange=ipc metrics=
for word in "$@"; do
    case $last in
    --layers) layers=$word ;;
    --offload) offload=$word ;;
    --device-exchange) exchange=$word ;;
    --metrics) metrics=$word ;;
    esac
    last=$word
done
case $1 in
--version) echo zero 9.8.7 ;;
plan)
    echo "{\"device\": {" && echo "\"needed\": $((5000 * 1048576))" && echo "},"
    echo "\"host\": {" && echo "\"needed\": $((layers * HOST_KIB * 1024))" && echo "},"
    echo "\"fits\": {" && echo "\"layers\": 40" && echo "}}"
    ;;
train)
    [ -z "${HANGS:-}" ] || sleep 60
    [ -z "${NO_ROOM:-}" ] || { echo "zero: 9 MiB needed, but 1 MiB are available" && exit 3; }
    case $* in # the runs that are watched
    *--device-exchange*) ;;
    *"--steps 3 "*) busy 5010 ;;
    esac
    seconds=$OURS digest=abc123 copied=0
    [ "$offload" = device ] || seconds=$ON_HOST
    [ "$exchange" = ipc ] || seconds=$STAGED copied=4096
    [ "$offload$exchange" = deviceipc ] || digest=$OTHER_DIGEST
    for step in 1 2 3 4 5; do
        echo "{\"step\":$step,\"loss\":1.5,\"step_seconds\":$seconds,\"exposed_seconds\":$EXPOSED,}"
    done >"$metrics"
    echo "{\"planned_peak_bytes\":7,\"measured_peak_bytes\":$PEAK,\"resident_peak_bytes\":1000," \
        "\"host_planned_peak_bytes\":8,\"host_measured_peak_bytes\":8," \
        "\"bytes_fetched\":$copied,\"bytes_stored\":$copied}" >>"$metrics"
    echo "  digest        $digest"
    ;;
esac
END
cat >bin/bench_kernels <<'END'
#!/bin/sh
for name in adamw round accumulate "sum of squares" layernorm "layernorm backward" "bias, gelu" \
    "bias, gelu backward" "add branch" cross-entropy "products of matrices" attention \
    "attention backward"; do
    printf '%-22s%12s%10s%10s %-8s%8s%12s%9s\n' "$name" 10.0 900.0 1000.0 GB/s "$SHARE" 1.0 1.0
done
echo "products of a block with what follows them: 1.000 ms, $FUSED times the rate of two calls"
END
cat >bin/python <<'END'
#!/bin/sh
case $1 in
*torch_attention*) echo "{\"attention\": $THEIRS.0, \"attention backward\": 9.0}" ;;
*torch_gpt2*)
    [ -z "${NO_TORCH:-}" ] || { echo "No module named 'torch'" && exit 1; }
    case $* in *"--steps 2 "*) busy 6000 ;; esac
    echo '{"torch": "9.8.7", "step_seconds": 0.9, "loss": 1}'
    ;;
*) echo PyTorch 9.8.7 ;;
esac
END
# busy MIB: takes the GPU's memory until the driver has told it, or for 4 seconds.
cat >bin/busy <<'END'
#!/bin/sh
rm -f "$BUSY.seen"
echo "$1" >"$BUSY"
for _ in $(seq 200); do
    [ ! -e "$BUSY.seen" ] || break
    sleep 0.02
done
rm "$BUSY"
END
# The GPU has 1000 MiB in use, and what the running program takes.
cat >bin/nvidia-smi <<'END'
#!/bin/sh
case $* in
*memory.used*)
    taken=$(cat "$BUSY" 2>/dev/null)
    echo $((1000 + ${taken:-0}))
    [ -z "$taken" ] || touch "$BUSY.seen"
    ;;
*memory.free*) echo 8000 ;;
*) echo "Great GPU 7" ;;
esac
END
chmod +x bin/*
export PATH="$work/bin:$PATH" PYTHON="$work/bin/python" BUSY="$work/busy-gpu"
unset GPUS DEVICE
limits="speed attention shares large fit ipc"

# ---- all is well ----

export OURS=1.0 ON_HOST=1.1 STAGED=2.0 OTHER_DIGEST=abc123 PEAK=7 SHARE=0.99 FUSED=1.10 THEIRS=8 HOST_KIB=1 \
    EXPOSED=0.01
# shellcheck disable=SC2086 # words
sh check.sh $limits >out 2>&1 || complain "exit code $?"
for text in 'gpt2, batch 16: 0.900 of PyTorch' 'gpt2: memory 5010 MiB, PyTorch'"'"'s 6000 MiB' \
    'gpt2, one rank: 0.990 of a step' \
    'gpt2-xl: GPU memory taken 5010 MiB, planned 5000 MiB' 'attention: 0.800 of' \
    'attention backward: 0.900 of' 'shares, fp16' 'products with what follows them, bf16: 1.10 times' \
    'large-host: digest abc123' 'optimizer on the host: 0.909 of' 'fit: peaks as planned, 7 bytes' \
    'ipc: nothing between host and device' 'ipc: 2.000 of'; do
    says "ok $text" out
done
says '40 layers fit' out
file=$(echo results/*-great-gpu-7.md)
says "$(date +%Y)-" "$file"
says '## attention' "$file"
says 'sh check.sh ipc' "$file"
says 'ok ipc: 2.000 of' "$file"
grep -q '^$' out && complain "an empty line"

# ---- nothing is ----

export OURS=1.2 ON_HOST=1.5 STAGED=1.1 OTHER_DIGEST=abc124 PEAK=6 SHARE=0.84 FUSED=0.95 THEIRS=4 EXPOSED=0.1
# The host has room for 2 to 7 layers.
HOST_KIB=$(awk '/MemAvailable/ { printf "%.0f", $2 / 8 }' /proc/meminfo)
# shellcheck disable=SC2086 # words
sh check.sh $limits >out 2>&1
[ $? -eq 1 ] || complain "expected exit code 1"
for text in 'gpt2, batch 16: 0.750 of PyTorch' 'gpt2, one rank: 0.917 of a step' \
    'attention: 0.400 of' 'shares, bf16: ' \
    'products with what follows them, fp16: 0.95 times' 'large-host: digest abc124' \
    'optimizer on the host: 0.800 of' 'fit: other peaks' \
    'exchange-ipc: digest abc123, but' 'ipc: 0.917 of'; do
    says "FAILED $text" out
done
grep -q '^  *[2-7] layers fit' out || complain "expected fewer layers: $(grep layers out)"
says 'shares, fp16: adamw 0.84 < 0.85; round 0.84' out
[ "$(grep -c '^## speed' "$file")" -eq 2 ] || complain "expected both runs in $file"

# ---- what cannot run ----

export EXPOSED=0.01
NO_TORCH=1 sh check.sh speed >out 2>&1
[ $? -eq 3 ] || complain "expected exit code 3"
says "not run PyTorch: No module named 'torch'" out
NO_ROOM=1 sh check.sh large ipc >out 2>&1
[ $? -eq 3 ] || complain "expected exit code 3"
says 'not run large-device: zero: 9 MiB needed, but 1 MiB are available' out
# A step that hangs ends, and so does a part for which no time is left.
HANGS=1 LIMIT=2 sh check.sh large ipc >out 2>&1
[ $? -eq 1 ] || complain "expected exit code 1"
says 'FAILED large-device: zero: ended after' out
says 'not run ipc: no time is left of 2 s' out
[ -s results/logs/large-device.txt ] || complain "the log of a step that hung was not kept"
RESULTS=elsewhere sh check.sh ipc >out 2>&1
grep -q 'ipc: ' elsewhere/*.md || complain "RESULTS has no results"
sh check.sh nonsense >out 2>&1
[ $? -eq 2 ] || complain "expected exit code 2"
says "there is no part 'nonsense'" out
exit $failed
