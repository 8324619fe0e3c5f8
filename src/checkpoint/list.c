#include "checkpoint/list.h"

#include "checkpoint/manifest.h"

#define TEMPORARY  ".tmp-"
#define DELETED    ".del-"
#define MOST_ALIKE 9 /* leftovers of one step that cannot be removed */

static void name_with(const char *prefix, int64_t step, char name[ZERO_CHECKPOINT_NAME])
{
    snprintf(name, ZERO_CHECKPOINT_NAME, "%sstep-%08" PRId64, prefix, step);
}

void zero_checkpoint_name(int64_t step, char name[ZERO_CHECKPOINT_NAME])
{
    name_with("", step, name);
}

/* Names count only as we write them: "step-7" and "step-00000100.old" are not ours. */
bool zero_checkpoint_is_name(const char *name, int64_t *step)
{
    char again[ZERO_CHECKPOINT_NAME];
    if (sscanf(name, "step-%" SCNd64, step) != 1 || *step < 0) return false;
    zero_checkpoint_name(*step, again);
    return zero_same_text(name, again);
}

/* ---- published ones ---- */

struct steps {
    int64_t *list;
    int64_t n, capacity;
};

static zero_status add_step(void *arg, const char *name)
{
    struct steps *s = arg;
    int64_t step;
    if (!zero_checkpoint_is_name(name, &step)) return ZERO_OK;
    ZERO_FAIL_IF(!zero_grow(s->list, s->n, &s->capacity), ZERO_ERR_NOMEM,
                 "no memory for %" PRId64 " checkpoints", s->n + 1);
    s->list[s->n++] = step;
    return ZERO_OK;
}

static int ascending(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return zero_order(*x, *y);
}

zero_status zero_checkpoint_list(const zero_storage_dir *dir, int64_t **steps, int *n)
{
    struct steps s = {0};
    zero_status st = zero_storage_list(dir, add_step, &s);
    if (st != ZERO_OK) free(s.list);
    ZERO_TRY(st);
    if (s.n > 0) zero_sort(s.list, s.n, ascending);
    *steps = s.list;
    *n = (int)s.n;
    return ZERO_OK;
}

/* ---- removing ---- */

/* A name without leftover: ".tmp-step-00000100" or, beside leftovers that cannot be
 * removed, ".tmp-step-00000100-2" and so on. */
static zero_status free_name(const zero_storage_dir *dir, const char *prefix, int64_t step,
                             char name[ZERO_CHECKPOINT_NAME])
{
    char plain[ZERO_CHECKPOINT_NAME];
    name_with(prefix, step, plain);
    snprintf(name, ZERO_CHECKPOINT_NAME, "%s", plain);
    zero_status st = zero_storage_remove(dir, name);
    for (int i = 2; st != ZERO_OK && i <= MOST_ALIKE; i++) {
        snprintf(name, ZERO_CHECKPOINT_NAME, "%.60s-%d", plain, i);
        st = zero_storage_remove(dir, name);
    }
    return st;
}

zero_status zero_checkpoint_temporary_name(const zero_storage_dir *dir, int64_t step,
                                           char name[ZERO_CHECKPOINT_NAME])
{
    return free_name(dir, TEMPORARY, step, name);
}

static bool is_leftover(const char *name)
{
    char plain[ZERO_CHECKPOINT_NAME];
    int64_t step;
    if (strncmp(name, TEMPORARY, sizeof TEMPORARY - 1) != 0 &&
        strncmp(name, DELETED, sizeof DELETED - 1) != 0)
        return false;
    zero_print(plain, "%s", name + sizeof TEMPORARY - 1);
    if (zero_checkpoint_is_name(plain, &step)) return true;
    char *end = strrchr(plain, '-');
    if (!end || end[1] < '2' || end[1] > '0' + MOST_ALIKE || end[2] != '\0') return false;
    *end = '\0';
    return zero_checkpoint_is_name(plain, &step);
}

