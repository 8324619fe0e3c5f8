#include "checkpoint/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/range.h"
#include "checkpoint/list.h"
#include "data/tokenizer_file.h"

#define MANIFEST_MOST ((size_t)1 << 30) /* bytes */

/* ---- opening ---- */

/* A whole small file. */
static zero_status read_file(const zero_checkpoint *c, const char *name, zero_bytes *text)
{
    zero_file file;
    ZERO_TRY(zero_file_open_in(&c->dir, name, &file));
    zero_status st = zero_bytes_read_file(text, &file, MANIFEST_MOST);
    zero_file_close(&file);
    return st;
}

/* The path's last name; trailing slashes (shell completion) are ignored. */
static void last_of(const char *path, char name[ZERO_CHECKPOINT_NAME])
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    snprintf(name, ZERO_CHECKPOINT_NAME, "%.*s", (int)(end - begin), path + begin);
}

/* A directory with the name of another step was swapped, or copied over. */
static zero_status check_name(const char *path, const zero_manifest *m)
{
    int64_t step;
    char name[ZERO_CHECKPOINT_NAME];
    last_of(path, name);
    if (!zero_checkpoint_is_name(name, &step) || step == m->step) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: its manifest is that of step %" PRId64
                     ": the directory was renamed, or its files belong to another",
                     path, m->step);
}

static zero_status open_with(const char *path, zero_checkpoint *c)
{
    char name[ZERO_STORAGE_PATH + 64];
    ZERO_TRY(zero_storage_open(path, &c->dir));
    if (!c->text.bytes) ZERO_TRY(read_file(c, ZERO_MANIFEST_NAME, &c->text));
    snprintf(name, sizeof name, "%s/" ZERO_MANIFEST_NAME, path);
    ZERO_TRY(zero_manifest_parse(name, c->text.bytes, c->text.len, &c->manifest));
    ZERO_TRY(check_name(path, &c->manifest));
    c->block = malloc((size_t)(ZERO_STATES * ZERO_EXTENT_MAX) * sizeof *c->block);
    if (c->block) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory to read %s", path);
}

zero_status zero_checkpoint_open(const char *path, zero_checkpoint *c)
{
    zero_checkpoint made = {0};
    zero_status st = open_with(path, &made);
    if (st == ZERO_OK)
        *c = made;
    else
        zero_checkpoint_close(&made);
    return st;
}

zero_status zero_checkpoint_open_told(const char *path, const void *text, size_t len,
                                      zero_checkpoint *c)
{
    zero_checkpoint made = {0};
    zero_status st = zero_bytes_append(&made.text, text, len);
    if (st == ZERO_OK) st = open_with(path, &made);
    if (st == ZERO_OK)
        *c = made;
    else
        zero_checkpoint_close(&made);
    return st;
}

void zero_checkpoint_close(zero_checkpoint *c)
{
    zero_shard_close(&c->shard);
    zero_storage_close(&c->dir);
    zero_manifest_destroy(&c->manifest);
    zero_bytes_destroy(&c->text);
    free(c->block);
    *c = (zero_checkpoint){0};
}

/* ---- elements ---- */

/* Only one shard is open at a time. */
static zero_status open_shard(zero_checkpoint *c, int rank)
{
    if (c->shard.file.is_open && c->shard.rank == rank) return ZERO_OK;
    zero_shard_close(&c->shard);
    return zero_shard_open(&c->dir, &c->manifest, rank, &c->shard);
}

static bool is_wanted(const zero_checkpoint *c, int rank, int group,
                      const zero_checkpoint_wish *wish)
{
    zero_range own = zero_partition_shard(&c->manifest.table.partitions[group], rank);
    return !zero_range_is_empty(zero_range_overlap(own, wish->range));
}

/* Extents i, i + 1 and i + 2 are the parts of the same elements. */
static zero_status fetch_extents(zero_checkpoint *c, int i,
                                 const zero_checkpoint_wish *wishes,
                                 const zero_checkpoint_receiver *to)
{
    const zero_extent *x = &c->shard.extents[i];
    int group = c->manifest.table.tensors[x->tensor].group;
    const zero_checkpoint_wish *wish = &wishes[group];
    zero_range have = zero_extent_range(&c->manifest.table, x);
    zero_range both = zero_range_overlap(have, wish->range);
    const float *parts[ZERO_STATES] = {NULL};
    if (zero_range_is_empty(both)) return ZERO_OK;
    for (int k = 0; k < ZERO_STATES; k++) {
        zero_state_part part = c->shard.extents[i + k].part;
        float *block = c->block + part * ZERO_EXTENT_MAX;
        if (!wish->wants[part]) continue;
        ZERO_TRY(zero_shard_read(&c->shard, i + k, block));
        parts[part] = block + (both.begin - have.begin);
    }
    return to->receive(to->arg, group, both, parts);
}

