# levels.sh COMMAND...: runs it as a rank of a job whose ranks have different CPUs: odd ranks have the
# kernels of x86-64-v3, the others those of plain x86-64. For a build without ZERO_NATIVE.
rank=${OMPI_COMM_WORLD_RANK:-0}
level=base
[ $((rank % 2)) -eq 0 ] || level=v3
ZERO_CPU_LEVEL=$level exec "$@"
