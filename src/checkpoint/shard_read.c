#include "checkpoint/shard_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

static zero_status read_header(zero_shard_reader *s, const zero_manifest *m,
                               const zero_state_local *local, zero_bytes *header)
{
    const zero_manifest_file *known = &m->shards[s->rank];
    if (s->file.bytes != known->bytes)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: has %" PRIu64 " bytes: expected the %" PRIu64
                         " that were written",
                         s->file.path, s->file.bytes, known->bytes);
    ZERO_TRY(zero_safetensors_read_header(&s->file, header));
    /* A header is compared with the manifest first, whatever else is wrong with the
     * file. */
    char found[ZERO_CHECKSUM];
    zero_checksum(header->bytes, header->len, found);
    if (strcmp(found, known->checksum) != 0)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: its header (bytes 0 to %zu) is not the one that was written: "
                         "expected checksum %s, found %s; the file was changed, or belongs "
                         "to another shard or checkpoint",
                         s->file.path, header->len, known->checksum, found);
    ZERO_TRY(zero_safetensors_parse(s->file.path, s->file.bytes, header, &s->header));
    /* Counted first: a layout from outside may have more extents than there is
     * memory for. */
    int d = s->rank / m->table.layout.tp;
    int64_t count = zero_state_count_extents(&m->table, local, d);
    if (count != s->header.n)
        return zero_fail(ZERO_ERR_FORMAT, "%s: has %d tensors: expected %" PRId64,
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
        if (strcmp(e->name, name) != 0 || strcmp(e->type, "F32") != 0 ||
            e->n != x->end - x->begin || !sum || strlen(sum) != ZERO_CHECKSUM - 1)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: tensor %d is '%.100s' (%s, %" PRId64
                             " elements): expected '%s' (F32, %" PRId64
                             ") with a checksum in __metadata__",
                             s->file.path, i, e->name, e->type, e->n, name,
                             x->end - x->begin);
    }
    return ZERO_OK;
}

zero_status zero_shard_open(const zero_storage_dir *dir, const zero_manifest *manifest,
                            const zero_state_local *local, int rank,
                            zero_shard_reader *shard)
{
    char name[64];
    zero_bytes header = {0};
    zero_shard_reader s = {.rank = rank};
    zero_shard_name(rank, manifest->table.layout.n_ranks, name);
    ZERO_TRY(zero_file_open_in(dir, name, &s.file));
    zero_status st = read_header(&s, manifest, local, &header);
    zero_bytes_destroy(&header);
    if (st == ZERO_OK)
        *shard = s;
    else
        zero_shard_close(&s);
    return st;
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
