#include "checkpoint/shard_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

enum { HEADER_TEXTS = 5 };

/* The data of extents i, i + 1 and i + 2: the parts of the same elements. */
static zero_status view_extents(const zero_shard_writer *s, int i, zero_state_block *view)
{
    const zero_extent *x = &s->extents[i];
    return s->source.view(s->source.arg, s->local.tensors[x->tensor].group,
                          zero_extent_range(&s->local, x), s->room, view);
}

static size_t extent_bytes(const zero_extent *x)
{
    return (size_t)(x->end - x->begin) * sizeof(float);
}

static void describe_extent(zero_shard_writer *s, int i, const float *data)
{
    const zero_extent *x = &s->extents[i];
    zero_extent_name(&s->manifest->table, s->local.p, x, s->names[i]);
    zero_checksum(data, extent_bytes(x), s->sums[i]);
    s->entries[i] = (zero_safetensors_entry){
        .name = s->names[i], .type = "F32", .n_dims = 1, .dims = {x->end - x->begin}};
    s->texts[HEADER_TEXTS + i][0] = s->names[i];
    s->texts[HEADER_TEXTS + i][1] = s->sums[i];
}

static zero_status prepare(zero_shard_writer *s)
{
    const zero_state_table *table = &s->manifest->table;
    int tp = table->layout.tp;
    ZERO_TRY(zero_state_local_init(&s->local, table, s->source.rank % tp));
    ZERO_TRY(zero_state_table_extents(table, &s->local, s->source.rank / tp, &s->extents,
                                      &s->n));
    size_t n = (size_t)s->n;
    s->entries = calloc(n + 1, sizeof *s->entries);
    s->names = malloc((n + 1) * sizeof *s->names);
    s->sums = malloc((n + 1) * sizeof *s->sums);
    s->texts = calloc(n + HEADER_TEXTS, sizeof *s->texts);
    s->room = malloc((size_t)(ZERO_STATES * ZERO_EXTENT_MAX) * sizeof *s->room);
    ZERO_TRY(zero_allocated(s->entries && s->names && s->sums && s->texts && s->room,
                            "no memory for the %d extents of a shard", s->n));
    /* The header comes first in the file and has the checksums of the data after it.
     * They are taken before anything is written, so errors of the disk, or on the way
     * to it, show when the file is read. */
    char step[32], rank[16], ranks[16];
    snprintf(step, sizeof step, "%" PRId64, s->manifest->step);
    snprintf(rank, sizeof rank, "%d", s->source.rank);
    snprintf(ranks, sizeof ranks, "%d", s->manifest->table.layout.n_ranks);
    const char *const about[HEADER_TEXTS][2] = {{"format", "zero checkpoint shard"},
                                                {"step", step},
                                                {"rank", rank},
                                                {"ranks", ranks},
                                                {"digest", s->manifest->digest}};
    memcpy(s->texts, about, sizeof about);
    zero_state_block view;
    for (int i = 0; i < s->n; i += ZERO_STATES) {
        ZERO_TRY(view_extents(s, i, &view));
        for (int p = 0; p < ZERO_STATES; p++)
            describe_extent(s, i + p, view.part[s->extents[i + p].part]);
    }

    return zero_safetensors_write_header(s->n, s->entries, s->n + HEADER_TEXTS,
                                         (const char *const(*)[2])s->texts, &s->header);
}

zero_status zero_shard_prepare(const zero_shard_source *source,
                               const zero_manifest *manifest, zero_shard_writer *shard)
{
    zero_shard_writer s = {.source = *source, .manifest = manifest};
    zero_status st = prepare(&s);
    if (st == ZERO_OK)
        *shard = s;
    else
        zero_shard_forget(&s);
    return st;
}

void zero_shard_forget(zero_shard_writer *shard)
{
    zero_bytes_destroy(&shard->header);
    zero_state_local_destroy(&shard->local);
    free(shard->extents);
    free(shard->entries);
    free(shard->names);
    free(shard->sums);
    free(shard->texts);
    free(shard->room);
    *shard = (zero_shard_writer){0};
}

static uint64_t length_of(const zero_shard_writer *s)
{
    return s->n > 0 ? s->entries[s->n - 1].end : s->header.len;
}

zero_manifest_file zero_shard_describe(const zero_shard_writer *shard)
{
    zero_manifest_file file = {.bytes = length_of(shard)};
    zero_checksum(shard->header.bytes, shard->header.len, file.checksum);
    return file;
}

static zero_status write_data(const zero_shard_writer *s, zero_storage_file *file)
{
    zero_state_block view;
    ZERO_TRY(zero_storage_write(file, s->header.bytes, s->header.len));
    for (int i = 0; i < s->n; i += ZERO_STATES) {
        ZERO_TRY(view_extents(s, i, &view));
        for (int p = 0; p < ZERO_STATES; p++) {
            const zero_extent *x = &s->extents[i + p];
            ZERO_TRY(zero_storage_write(file, view.part[x->part], extent_bytes(x)));
        }
    }
    return ZERO_OK;
}

zero_status zero_shard_write(const zero_shard_writer *shard, const zero_storage_dir *dir)
{
    char name[64];
    zero_storage_file file;
    zero_shard_name(shard->source.rank, shard->manifest->table.layout.n_ranks, name);
    ZERO_TRY(zero_storage_create(dir, name, length_of(shard), &file));
    zero_status st = write_data(shard, &file);
    if (st == ZERO_OK) return zero_storage_finish(&file);
    zero_storage_close_file(&file);
    return st;
}
