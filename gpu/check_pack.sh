# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # names that check.sh and its other files share
# check.sh pack: programs and libraries in one folder. Read by check.sh.

# libraries FILE...: paths of the libraries that they need, without the C library's and CUDA's,
# which have to fit the machine's kernel and driver.
libraries() {
    for file in "$@"; do ldd "$file" 2>/dev/null; done |
        sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
        grep -v -E '/(ld-linux|libc|libm|libdl|librt|libpthread|libcublas|libcublasLt|libcuda)[.-]'
}

# mpi_path KEY: a folder of this Open MPI.
mpi_path() {
    ompi_info --parsable --path "$1" | sed -n "s/^path:$1://p" | sed -n 1p
}

# The folders keep their names below the pack's root, so that OPAL_PREFIX moves them all at once.
pack_mpi() {
    command -v ompi_info >/dev/null || stop 3 "pack takes Open MPI along; ompi_info was not found"
    for key in pkglibdir pkgdatadir sysconfdir; do
        from=$(mpi_path $key)
        mkdir -p "$to$from"
        cp -RL "$from/." "$to$from"
    done
    for program in mpirun orted; do
        mkdir -p "$to$(mpi_path bindir)"
        cp -L "$(command -v $program)" "$to$(mpi_path bindir)/$program"
    done
    # Fabrics and OpenSHMEM need large libraries, and a single machine needs neither.
    for unwanted in ofi ucx psm openib spml memheap sshmem scoll atomic; do
        rm -f "$to$(mpi_path pkglibdir)"/mca_*"$unwanted"*
    done
    # PMIx is Open MPI's or the system's; its plugins are found by a variable of its own.
    for folder in /usr/lib/*/pmix2/lib/pmix /usr/lib/*/pmix2/share; do
        [ -d "$folder" ] || continue
        mkdir -p "$to$folder"
        cp -RL "$folder/." "$to$folder"
    done
    # shellcheck disable=SC2046 # paths without blanks
    cp -L $(libraries $(find "$to" -name '*.so*' -type f) "$to$(mpi_path bindir)"/*) "$to/lib"
    cat >"$to/mpi.env" <<EOF
mpi_prefix=$(mpi_path prefix)
mpi_bin=$(mpi_path bindir)
mpi_libraries=$(mpi_path pkglibdir)
mpi_data=$(mpi_path pkgdatadir)
mpi_settings=$(mpi_path sysconfdir)
mpi_pmix=$(ls -d /usr/lib/*/pmix2 2>/dev/null)
EOF
}

pack() {
    source=$(dirname "$here")
    [ -f "$source/CMakeLists.txt" ] || stop 2 "pack is for a checkout, not for a pack"
    to=${1:-$source/build/gpu-check}
    build=$source/build/with-cuda
    mkdir -p "$build"
    cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DZERO_NATIVE=OFF \
        -DZERO_CUDA=ON ${ARCH:+"-DCMAKE_CUDA_ARCHITECTURES=$ARCH"} >"$build.log" 2>&1 || {
        cat "$build.log"
        stop 3 "the build with CUDA could not be configured"
    }
    cmake --build "$build" --parallel "$(nproc)" --target zero bench_kernels zero_cuda \
        test_kernels_on_gpu test_kernels_exact_on_gpu test_kernels_masks_on_gpu \
        test_kernels_texts_on_gpu \
        test_attention_kernels_on_gpu \
        test_fused_on_gpu test_cuda_backend_on_gpu test_sharing_on_gpu || stop 1 "the build failed"
    # For trying this script: DEVICE=cuda-emulated.
    cmake --build "$build" --parallel "$(nproc)" --target zero_cuda_emulated ||
        echo "there is no emulated device in this pack"
    rm -rf "$to"
    mkdir -p "$to/bin" "$to/lib" "$to/tests"
    cp "$build/zero" "$build/bench_kernels" "$build/libzero_cuda.so" "$to/bin"
    cp "$build"/libzero_cuda_emulated.so "$to/bin" 2>/dev/null || :
    cp "$build"/tests/gpu/*_on_gpu "$to/tests"
    cp "$here"/check*.sh "$source"/bench/torch_gpt2.py "$source"/bench/torch_attention.py "$to"
    # shellcheck disable=SC2046 # paths without blanks
    cp -L $(libraries "$to"/bin/* "$to"/tests/*) "$to/lib"
    pack_mpi
    echo "$to: $(du -sh "$to" | cut -f1). Copy it to a machine with a GPU, and there:"
    echo "  sh $(basename "$to")/check.sh all"
}
