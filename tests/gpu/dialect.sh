# dialect.sh ROOT CC: what compiles with the emulator's headers compiles with CUDA's, too, where they
# are installed: functions, their types, constants, and kernels that use each word of launch.h.
root=$1
cc=$2
nvcc=$(command -v nvcc) || nvcc=/usr/local/cuda/bin/nvcc
if [ ! -x "$nvcc" ]; then
    echo "skipped: there is no nvcc"
    exit 77
fi
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include
[ -f "$cuda/cublas_v2.h" ] || { echo "skipped: CUDA has no cublas_v2.h in $cuda"; exit 77; }

set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$cc" -std=c11 -Wall -Werror -Wno-unused -isystem "$cuda" -fsyntax-only "$root/tests/gpu/signatures.c"
"$nvcc" -std=c++17 -arch=sm_80 -Werror all-warnings -I "$root" -I "$root/tests" \
    -c "$root/tests/gpu/emulated_right.cu" -o "$folder/right.o"
