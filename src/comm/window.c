#define _GNU_SOURCE /* O_TMPFILE */
#include "comm/window.h"

#include <fcntl.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "comm/control.h"
#include "comm/deadline.h"
#include "comm/family.h"
#include "comm/mpi_error.h"
#include "comm/signal.h"

#define PLACE     "/dev/shm"
#define MAX_BYTES ((size_t)1 << 46)

/* The file as the node's first rank has it, and how to recognise it: with ranks in
 * containers, the same path may lead elsewhere. */
typedef struct {
    int64_t process, file; /* -1: it could not be made */
    uint64_t device, inode;
} ticket;

static zero_status lay_out(zero_window *w, int n, const size_t bytes[])
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    ZERO_TRY(zero_new(&w->offset, n + 1, "arrays of a window"));
    w->n_arrays = n;
    for (int i = 0; i < n; i++) {
        size_t ranks = (size_t)w->local_size;
        ZERO_INVALID_IF(
            bytes[i] > MAX_BYTES / ranks || w->bytes > MAX_BYTES,
            "a window of arrays up to %zu bytes for each of %zu ranks: expected "
            "no more than 2^46 in all",
            bytes[i], ranks);
        w->offset[i] = w->bytes;
        w->bytes += zero_round_up_size(bytes[i] * ranks, page);
    }
    if (w->bytes == 0) w->bytes = page;
    return ZERO_OK;
}

static zero_status no_sharing(const zero_window *w, const char *what, int error)
{
    struct statvfs fs;
    double free_mib =
        statvfs(PLACE, &fs) == 0 ? (double)fs.f_bavail * (double)fs.f_frsize / 0x1p20 : 0.0;
    return zero_fail(
        ZERO_ERR_ENV,
        "the %d ranks of a node cannot share %.1f MiB in " PLACE
        " (%s: %s; %.1f MiB are free there): enlarge it (mount -o remount,size=..., docker "
        "run --shm-size=...) or use --collectives p2p",
        w->local_size, (double)w->bytes / 0x1p20, what, strerror(error), free_mib);
}

static zero_status create(const zero_window *w, int *file, ticket *t)
{
    struct stat info;
    *file = open(PLACE, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*file < 0) return no_sharing(w, "open", errno);
    if (ftruncate(*file, (off_t)w->bytes) != 0) return no_sharing(w, "ftruncate", errno);
    if (fstat(*file, &info) != 0) return no_sharing(w, "fstat", errno);
    *t = (ticket){.process = getpid(),
                  .file = *file,
                  .device = (uint64_t)info.st_dev,
                  .inode = (uint64_t)info.st_ino};
    return ZERO_OK;
}

static zero_status open_first_ranks(const zero_window *w, const ticket *t, int *file)
{
    char path[64];
    struct stat info;
    if (t->process < 0) return ZERO_OK; /* the first rank says why */
    zero_print(path, "/proc/%" PRId64 "/fd/%" PRId64, t->process, t->file);
    *file = open(path, O_RDWR | O_CLOEXEC);
    if (*file < 0) return no_sharing(w, path, errno);
    if (fstat(*file, &info) != 0) return no_sharing(w, "fstat", errno);
    if ((uint64_t)info.st_dev == t->device && (uint64_t)info.st_ino == t->inode)
        return ZERO_OK;
    return no_sharing(w, "another container's process has the number of rank 0's", ESRCH);
}

/* Memory reserved here cannot be missing later. */
static zero_status reserve(const zero_window *w, const size_t bytes[], int file)
{
    for (int i = 0; i < w->n_arrays; i++) {
        size_t at = w->offset[i] + bytes[i] * (size_t)w->local_rank;
        int error = bytes[i] > 0 ? posix_fallocate(file, (off_t)at, (off_t)bytes[i]) : 0;
        if (error != 0) return no_sharing(w, "posix_fallocate", error);
    }
    return ZERO_OK;
}

/* Every rank takes part in every message, even after a failure. */
static zero_status make(zero_window *w, zero_comm *comm, const size_t bytes[], int *file)
{
    ticket t = {.process = -1, .file = -1};
    zero_status st = ZERO_OK;
    if (w->local_rank == 0) st = create(w, file, &t);
    zero_deadline *deadline = zero_family_whole(comm)->deadline;
    zero_deadline_begin(deadline, "sharing memory on a node");
    int code = MPI_Bcast(&t, (int)sizeof t, MPI_BYTE, 0, comm->node);
    zero_deadline_end(deadline);
    ZERO_TRY(zero_mpi_check(code, "MPI_Bcast on a node"));
    if (w->local_rank > 0) st = open_first_ranks(w, &t, file);
    if (st == ZERO_OK && t.process >= 0) st = reserve(w, bytes, *file);
    ZERO_TRY(zero_agree(comm, st)); /* nobody may touch a page that is not reserved */
    void *base = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    if (base != MAP_FAILED) w->base = base;
    return zero_agree(comm, w->base ? ZERO_OK : no_sharing(w, "mmap", errno));
}

static zero_status make_window(zero_window *window, zero_comm *comm, int n,
                               const size_t bytes[])
{
    int file = -1;
    ZERO_AT_END(zero_window_destroy)
    zero_window new = {
        .local_rank = comm->layout.local_of[comm->rank],
        .local_size = zero_layout_local_size(&comm->layout, comm->rank),
    };
    ZERO_TRY(zero_agree(comm, lay_out(&new, n, bytes)));
    zero_status st = make(&new, comm, bytes, &file);
    if (file >= 0) close(file);
    ZERO_TRY(st);
    ZERO_GIVE(window, new);
    return ZERO_OK;
}

zero_status zero_window_init(zero_window *window, zero_comm *comm, int n,
                             const size_t bytes[])
{
    /* Once per group. Collectives in flight on it signal only once all ranks have the
     * counters. */
    const size_t row = ZERO_SIGNALS * sizeof(uint64_t);
    if (!comm->signals) {
        ZERO_FREED zero_window *signals = NULL;
        ZERO_TRY(zero_agree(comm, zero_new(&signals, 1, "a window of signals")));
        ZERO_TRY(make_window(signals, comm, 1, &row));
        comm->signals = zero_window_array(signals, 0);
        ZERO_GIVE(&comm->signal_window, signals);
    }
    return make_window(window, comm, n, bytes);
}

void zero_window_destroy(zero_window *window)
{
    if (window->base) munmap(window->base, window->bytes);
    free(window->offset);
    *window = (zero_window){0};
}

char *zero_window_array(const zero_window *window, int i)
{
    return window->base + window->offset[i];
}
