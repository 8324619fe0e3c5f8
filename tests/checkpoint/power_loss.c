/* power_loss.c - the writer of checkpoints, and a power loss after each of its calls.
 *
 *     power_loss LOG WORK SEED STATES [CALL TEXT]
 *
 * LOG is storage_shim.c's, of runs that began with an empty directory and wrote checkpoints to
 * "ckpt" in it. After each call that changes something, WORK gets the states of a disk whose power
 * fails there (disk_model.h; STATES random ones and the plain ones), and the program's reader looks
 * for checkpoints in them. The law:
 *
 *   - every published checkpoint verifies;
 *   - the newest is not older than the last announced one.
 *
 * At the end WORK/end is the directory as the log left it, to be compared with the real one. They
 * differ if the writer changes something by calls that are not in the log.
 *
 * With CALL and TEXT the calls of that name on paths that contain the text are skipped, as if the
 * writer forgot them. Then the law must break: this shows that the test would notice. */
#include "checkpoint/disk_model.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/list.h"
#include "checkpoint/read.h"

#define CALLS      65536
#define COMPLAINTS 3 /* are enough */
#define SEEN       (1 << 20)

typedef struct {
    disk_call calls[CALLS];
    int n;
    uint64_t seen[SEEN]; /* fingerprints, open addressing; 0: free */
    char work[PATH_MAX / 2];
    int64_t announced; /* 0: nothing yet */
    long states, distinct, broken;
} power_loss;

/* ---- the log ---- */

static bool forgotten(const disk_call *c, char **words)
{
    return words && strcmp(c->name, words[0]) == 0 && strstr(c->path, words[1]);
}

static void read_log(power_loss *p, const char *path, char **forget)
{
    char line[2 * DISK_PATH + 256], fault[32];
    int left_out = 0;
    FILE *file = fopen(path, "r");
    if (!file) disk_stop("%s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file)) {
        disk_call *c = &p->calls[p->n];
        if (p->n == CALLS - 1) disk_stop("%s: more than %d calls", path, CALLS);
        if (sscanf(line, "%d %ld %15s %255s %255s %ld %ld %ld %d %31s", &c->rank,
                   &c->number, c->name, c->path, c->other, &c->a, &c->b, &c->at, &c->error,
                   fault) != 10)
            disk_stop("%s: not of the shim: %s", path, line);
        left_out += forgotten(c, forget);
        p->n += !forgotten(c, forget);
    }
    fclose(file);
    if (forget && left_out == 0) disk_stop("%s: no %s of %s", path, forget[0], forget[1]);
}

/* ---- one state ---- */

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void make_empty(const char *path)
{
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        disk_stop("%s: cannot be removed: %s", path, strerror(errno));
    if (mkdir(path, 0700) != 0) disk_stop("%s: cannot be made: %s", path, strerror(errno));
}

/* NULL, or why the checkpoint cannot be read. */
static const char *verify(const char *dir, int64_t step)
{
    char name[ZERO_CHECKPOINT_NAME], path[PATH_MAX + ZERO_CHECKPOINT_NAME];
    zero_checkpoint c = {0};
    zero_checkpoint_name(step, name);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    zero_status st = zero_checkpoint_open(path, NULL, &c);
    if (st == ZERO_OK) st = zero_checkpoint_verify(&c);
    zero_checkpoint_close(&c);
    return st == ZERO_OK ? NULL : zero_last_error();
}

/* Owned by the caller; an empty list if the directory itself is lost. */
static int64_t *list(const char *path, int *n)
{
    int64_t *steps = NULL;
    zero_storage_dir dir;
    *n = 0;
    if (zero_storage_open(path, &dir) != ZERO_OK) return NULL;
    if (zero_checkpoint_list(&dir, &steps, n) != ZERO_OK)
        disk_stop("%s", zero_last_error());
    zero_storage_close(&dir);
    return steps;
}

