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

/* A checkpoint may have moved since it was opened. */
static zero_pieces *pieces_of(zero_checkpoint *c)
{
    c->pieces.dir = &c->dir;
    c->pieces.manifest = &c->manifest;
    return &c->pieces;
}

/* A whole small file. */
static zero_status read_file(const zero_checkpoint *c, const char *name, zero_bytes *text)
{
    zero_file file;
    ZERO_TRY(zero_file_open_in(&c->dir, name, &file));
    zero_status st = zero_bytes_read_file(text, &file, MANIFEST_MOST);
    zero_file_close(&file);
    return st;
}

/* A directory with the name of another step was swapped, or copied over. */
static zero_status check_name(const char *path, const zero_manifest *m)
{
    int64_t step;
    char name[ZERO_CHECKPOINT_NAME];
    /* The path's last name; trailing slashes (shell completion) are ignored. */
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    snprintf(name, ZERO_CHECKPOINT_NAME, "%.*s", (int)(end - begin), path + begin);
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
    zero_pieces_close(pieces_of(c));
    zero_storage_close(&c->dir);
    zero_manifest_destroy(&c->manifest);
    zero_bytes_destroy(&c->text);
    free(c->block);
    *c = (zero_checkpoint){0};
}

/* ---- elements ---- */

zero_status zero_checkpoint_shard(zero_checkpoint *c, int rank,
                                  const zero_shard_reader **shard)
{
    return zero_pieces_shard(pieces_of(c), rank, shard);
}

zero_status zero_checkpoint_tensor(zero_checkpoint *c, int tensor, zero_state_part part,
                                   int64_t begin, int64_t end, float *values)
{
    return zero_pieces_read(pieces_of(c), tensor, part, begin, end, values);
}

/* Wishes for the model's groups, and who gets the elements. */
struct fetch {
    zero_checkpoint *c;
    const zero_model *model;
    const zero_checkpoint_wish *wishes;
    const zero_checkpoint_receiver *to;
};

/* ---- neither side is shared: shard by shard ---- */

static bool is_wanted(const struct fetch *f, const zero_state_local *local, int rank)
{
    for (int g = 0; g < f->c->manifest.table.n_groups; g++) {
        zero_range own = zero_partition_shard(&local->partitions[g], rank);
        if (!zero_range_is_empty(zero_range_overlap(own, f->wishes[g].range))) return true;
    }
    return false;
}

/* Extents i, i + 1 and i + 2 are the parts of the same elements. */
static zero_status fetch_extents(const struct fetch *f, const zero_state_local *local,
                                 const zero_shard_reader *shard, int i)
{
    const zero_extent *x = &shard->extents[i];
    int group = local->tensors[x->tensor].group;
    const zero_checkpoint_wish *wish = &f->wishes[group];
    zero_range have = zero_extent_range(local, x);
    zero_range both = zero_range_overlap(have, wish->range);
    const float *parts[ZERO_STATES] = {NULL};
    if (zero_range_is_empty(both)) return ZERO_OK;
    for (int k = 0; k < ZERO_STATES; k++) {
        zero_state_part part = shard->extents[i + k].part;
        float *block = f->c->block + part * ZERO_EXTENT_MAX;
        if (!wish->wants[part]) continue;
        ZERO_TRY(zero_shard_read(shard, i + k, block));
        parts[part] = block + (both.begin - have.begin);
    }
    return f->to->receive(f->to->arg, group, both, parts);
}

/* ---- a shared model: tensor by tensor ---- */

/* Elements [at, end) of the rank's part of a tensor. */
static zero_status fetch_runs(const struct fetch *f, int tensor, zero_state_part part,
                              zero_range elements)
{
    float *block = f->c->block + part * ZERO_EXTENT_MAX;
    for (int64_t at = elements.begin; at < elements.end;) {
        zero_run run = zero_share_run(&f->model->tensors[tensor], at, elements.end);
        ZERO_TRY(zero_checkpoint_tensor(f->c, tensor, part, run.whole, run.whole + run.n,
                                        block + (at - elements.begin)));
        at += run.n;
    }
    return ZERO_OK;
}

static zero_status fetch_elements(const struct fetch *f, int tensor, zero_range elements)
{
    const zero_tensor *t = &f->model->tensors[tensor];
    zero_range in_group = {t->offset + elements.begin, t->offset + elements.end};
    const float *parts[ZERO_STATES] = {NULL};
    for (int part = 0; part < ZERO_STATES; part++) {
        if (!f->wishes[t->group].wants[part]) continue;
        ZERO_TRY(fetch_runs(f, tensor, (zero_state_part)part, elements));
        parts[part] = f->c->block + part * ZERO_EXTENT_MAX;
    }
    return f->to->receive(f->to->arg, t->group, in_group, parts);
}

zero_status zero_checkpoint_fetch(zero_checkpoint *c, const zero_model *model,
                                  const zero_checkpoint_wish *wishes,
                                  const zero_checkpoint_receiver *to)
{
    struct fetch f = {c, model, wishes, to};
    if (c->manifest.table.layout.tp == 1 && model->share.ranks == 1) {
        const zero_state_local *local;
        ZERO_TRY(zero_pieces_local(pieces_of(f.c), 0, &local));
        for (int rank = 0; rank < f.c->manifest.table.layout.n_ranks; rank++) {
            const zero_shard_reader *shard;
            if (!is_wanted(&f, local, rank)) continue;
            ZERO_TRY(zero_checkpoint_shard(f.c, rank, &shard));
            for (int i = 0; i < shard->n; i += ZERO_STATES)
                ZERO_TRY(fetch_extents(&f, local, shard, i));
        }
        return ZERO_OK;
    }
    for (int i = 0; i < model->n_tensors; i++) {
        /* Blocks end where extents do if the same number of ranks wrote them. */
        int tensor = i;
        const zero_tensor *t = &f.model->tensors[tensor];
        int64_t most = ZERO_EXTENT_MAX / f.model->share.ranks;
        zero_range wanted =
            zero_range_overlap(zero_range_of_tensor(t), f.wishes[t->group].range);
        for (int64_t at = wanted.begin - t->offset, end = wanted.end - t->offset, stop;
             at < end; at = stop) {
            stop = zero_min((at / most + 1) * most, end);
            ZERO_TRY(fetch_elements(&f, tensor, (zero_range){at, stop}));
        }
    }
    return ZERO_OK;
}

/* ---- everything ---- */

static zero_status verify_shard(zero_checkpoint *c, int rank)
{
    const zero_shard_reader *shard;
    ZERO_TRY(zero_checkpoint_shard(c, rank, &shard));
    for (int i = 0; i < shard->n; i++) ZERO_TRY(zero_shard_read(shard, i, c->block));
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
    for (int rank = 0; rank < c->manifest.table.layout.n_ranks; rank++)
        ZERO_TRY(verify_shard(c, rank));
    if (!c->manifest.has_tokenizer) return ZERO_OK;
    zero_tokenizer tokenizer;
    ZERO_TRY(zero_checkpoint_tokenizer(c, &tokenizer));
    zero_tokenizer_destroy(&tokenizer);
    return ZERO_OK;
}