zero_status zero_checkpoint_fetch(zero_checkpoint *c, const zero_checkpoint_wish *wishes,
                                  const zero_checkpoint_receiver *to)
{
    const zero_state_table *table = &c->manifest.table;
    for (int rank = 0; rank < table->n_ranks; rank++) {
        bool wanted = false;
        for (int g = 0; g < table->n_groups && !wanted; g++)
            wanted = is_wanted(c, rank, g, &wishes[g]);
        if (!wanted) continue;
        ZERO_TRY(open_shard(c, rank));
        for (int i = 0; i < c->shard.n; i += ZERO_STATES)
            ZERO_TRY(fetch_extents(c, i, wishes, to));
    }
    return ZERO_OK;
}

/* The caller's array for elements of one group. */
struct place {
    int64_t begin;
    zero_state_part part;
    float *values;
};

static zero_status copy_to(void *arg, int group, zero_range range,
                           const float *const parts[ZERO_STATES])
{
    const struct place *to = arg;
    (void)group;
    memcpy(to->values + (range.begin - to->begin), parts[to->part],
           (size_t)zero_range_len(range) * sizeof *to->values);
    return ZERO_OK;
}

zero_status zero_checkpoint_tensor(zero_checkpoint *c, int tensor, zero_state_part part,
                                   int64_t begin, int64_t end, float *values)
{
    const zero_state_table *table = &c->manifest.table;
    const zero_tensor *t = &table->tensors[tensor];
    struct place to = {t->offset + begin, part, values};
    zero_checkpoint_wish *wishes =
        calloc((size_t)table->n_groups, sizeof *wishes); /* empty ranges */
    if (!wishes) return zero_fail(ZERO_ERR_NOMEM, "no memory to read '%s'", t->name);
    wishes[t->group].range = (zero_range){t->offset + begin, t->offset + end};
    wishes[t->group].wants[part] = true;
    zero_status st =
        zero_checkpoint_fetch(c, wishes, &(zero_checkpoint_receiver){copy_to, &to});
    free(wishes);
    return st;
}

/* ---- everything ---- */

zero_status zero_checkpoint_check_header(zero_checkpoint *c, int rank)
{
    return open_shard(c, rank);
}

static zero_status verify_shard(zero_checkpoint *c, int rank)
{
    ZERO_TRY(open_shard(c, rank));
    for (int i = 0; i < c->shard.n; i++) ZERO_TRY(zero_shard_read(&c->shard, i, c->block));
    return ZERO_OK;
}

static zero_status read_tokenizer(const zero_checkpoint *c, zero_bytes *text)
{
    char found[ZERO_CHECKSUM];
    const zero_manifest_file *known = &c->manifest.tokenizer;
    ZERO_TRY(read_file(c, ZERO_TOKENIZER_NAME, text));
    zero_checksum(text->bytes, text->len, found);
    if (text->len == known->bytes && strcmp(found, known->checksum) == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s/" ZERO_TOKENIZER_NAME
                     ": was changed after it was written: expected %" PRIu64
                     " bytes with checksum %s, found %zu with %s",
                     c->dir.path, known->bytes, known->checksum, text->len, found);
}

zero_status zero_checkpoint_tokenizer(zero_checkpoint *c, zero_tokenizer *tokenizer)
{
    if (!c->manifest.has_tokenizer)
        return zero_fail(ZERO_ERR_INVALID,
                         "%s has no tokenizer: the run was trained on tokens", c->dir.path);
    char path[ZERO_STORAGE_PATH + 64];
    zero_bytes text = {0};
    snprintf(path, sizeof path, "%s/" ZERO_TOKENIZER_NAME, c->dir.path);
    zero_status st = read_tokenizer(c, &text);
    if (st == ZERO_OK)
        st = zero_tokenizer_parse_file(path, text.bytes, text.len, tokenizer);
    zero_bytes_destroy(&text);
    return st;
}

zero_status zero_checkpoint_verify(zero_checkpoint *c)
{
    for (int rank = 0; rank < c->manifest.table.n_ranks; rank++)
        ZERO_TRY(verify_shard(c, rank));
    if (!c->manifest.has_tokenizer) return ZERO_OK;
    zero_tokenizer tokenizer;
    ZERO_TRY(zero_checkpoint_tokenizer(c, &tokenizer));
    zero_tokenizer_destroy(&tokenizer);
    return ZERO_OK;
}
