#include "checkpoint/shard.h"

/* ---- writing ---- */

/* The data of extent i and of those after it: the parts of the same elements. */
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

/* Its length depends on no digest and no checksum. */
static zero_status make_header(zero_shard_writer *s)
{
    const zero_manifest *m = s->manifest;
    char step[32], number[16], ranks[16], name[ZERO_EXTENT_NAME];
    ZERO_FREED zero_safetensors_entry *entries = NULL;
    ZERO_TRY(zero_new(&entries, s->n + 1, "extents of a shard"));
    zero_print(step, "%" PRId64, m->step);
    zero_print(number, "%d", s->source.rank);
    zero_print(ranks, "%d", m->table.layout.n_ranks);
    json_auto_t *texts =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "format", "zero checkpoint shard", "step",
                  step, "rank", number, "ranks", ranks, "digest", m->digest);
    ZERO_TRY(zero_allocated(texts, "no memory for the header of a shard"));
    for (int i = 0; i < s->n; i++) {
        const zero_extent *x = &s->extents[i];
        zero_extent_name(&m->table, s->local.p, x, name);
        ZERO_TRY(
            zero_allocated(json_object_set_new(texts, name, json_string(s->sums[i])) == 0,
                           "no memory for the checksum of %s", name));
        entries[i] = (zero_safetensors_entry){
            .name = json_object_iter_key(json_object_iter_at(texts, name)),
            .type = "F32",
            .n_dims = 1,
            .dims = {x->end - x->begin}};
    }
    zero_bytes_destroy(&s->header);
    ZERO_TRY(zero_safetensors_write_header(s->n, entries, texts, &s->header));
    s->file.bytes = s->n > 0 ? entries[s->n - 1].end : s->header.len;
    zero_checksum(s->header.bytes, s->header.len, s->file.checksum);
    return ZERO_OK;
}

zero_status zero_shard_prepare(const zero_shard_source *source,
                               const zero_manifest *manifest, zero_shard_writer *shard)
{
    ZERO_AT_END(zero_shard_forget)
    zero_shard_writer s = {.source = *source, .manifest = manifest};
    const zero_state_table *table = &manifest->table;
    int tp = table->layout.tp, rank = s.source.rank;
    ZERO_TRY(zero_state_local_init(&s.local, table, rank % tp));
    ZERO_TRY(zero_state_table_extents(table, &s.local, rank / tp, &s.extents, &s.n));
    ZERO_TRY(zero_new(&s.sums, s.n + 1, "checksums of a shard"));
    for (int i = 0; i < s.n; i++) memset(s.sums[i], '0', ZERO_CHECKSUM - 1);
    s.room = aligned_alloc(ZERO_SCRATCH_ALIGN, ZERO_STATES_ROOM * sizeof *s.room);
    ZERO_TRY(zero_allocated(s.room, "no memory for the numbers of a shard"));
    ZERO_TRY(make_header(&s));
    ZERO_GIVE(shard, s);
    return ZERO_OK;
}

void zero_shard_forget(zero_shard_writer *shard)
{
    zero_storage_close_file(&shard->output);
    zero_bytes_destroy(&shard->header);
    zero_state_local_destroy(&shard->local);
    zero_free(shard->extents, shard->sums, shard->room);
    *shard = (zero_shard_writer){0};
}

/* Checksums are those of memory, so errors of the disk, or on the way to it, show when the
 * file is read. */
static zero_status write_extents(zero_shard_writer *s, const zero_storage_dir *dir)
{
    char name[64];
    zero_state_block view;
    zero_shard_name(s->source.rank, s->manifest->table.layout.n_ranks, name);
    ZERO_TRY(zero_storage_create(dir, name, s->file.bytes, &s->output));
    ZERO_TRY(zero_storage_seek(&s->output, s->header.len));
    for (int i = 0; i < s->n; i++) {
        const zero_extent *x = &s->extents[i];
        if (x->part == ZERO_STATE_MASTER) ZERO_TRY(view_extents(s, i, &view));
        zero_checksum(view.part[x->part], extent_bytes(x), s->sums[i]);
        ZERO_TRY(zero_storage_write(&s->output, view.part[x->part], extent_bytes(x)));
        atomic_store(&s->written, i + 1);
    }
    return zero_storage_sync_file(&s->output);
}

