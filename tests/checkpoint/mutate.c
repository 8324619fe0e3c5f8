/* mutate.c - checkpoints with files that were damaged at random.
 *
 *     mutate DIRECTORY SEED CASES
 *
 * DIRECTORY has checkpoints. In each case one file of one of them is changed in one way; then the
 * checkpoint must be refused with a message that has the name of a file of it, and once the file is
 * as it was it must verify. A case depends on SEED and its number alone. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "checkpoint/list.h"
#include "checkpoint/read.h"
#include "io/bytes.h"

#define FILES      256
#define PATH       1024
#define COMPLAINTS 3

typedef struct {
    char path[PATH], dir[PATH];
    zero_bytes good;
} victim;

static victim files[FILES];
static int n_files;

static uint64_t draw(zero_rng *rng, uint64_t n)
{
    rng->sample++;
    return zero_rng_bits(rng, 0) % n;
}

static void stop(const char *path)
{
    fprintf(stderr, "mutate: %s: %s\n", path, strerror(errno));
    exit(2);
}

/* ---- files ---- */

static void take_files(const char *dir)
{
    DIR *open = opendir(dir);
    if (!open) stop(dir);
    for (struct dirent *e; (e = readdir(open)) && n_files < FILES;) {
        victim *v = &files[n_files];
        if (e->d_name[0] == '.') continue;
        snprintf(v->dir, PATH, "%s", dir);
        if (snprintf(v->path, PATH, "%s/%s", dir, e->d_name) >= PATH) stop(dir);
        if (zero_bytes_read(&v->good, v->path) != ZERO_OK) stop(v->path);
        n_files++;
    }
    closedir(open);
}

static void put(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || close(fd) != 0) stop(path);
}

static zero_status verify(const char *dir)
{
    zero_checkpoint c = {0};
    zero_status st = zero_checkpoint_open(dir, NULL, &c);
    if (st == ZERO_OK) st = zero_checkpoint_verify(&c);
    zero_checkpoint_close(&c);
    return st;
}

/* ---- ways to damage one ---- */

/* bad has room for twice the file. Returns its new length; *what says how. */
static size_t damage(zero_rng *rng, const victim *v, unsigned char *bad, const char **what)
{
    size_t len = v->good.len, at = draw(rng, len);
    size_t n = 1 + draw(rng, 1 + draw(rng, len - at));
    const victim *other = &files[draw(rng, (uint64_t)n_files)];
    memcpy(bad, v->good.bytes, len);
    switch (draw(rng, 9)) {
    case 0:
        *what = "bit";
        bad[at] ^= (unsigned char)(1u << draw(rng, 8));
        return len;
    case 1:
        *what = "byte";
        bad[at] = (unsigned char)draw(rng, 256);
        return len;
    case 2:
        *what = "zeros";
        memset(bad + at, 0, n);
        return len;
    case 3: *what = "cut"; return at;
    case 4:
        *what = "longer";
        memset(bad + len, (int)draw(rng, 256), n);
        return len + n;
    case 5:
        *what = "left out";
        memmove(bad + at, bad + at + n, len - at - n);
        return len - n;
    case 6: {
        *what = "moved";
        size_t from = draw(rng, len - n + 1);
        memcpy(bad + at, v->good.bytes + from, n);
        return len;
    }
    case 7:
        *what = "of another file";
        if (other->good.len < at + n) break;
        memcpy(bad + at, other->good.bytes + at, n);
        return len;
    default:
        *what = "another file";
        if (other->good.len > 2 * len) break;
        memcpy(bad, other->good.bytes, other->good.len);
        return other->good.len;
    }
    bad[at] ^= 1;
    return len;
}

/* Zero if the case went as it must; a change that changes nothing counts as none. */
static int try_case(uint64_t seed, uint64_t number, long *cases)
{
    zero_rng rng = {.seed = seed, .purpose = ZERO_RNG_TEST, .step = number};
    const victim *v = &files[draw(&rng, (uint64_t)n_files)];
    const char *what, *name = strrchr(v->path, '/') + 1;
    unsigned char *bad = malloc(2 * v->good.len + 1);
    if (!bad) stop(v->path);
    size_t len = damage(&rng, v, bad, &what);
    bool is_same = len == v->good.len && memcmp(bad, v->good.bytes, len) == 0;
    int failed = 0;
    if (!is_same) {
        put(v->path, bad, len);
        zero_status st = verify(v->dir);
        bool is_refused = st == ZERO_ERR_FORMAT || st == ZERO_ERR_IO;
        /* A changed manifest may say what makes a shard the wrong one. */
        bool is_named = is_refused && (strstr(zero_last_error(), name) ||
                                       strcmp(name, ZERO_MANIFEST_NAME) == 0);
        if (!is_named) {
            printf("FAILED: case %llu, %s, %s: status %d: %s\n", (unsigned long long)number,
                   v->path, what, (int)st, st == ZERO_OK ? "" : zero_last_error());
            failed = 1;
        }
        put(v->path, v->good.bytes, v->good.len);
        ++*cases;
        if (number % 64 == 0 && verify(v->dir) != ZERO_OK) {
            printf("FAILED: case %llu: %s as it was is refused: %s\n",
                   (unsigned long long)number, v->path, zero_last_error());
            failed = 1;
        }
    }
    free(bad);
    return failed;
}

int main(int argc, char **argv)
{
    zero_storage_dir dir;
    int64_t *steps = NULL;
    int n = 0, failed = 0;
    long cases = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: mutate DIRECTORY SEED CASES\n");
        return 2;
    }
    if (zero_storage_open(argv[1], &dir) != ZERO_OK ||
        zero_checkpoint_list(&dir, &steps, &n) != ZERO_OK) {
        fprintf(stderr, "mutate: %s\n", zero_last_error());
        return 2;
    }
    for (int i = 0; i < n; i++) {
        char name[ZERO_CHECKPOINT_NAME], path[PATH];
        zero_checkpoint_name(steps[i], name);
        snprintf(path, sizeof path, "%s/%s", argv[1], name);
        take_files(path);
    }
    const uint64_t seed = strtoull(argv[2], NULL, 10), most = strtoull(argv[3], NULL, 10);
    for (uint64_t i = 0; n_files > 0 && i < most && failed < COMPLAINTS; i++)
        failed += try_case(seed, i, &cases);
    for (int i = 0; i < n_files; i++) zero_bytes_destroy(&files[i].good);
    free(steps);
    zero_storage_close(&dir);
    printf("cases %ld\n", cases);
    return failed > 0 || cases == 0;
}