typedef struct {
    const zero_storage_dir *dir;
    const zero_listener *listener;
} cleaning;

static zero_status remove_leftover(void *arg, const char *name)
{
    const cleaning *c = arg;
    if (is_leftover(name) && zero_storage_remove(c->dir, name) != ZERO_OK)
        zero_listener_tell(c->listener, "a leftover of another run stays: %s",
                           zero_last_error());
    return ZERO_OK;
}

zero_status zero_checkpoint_clean(const zero_storage_dir *dir,
                                  const zero_listener *listener)
{
    cleaning c = {dir, listener};
    return zero_storage_list(dir, remove_leftover, &c);
}

/* The new name must be durable before the first file is removed. Otherwise, after a loss of
 * power, a published name might have only some of its files. */
static zero_status remove_published(const zero_storage_dir *dir, int64_t step)
{
    char name[ZERO_CHECKPOINT_NAME], deleted[ZERO_CHECKPOINT_NAME];
    name_with("", step, name);
    ZERO_TRY(zero_storage_check_removable(dir, name));
    ZERO_TRY(free_name(dir, DELETED, step, deleted));
    ZERO_TRY(zero_storage_rename(dir, name, deleted));
    ZERO_TRY(zero_storage_sync(dir));
    return zero_storage_remove(dir, deleted);
}

zero_status zero_checkpoint_prune(const zero_storage_dir *dir, int64_t saved, int64_t keep,
                                  int64_t *stuck, const zero_listener *listener)
{
    int64_t *steps;
    int n;
    ZERO_TRY(zero_checkpoint_list(dir, &steps, &n));
    while (n > 0 && steps[n - 1] > saved) n--;
    for (int i = 0; i < n - keep; i++) {
        if (remove_published(dir, steps[i]) == ZERO_OK || steps[i] <= *stuck) continue;
        zero_listener_tell(listener, "an old checkpoint stays: %s", zero_last_error());
        *stuck = steps[i];
    }
    free(steps);
    return ZERO_OK;
}

zero_status zero_checkpoint_set_aside(const zero_storage_dir *dir, int64_t step)
{
    char name[ZERO_CHECKPOINT_NAME], aside[2 * ZERO_CHECKPOINT_NAME];
    zero_checkpoint_name(step, name);
    zero_print(aside, "broken-%s", name);
    for (int i = 2; zero_storage_has(dir, aside); i++)
        zero_print(aside, "broken-%s-%d", name, i);
    ZERO_TRY(zero_storage_rename(dir, name, aside));
    return zero_storage_sync(dir);
}

/* ---- finding ---- */

zero_status zero_checkpoint_find(const char *path, char *found, size_t size)
{
    ZERO_AT_END(zero_storage_close) zero_storage_dir dir = {0};
    ZERO_FREED int64_t *steps = NULL;
    char name[ZERO_CHECKPOINT_NAME];
    int n = 0;
    ZERO_TRY(zero_storage_open(path, &dir));
    if (zero_storage_has(&dir, ZERO_MANIFEST_NAME)) {
        snprintf(found, size, "%s", path);
        return ZERO_OK;
    }
    ZERO_TRY(zero_checkpoint_list(&dir, &steps, &n));
    ZERO_FAIL_IF(n == 0, ZERO_ERR_IO,
                 "%s: holds no checkpoint: expected " ZERO_MANIFEST_NAME
                 ", or directories such as step-00000100",
                 dir.path);
    zero_checkpoint_name(steps[n - 1], name);
    snprintf(found, size, "%s/%s", dir.path, name);
    return ZERO_OK;
}

bool zero_checkpoint_is_removed(const char *path, const char *found)
{
    return found[0] != '\0' && !zero_same_text(path, found) &&
           zero_path_look(found) == ZERO_PATH_OF_NOTHING && errno == ENOENT;
}
