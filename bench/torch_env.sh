#!/bin/sh
# torch_env.sh - sourced: the environment in which PyTorch is fastest on CPUs (effects: bench/results).

# Waiting threads sleep. malloc keeps its memory, in huge pages, and does not request the large
# arrays of every step anew. Version 1 uses AVX2 in its own loops unless told to use AVX-512.
kept=8589934592
tunables=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=$kept:glibc.malloc.trim_threshold=$kept
loops=
! grep -qw avx512bw /proc/cpuinfo || loops=ATEN_CPU_CAPABILITY=avx512

torch_env() { # torch_env THREADS COMMAND...
    n=$1
    shift
    # shellcheck disable=SC2086 # no word if there is no AVX-512
    env $loops OMP_WAIT_POLICY=passive OMP_NUM_THREADS="$n" OPENBLAS_NUM_THREADS="$n" \
        MKL_NUM_THREADS="$n" GLIBC_TUNABLES="$tunables" "$@"
}
