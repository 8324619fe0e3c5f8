#include "io/disk_trial.h"

#include <stdatomic.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/helper_thread.h"
#include "io/scratch_place.h"
#include "io/system_call.h"

#define ROUNDS        3
#define SLICE_SECONDS 0.11 /* of one kind of work in one round */
#define FIRST_SECONDS 1.0  /* at most, to write the file for the first time */

/* ---- moving blocks ---- */

typedef struct {
    const zero_scratch_file *file;
    const zero_disk_load *load;
    double end;        /* by zero_clock_seconds() */
    atomic_llong next; /* block, counted over all repetitions */
    atomic_bool has_failed;
} movement;

typedef struct {
    movement *movement;
    char *block; /* [ZERO_DISK_BLOCK] */
    pthread_t thread;
    uint64_t bytes;
    zero_failure failure;
} mover;

static void *run(void *arg)
{
    mover *m = arg;
    movement *all = m->movement;
    const zero_disk_load *load = all->load;
    zero_status st = ZERO_OK;
    while (st == ZERO_OK && !all->has_failed) {
        long long k = atomic_fetch_add(&all->next, 1);
        bool is_late = k >= load->threads && zero_clock_seconds() >= all->end;
        if (is_late || (k >= load->n_blocks && !load->repeats)) break;
        uint64_t at = (uint64_t)(k % load->n_blocks) * ZERO_DISK_BLOCK;
        if (load->work != ZERO_DISK_WRITE)
            st = zero_scratch_file_read(all->file, at, m->block, ZERO_DISK_BLOCK);
        if (st == ZERO_OK && load->work != ZERO_DISK_READ)
            st = zero_scratch_file_write(all->file, at, m->block, ZERO_DISK_BLOCK);
        m->bytes += (load->work == ZERO_DISK_MIXED ? 2 : 1) * ZERO_DISK_BLOCK;
    }
    if (st != ZERO_OK) all->has_failed = true;
    m->failure = zero_failure_keep(st);
    return NULL;
}

zero_status zero_disk_move(const zero_scratch_file *file, const zero_disk_load *load,
                           zero_disk_moved *moved)
{
    ZERO_INVALID_IF(load->threads < 1 || load->threads > ZERO_DISK_THREADS ||
                        load->n_blocks < load->threads || !(load->seconds >= 0.0) ||
                        (uint64_t)load->n_blocks > file->bytes / ZERO_DISK_BLOCK,
                    "%s: %d threads move %d blocks of a scratch file: expected 1 to %d "
                    "threads, and as many blocks to %d",
                    file->directory, load->threads, load->n_blocks, ZERO_DISK_THREADS,
                    (int)(file->bytes / ZERO_DISK_BLOCK));
    movement m = {.file = file, .load = load};
    ZERO_FREED mover *movers = NULL;
    ZERO_AT_END(zero_arena_destroy) zero_arena arena = {0};
    ZERO_TRY(zero_new(&movers, load->threads, "threads"));
    /* Memory of a run is of the same kind: huge pages make requests of fewer pieces. */
    ZERO_TRY(zero_arena_init(&arena, (size_t)load->threads * ZERO_DISK_BLOCK));
    for (int i = 0; i < load->threads; i++) {
        char *block = arena.base + (size_t)i * ZERO_DISK_BLOCK;
        movers[i] = (mover){.movement = &m, .block = block};
        /* Bytes that no disk compresses or finds twice. */
        uint64_t x = ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15) + 1,
                 *words = (uint64_t *)(void *)block;
        for (size_t k = 0; k < ZERO_DISK_BLOCK / sizeof *words; k++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            words[k] = x;
        }
    }
    double start = zero_clock_seconds();
    m.end = start + load->seconds;
    int n = load->threads;
    int started = 0, error = 0;
    while (started < n && error == 0) {
        error = zero_helper_thread_start(&movers[started].thread, 0, run, &movers[started]);
        started += error == 0;
    }
    if (error != 0) movers->movement->has_failed = true; /* the others stop */
    for (int i = 0; i < started; i++) pthread_join(movers[i].thread, NULL);
    ZERO_FAIL_IF(error != 0, ZERO_ERR_ENV, "cannot start thread %d of %d for a disk: %s",
                 started + 1, n, strerror(error));
    int k = 0;
    while (k < n - 1 && movers[k].failure.status == ZERO_OK) k++;
    ZERO_TRY(zero_failure_restore(&movers[k].failure));
    *moved = (zero_disk_moved){.seconds = zero_clock_seconds() - start};
    for (int i = 0; i < load->threads; i++) moved->bytes += movers[i].bytes;
    return ZERO_OK;
}

/* ---- the trial ---- */

static zero_status choose_blocks(const char *directory, int *n)
{
    zero_scratch_place place;
    ZERO_TRY(zero_scratch_place_read(directory, &place));
    uint64_t blocks = place.bytes_free / 2 / ZERO_DISK_BLOCK;
    *n = blocks < ZERO_DISK_TRIAL_BLOCKS ? (int)blocks : ZERO_DISK_TRIAL_BLOCKS;
    ZERO_FAIL_IF(*n < ZERO_DISK_LEAST_BLOCKS, ZERO_ERR_ENV,
                 "%s: %.1f MiB are free there: expected %.1f MiB or more for a trial, "
                 "which takes at most half of them",
                 directory, (double)place.bytes_free / 0x1p20,
                 2.0 * ZERO_DISK_LEAST_BLOCKS * (double)ZERO_DISK_BLOCK / 0x1p20);
    return ZERO_OK;
}

zero_status zero_disk_trial(const char *directory, zero_disk_rates *rates)
{
    int n;
    double found[3];
    ZERO_AT_END(zero_scratch_file_close) zero_scratch_file file = {0};
    ZERO_TRY(choose_blocks(directory, &n));
    uint64_t bytes = (uint64_t)n * ZERO_DISK_BLOCK;
    ZERO_TRY(zero_scratch_file_open(directory, bytes, &file));
    /* The first write of reserved space is slower. On a slow disk it reaches only some
     * blocks. */
    zero_disk_moved first = {0};
    zero_disk_load write = {.work = ZERO_DISK_WRITE,
                            .n_blocks = n,
                            .threads = ZERO_DISK_TRIAL_THREADS,
                            .seconds = FIRST_SECONDS};
    ZERO_TRY(zero_disk_move(&file, &write, &first));
    /* Alternately, so that a burst of the disk or another program meets all alike. */
    zero_disk_moved sum[3] = {{0}};
    for (int i = 0; i < 3 * ROUNDS; i++) {
        zero_disk_moved moved;
        zero_disk_load load = {.work = (zero_disk_work)(i % 3),
                               .n_blocks = (int)(first.bytes / ZERO_DISK_BLOCK),
                               .threads = ZERO_DISK_TRIAL_THREADS,
                               .seconds = SLICE_SECONDS,
                               .repeats = true};
        ZERO_TRY(zero_disk_move(&file, &load, &moved));
        sum[i % 3].bytes += moved.bytes;
        sum[i % 3].seconds += moved.seconds;
    }
    for (int w = 0; w < 3; w++) found[w] = (double)sum[w].bytes / sum[w].seconds;
    *rates = (zero_disk_rates){.read = found[ZERO_DISK_READ],
                               .write = found[ZERO_DISK_WRITE],
                               .mixed = found[ZERO_DISK_MIXED],
                               .bytes = bytes};
    return ZERO_OK;
}
