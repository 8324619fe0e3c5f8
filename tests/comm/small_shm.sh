# small_shm.sh COMMAND...: runs the command with a /dev/shm of 1 MiB, as in containers.
alone='mount -t tmpfs -o size=1m tmpfs /dev/shm'
if ! unshare -m sh -c "$alone" 2>/dev/null; then
    echo "skipped: a private /dev/shm needs root on Linux (unshare -m, mount)"
    exit 77
fi
# Open MPI's own files would not fit. The first name is that of Open MPI 4, the second that of 5.
export OMPI_MCA_btl_vader_backing_directory=/tmp OMPI_MCA_btl_sm_backing_directory=/tmp
exec unshare -m sh -c "$alone && exec \"\$@\"" _ "$@"