zero_status zero_shard_write(zero_shard_writer *s, const zero_storage_dir *dir)
{
    zero_status st = write_extents(s, dir);
    atomic_store(&s->written, s->n);
    return st;
}

bool zero_shard_has_read(const zero_shard_writer *s, int group)
{
    int written = atomic_load(&s->written);
    for (int i = s->n - 1; i >= written; i--)
        if (s->local.tensors[s->extents[i].tensor].group == group) return false;
    return true;
}

zero_status zero_shard_finish(zero_shard_writer *s)
{
    ZERO_TRY(make_header(s));
    ZERO_TRY(zero_storage_seek(&s->output, 0));
    ZERO_TRY(zero_storage_write(&s->output, s->header.bytes, s->header.len));
    return zero_storage_finish(&s->output);
}

/* ---- reading ---- */

static zero_status read_header(zero_shard_reader *s, const zero_manifest *m,
                               const zero_state_local *local, zero_bytes *header)
{
    const zero_manifest_file *known = &m->shards[s->rank];
    ZERO_FORMAT_IF(s->file.bytes != known->bytes,
                   "%s: has %" PRIu64 " bytes: expected the %" PRIu64 " that were written",
                   s->file.path, s->file.bytes, known->bytes);
    ZERO_TRY(zero_safetensors_read_header(&s->file, header));
    /* A header is compared with the manifest first, whatever else is wrong with the
     * file. */
    char found[ZERO_CHECKSUM];
    zero_checksum(header->bytes, header->len, found);
    ZERO_FORMAT_IF(!zero_same_text(found, known->checksum),
                   "%s: its header (bytes 0 to %zu) is not the one that was written: "
                   "expected checksum %s, found %s; the file was changed, or belongs to "
                   "another shard or checkpoint",
                   s->file.path, header->len, known->checksum, found);
    ZERO_TRY(zero_safetensors_parse(s->file.path, s->file.bytes, header, &s->header));
    /* Counted first: a layout from outside may have more extents than there is
     * memory for. */
    int d = s->rank / m->table.layout.tp;
    int64_t count = zero_state_count_extents(&m->table, local, d);
    ZERO_FORMAT_IF(count != s->header.n, "%s: has %d tensors: expected %" PRId64,
                   s->file.path, s->header.n, count);
    ZERO_TRY(zero_state_table_extents(&m->table, local, d, &s->extents, &s->n));
    /* Entry i of the header is extent i of the layout, no more and no less. */
    int p = s->rank % m->table.layout.tp;
    for (int i = 0; i < s->n; i++) {
        const zero_safetensors_entry *e = &s->header.entries[i];
        const zero_extent *x = &s->extents[i];
        char name[ZERO_EXTENT_NAME];
        zero_extent_name(&m->table, p, x, name);
        const char *sum = zero_safetensors_metadata(&s->header, name);
        ZERO_FORMAT_IF(
            !zero_same_text(e->name, name) || !zero_same_text(e->type, "F32") ||
                e->n != x->end - x->begin || !sum || strlen(sum) != ZERO_CHECKSUM - 1,
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
    int begin = 0, end = shard->n; /* `begin` becomes the last part of those elements */
    while (end - begin > 1) {
        int middle = begin + (end - begin) / 2;
        const zero_extent *x = &shard->extents[middle];
        bool is_after = x->tensor > tensor || (x->tensor == tensor && x->begin > element);
        if (is_after)
            end = middle;
        else
            begin = middle;
    }
    return begin - (int)shard->extents[begin].part + (int)part;
}

zero_status zero_shard_read(const zero_shard_reader *shard, int i, float *values)
{
    const zero_safetensors_entry *e = &shard->header.entries[i];
    size_t bytes = (size_t)(e->end - e->begin);
    char found[ZERO_CHECKSUM];
    ZERO_TRY(zero_file_read(&shard->file, e->begin, values, bytes));
    zero_checksum(values, bytes, found);
    const char *known = zero_safetensors_metadata(&shard->header, e->name);
    ZERO_FORMAT_IF(!zero_same_text(found, known),
                   "%s: %s (bytes %" PRIu64 " to %" PRIu64
                   ") was changed after it was written: expected checksum %s, found %s",
                   shard->file.path, e->name, e->begin, e->end, known, found);
    return ZERO_OK;
}
