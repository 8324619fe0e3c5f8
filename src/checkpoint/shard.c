#include "checkpoint/shard.h"

#include "base/fail.h"
#include "base/grow.h"

/* ---- writing ---- */

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

zero_status zero_shard_prepare(const zero_shard_source *source,
                               const zero_manifest *manifest, zero_shard_writer *shard)
{
    ZERO_AT_END(zero_shard_forget)
    zero_shard_writer s = {.source = *source, .manifest = manifest};
    const zero_manifest *m = s.manifest;
    int tp = m->table.layout.tp, rank = s.source.rank;
    char step[32], number[16], ranks[16];
    ZERO_FREED zero_safetensors_entry *entries = NULL;
    ZERO_TRY(zero_state_local_init(&s.local, &m->table, rank % tp));
    ZERO_TRY(zero_state_table_extents(&m->table, &s.local, rank / tp, &s.extents, &s.n));
    ZERO_TRY(zero_new(&s.room, ZERO_STATES * ZERO_EXTENT_MAX, "numbers of a shard"));
    ZERO_TRY(zero_new(&entries, s.n + 1, "extents of a shard"));
    snprintf(step, sizeof step, "%" PRId64, m->step);
    snprintf(number, sizeof number, "%d", rank);
    snprintf(ranks, sizeof ranks, "%d", m->table.layout.n_ranks);
    json_auto_t *texts =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "format", "zero checkpoint shard", "step",
                  step, "rank", number, "ranks", ranks, "digest", m->digest);
    ZERO_TRY(zero_allocated(texts, "no memory for the header of a shard"));
    /* The header comes first in the file and has the checksums of the data after it.
     * They are taken before anything is written, so errors of the disk, or on the way
     * to it, show when the file is read. */
    char name[ZERO_EXTENT_NAME], sum[ZERO_CHECKSUM];
    zero_state_block view;
    for (int i = 0; i < s.n; i++) {
        const zero_extent *x = &s.extents[i];
        if (i % ZERO_STATES == 0) ZERO_TRY(view_extents(&s, i, &view));
        zero_extent_name(&s.manifest->table, s.local.p, x, name);
        zero_checksum(view.part[x->part], extent_bytes(x), sum);
        ZERO_TRY(zero_allocated(json_object_set_new(texts, name, json_string(sum)) == 0,
                                "no memory for the checksum of %s", name));
        entries[i] = (zero_safetensors_entry){
            .name = json_object_iter_key(json_object_iter_at(texts, name)),
            .type = "F32",
            .n_dims = 1,
            .dims = {x->end - x->begin}};
    }
    ZERO_TRY(zero_safetensors_write_header(s.n, entries, texts, &s.header));
    s.file.bytes = s.n > 0 ? entries[s.n - 1].end : s.header.len;
    zero_checksum(s.header.bytes, s.header.len, s.file.checksum);
    ZERO_GIVE(shard, s);
    return ZERO_OK;
}

void zero_shard_forget(zero_shard_writer *shard)
{
    zero_bytes_destroy(&shard->header);
    zero_state_local_destroy(&shard->local);
    free(shard->extents);
    free(shard->room);
    *shard = (zero_shard_writer){0};
}

zero_status zero_shard_write(const zero_shard_writer *s, const zero_storage_dir *dir)
{
    char name[64];
    ZERO_AT_END(zero_storage_close_file) zero_storage_file file = {0};
    zero_state_block view;
    zero_shard_name(s->source.rank, s->manifest->table.layout.n_ranks, name);
    ZERO_TRY(zero_storage_create(dir, name, s->file.bytes, &file));
    ZERO_TRY(zero_storage_write(&file, s->header.bytes, s->header.len));
    for (int i = 0; i < s->n; i++) {
        const zero_extent *x = &s->extents[i];
        if (i % ZERO_STATES == 0) ZERO_TRY(view_extents(s, i, &view));
        ZERO_TRY(zero_storage_write(&file, view.part[x->part], extent_bytes(x)));
    }
    return zero_storage_finish(&file);
}

/* ---- reading ---- */