/* NULL, or how the law is broken. */
static const char *judge(const power_loss *p)
{
    char dir[PATH_MAX];
    const char *broken = NULL;
    int n;
    snprintf(dir, sizeof dir, "%s/ckpt", p->work);
    int64_t *steps = list(dir, &n);
    if (p->announced > (n > 0 ? steps[n - 1] : 0)) broken = "all that remains is older";
    for (int i = 0; i < n && !broken; i++) broken = verify(dir, steps[i]);
    free(steps);
    return broken;
}

static bool is_new(power_loss *p, uint64_t fingerprint)
{
    /* A state may have what was announced then and lack what is announced now. */
    fingerprint = (fingerprint ^ (uint64_t)p->announced * 0x9e3779b97f4a7c15u) | 1;
    size_t i = fingerprint >> 44;
    while (p->seen[i] != 0 && p->seen[i] != fingerprint) i = (i + 1) % SEEN;
    if (p->seen[i] == fingerprint) return false;
    p->seen[i] = fingerprint;
    p->distinct++;
    return true;
}

static void check(power_loss *p, const disk *d, int call, disk_loss loss, uint64_t seed)
{
    static const char *const words[DISK_LOSSES] = {"everything kept", "everything lost",
                                                   "data lost to zeros", "files shortened",
                                                   "a random loss"};
    const disk_call *c = &p->calls[call];
    p->states++;
    if (!is_new(p, disk_fingerprint(d, loss, seed))) return;
    make_empty(p->work);
    disk_write_out(d, loss, seed, p->work);
    const char *broken = judge(p);
    if (!broken) return;
    p->broken++;
    if (p->broken > COMPLAINTS) return;
    printf("FAILED: power lost after line %d (rank %d: %s %s), %s (%" PRIu64
           "), step %" PRId64 " announced: %s\n",
           call + 1, c->rank, c->name, c->path, words[loss], seed, p->announced, broken);
}

/* ---- all of them ---- */

static bool changes_something(const disk_call *c)
{
    static const char *const names[] = {"open",  "mkdir",  "write",  "allocate",
                                        "fsync", "rename", "unlink", "announce"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(c->name, names[i]) == 0) return c->error == 0;
    return false;
}

static void walk(power_loss *p, disk *d, FILE *data, uint64_t seed, uint64_t random)
{
    for (int i = 0; i < p->n && p->broken < COMPLAINTS; i++) {
        const disk_call *c = &p->calls[i];
        disk_apply(d, c, data);
        if (strcmp(c->name, "announce") == 0) p->announced = c->a;
        if (!changes_something(c)) continue;
        for (int loss = 0; loss < DISK_RANDOM; loss++) check(p, d, i, (disk_loss)loss, 0);
        for (uint64_t r = 0; r < random; r++)
            check(p, d, i, DISK_RANDOM, seed + (uint64_t)i * random + r + 1);
    }
}

static FILE *open_data(const char *log)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.data", log);
    FILE *data = fopen(path, "rb");
    if (!data) disk_stop("%s: %s", path, strerror(errno));
    return data;
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 7) disk_stop("LOG WORK SEED STATES [CALL TEXT]");
    power_loss *p = calloc(1, sizeof *p);
    if (!p) disk_stop("no memory");
    snprintf(p->work, sizeof p->work, "%s/state", argv[2]);
    read_log(p, argv[1], argc == 7 ? argv + 5 : NULL);
    FILE *data = open_data(argv[1]);
    disk *d = disk_new();
    walk(p, d, data, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));

    printf("%d calls, step %" PRId64
           " announced last; %ld states, %ld of them different, %ld bad\n",
           p->n, p->announced, p->states, p->distinct, p->broken);
    make_empty(p->work);
    snprintf(p->work, sizeof p->work, "%s/end", argv[2]);
    make_empty(p->work);
    if (p->broken == 0) disk_write_out(d, DISK_KEPT, 0, p->work);
    int code = p->broken > 0;
    fclose(data);
    disk_free(d);
    free(p);
    return code;
}