static zero_status read_header(zero_shard_reader *s, const zero_manifest *m,
                               const zero_state_local *local, zero_bytes *header)
{
    const zero_manifest_file *known = &m->shards[s->rank];
    ZERO_FAIL_IF(s->file.bytes != known->bytes, ZERO_ERR_FORMAT,
                 "%s: has %" PRIu64 " bytes: expected the %" PRIu64 " that were written",
                 s->file.path, s->file.bytes, known->bytes);
    ZERO_TRY(zero_safetensors_read_header(&s->file, header));
    /* A header is compared with the manifest first, whatever else is wrong with the
     * file. */
    char found[ZERO_CHECKSUM];
    zero_checksum(header->bytes, header->len, found);
    ZERO_FAIL_IF(strcmp(found, known->checksum) != 0, ZERO_ERR_FORMAT,
                 "%s: its header (bytes 0 to %zu) is not the one that was written: "
                 "expected checksum %s, found %s; the file was changed, or belongs to "
                 "another shard or checkpoint",
                 s->file.path, header->len, known->checksum, found);
    ZERO_TRY(zero_safetensors_parse(s->file.path, s->file.bytes, header, &s->header));
    /* Counted first: a layout from outside may have more extents than there is
     * memory for. */
    int d = s->rank / m->table.layout.tp;
    int64_t count = zero_state_count_extents(&m->table, local, d);
    ZERO_FAIL_IF(count != s->header.n, ZERO_ERR_FORMAT,
                 "%s: has %d tensors: expected %" PRId64, s->file.path, s->header.n, count);
    ZERO_TRY(zero_state_table_extents(&m->table, local, d, &s->extents, &s->n));
    /* Entry i of the header is extent i of the layout, no more and no less. */
    int p = s->rank % m->table.layout.tp;
    for (int i = 0; i < s->n; i++) {
        const zero_safetensors_entry *e = &s->header.entries[i];
        const zero_extent *x = &s->extents[i];
        char name[ZERO_EXTENT_NAME];
        zero_extent_name(&m->table, p, x, name);
        const char *sum = zero_safetensors_metadata(&s->header, name);
        ZERO_FAIL_IF(
            strcmp(e->name, name) != 0 || strcmp(e->type, "F32") != 0 ||
                e->n != x->end - x->begin || !sum || strlen(sum) != ZERO_CHECKSUM - 1,
            ZERO_ERR_FORMAT,
            "%s: tensor %d is '%.100s' (%s, %" PRId64
            " elements): expected '%s' (F32, %" PRId64 ") with a checksum in __metadata__",
            s->file.path, i, e->name, e->type, e->n, name, x->end - x->begin);
    }
    return ZERO_OK;
}

zero_status zero_shard_open(const zero_storage_dir *dir, const zero_manifest *manifest,
                            const zero_state_local *local, int rank,
                            zero_shard_reader *shard)
{
    char name[64];
    ZERO_AT_END(zero_bytes_destroy) zero_bytes header = {0};
    ZERO_AT_END(zero_shard_close) zero_shard_reader s = {.rank = rank};
    zero_shard_name(rank, manifest->table.layout.n_ranks, name);
    ZERO_TRY(zero_file_open_in(dir, name, &s.file));
    ZERO_TRY(read_header(&s, manifest, local, &header));
    ZERO_GIVE(shard, s);
    return ZERO_OK;
}

void zero_shard_close(zero_shard_reader *shard)
{
    zero_file_close(&shard->file);
    zero_safetensors_destroy(&shard->header);
    free(shard->extents);
    *shard = (zero_shard_reader){0};
}

/* Extents of one part of the state ascend; those of the same elements adjoin in the
 * list. */
int zero_shard_find(const zero_shard_reader *shard, int tensor, zero_state_part part,
                    int64_t element)
{
    int begin = 0, end = shard->n / ZERO_STATES;
    while (end - begin > 1) {
        int middle = begin + (end - begin) / 2;
        const zero_extent *x = &shard->extents[middle * ZERO_STATES];
        bool is_after = x->tensor > tensor || (x->tensor == tensor && x->begin > element);
        if (is_after)
            end = middle;
        else
            begin = middle;
    }
    return begin * ZERO_STATES + (int)part;
}

zero_status zero_shard_read(const zero_shard_reader *shard, int i, float *values)
{
    const zero_safetensors_entry *e = &shard->header.entries[i];
    size_t bytes = (size_t)(e->end - e->begin);
    char found[ZERO_CHECKSUM];
    ZERO_TRY(zero_file_read(&shard->file, e->begin, values, bytes));
    zero_checksum(values, bytes, found);
    const char *known = zero_safetensors_metadata(&shard->header, e->name);
    if (strcmp(found, known) == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: %s (bytes %" PRIu64 " to %" PRIu64
                     ") was changed after it was written: expected checksum %s, found %s",
                     shard->file.path, e->name, e->begin, e->end, known, found);
}
