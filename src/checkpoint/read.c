#include "checkpoint/read.h"

#include "checkpoint/list.h"
#include "data/tokenizer_file.h"

#define MANIFEST_MOST ((size_t)1 << 30) /* bytes */

enum { PER_RANK = 2, MOST_OPEN = 64 };

static int tp_of(const zero_checkpoint *c)
{
    return c->manifest.table.layout.tp;
}

/* ---- opening ---- */

/* A whole small file. */
static zero_status read_file(const zero_checkpoint *c, const char *name, zero_bytes *text)
{
    ZERO_AT_END(zero_file_close) zero_file file = {0};
    ZERO_TRY(zero_file_open_in(&c->dir, name, &file));
    return zero_bytes_read_file(text, &file, MANIFEST_MOST);
}

zero_status zero_checkpoint_open(const char *path, const zero_bytes *text,
                                 zero_checkpoint *c)
{
    ZERO_AT_END(zero_checkpoint_close) zero_checkpoint made = {0};
    if (text) ZERO_TRY(zero_bytes_append(&made.text, text->bytes, text->len));
    char name[ZERO_STORAGE_PATH + 64];
    ZERO_TRY(zero_storage_open(path, &made.dir));
    if (!made.text.bytes) ZERO_TRY(read_file(&made, ZERO_MANIFEST_NAME, &made.text));
    zero_print(name, "%s/" ZERO_MANIFEST_NAME, path);
    ZERO_TRY(zero_manifest_parse(name, made.text.bytes, made.text.len, &made.manifest));
    /* The path's last name; trailing slashes (shell completion) are ignored. */
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    snprintf(name, ZERO_CHECKPOINT_NAME, "%.*s", (int)(end - begin), path + begin);
    /* A directory with the name of another step was swapped, or copied over. */
    int64_t step, own = made.manifest.step;
    ZERO_FORMAT_IF(zero_checkpoint_is_name(name, &step) && step != own,
                   "%s: its manifest is that of step %" PRId64
                   ": the directory was renamed, or its files belong to another",
                   path, own);
    made.n_shards = (int)zero_min(2 * (int64_t)tp_of(&made), MOST_OPEN);
    made.n_extents = PER_RANK * ZERO_STATES * tp_of(&made);
    ZERO_TRY(
        zero_new(&made.block, ZERO_STATES * ZERO_EXTENT_MAX, "numbers of a checkpoint"));
    ZERO_TRY(zero_new(&made.shards, made.n_shards, "shards"));
    ZERO_TRY(zero_new(&made.extents, made.n_extents, "extents"));
    ZERO_TRY(zero_new(&made.locals, tp_of(&made), "parts of a model"));
    ZERO_GIVE(c, made);
    return ZERO_OK;
}

void zero_checkpoint_close(zero_checkpoint *c)
{
    for (int i = 0; c->shards && i < c->n_shards; i++) zero_shard_close(&c->shards[i]);
    for (int i = 0; c->extents && i < c->n_extents; i++) free(c->extents[i].values);
    for (int p = 0; c->locals && p < tp_of(c); p++) zero_state_local_destroy(&c->locals[p]);
    zero_free(c->shards, c->extents, c->locals);
    zero_storage_close(&c->dir);
    zero_manifest_destroy(&c->manifest);
    zero_bytes_destroy(&c->text);
    free(c->block);
    *c = (zero_checkpoint){0};
}

/* ---- shards and extents ---- */

/* The tensors' parts of one p, valid until the checkpoint is closed. */
static zero_status local_of(zero_checkpoint *c, int p, const zero_state_local **local)
{
    *local = &c->locals[p];
    return c->locals[p].tensors
               ? ZERO_OK
               : zero_state_local_init(&c->locals[p], &c->manifest.table, p);
}

zero_status zero_checkpoint_shard(zero_checkpoint *c, int rank,
                                  const zero_shard_reader **shard)
{
    const zero_state_local *local;
    zero_shard_reader *found = NULL, *oldest = &c->shards[0];
    ZERO_TRY(local_of(c, rank % tp_of(c), &local));
    for (int i = 0; i < c->n_shards && !found; i++) {
        if (c->shards[i].used < oldest->used) oldest = &c->shards[i];
        if (c->shards[i].file.is_open && c->shards[i].rank == rank) found = &c->shards[i];
    }
    if (!found) {
        found = oldest;
        zero_shard_close(found);
        ZERO_TRY(zero_shard_open(&c->dir, &c->manifest, local, rank, found));
    }
    found->used = ++c->clock;
    *shard = found;
    return ZERO_OK;
}

static bool holds(const zero_kept_extent *kept, int rank, const zero_extent *x)
{
    return kept->used > 0 && kept->rank == rank && kept->extent.tensor == x->tensor &&
           kept->extent.part == x->part && kept->extent.begin <= x->begin &&
           x->begin < kept->extent.end;
}

/* The extent with the first element of x, which is read into the place of the older one
 * unless it is there. */
static zero_status get_extent(zero_checkpoint *c, int rank, const zero_extent *x,
                              const zero_kept_extent **kept)
{
    const zero_shard_reader *shard;
    zero_kept_extent *places =
        &c->extents[(rank % tp_of(c) * ZERO_STATES + (int)x->part) * PER_RANK];
    zero_kept_extent *to = &places[places[1].used < places[0].used];
    for (int i = 0; i < PER_RANK; i++)
        if (holds(&places[i], rank, x)) to = &places[i];
    if (!holds(to, rank, x)) {
        if (!to->values)
            ZERO_TRY(zero_new(&to->values, zero_extent_most(&c->manifest.table),
                              "numbers of an extent"));
        to->used = 0;
        ZERO_TRY(zero_checkpoint_shard(c, rank, &shard));
        int i = zero_shard_find(shard, x->tensor, x->part, x->begin);
        ZERO_TRY(zero_shard_read(shard, i, to->values));
        to->rank = rank;
        to->extent = shard->extents[i];
    }
    to->used = ++c->clock;
    *kept = to;
    return ZERO_OK;
}

zero_status zero_checkpoint_tensor(zero_checkpoint *c, int tensor, zero_state_part part,
                                   int64_t begin, int64_t end, float *values)
{
    const zero_state_table *table = &c->manifest.table;
    for (int64_t at = begin; at < end;) {
        const zero_state_local *local;
        const zero_kept_extent *kept = NULL;
        ZERO_TRY(local_of(c, zero_state_holder(table, tensor, at), &local));
        zero_state_place place = zero_state_find(local, tensor, at, end);
        zero_extent x = {tensor, part, place.run.local, place.run.local + place.run.n};
        ZERO_TRY(get_extent(c, place.d * table->layout.tp + local->p, &x, &kept));
        int64_t n = zero_min(x.end, kept->extent.end) - x.begin;
        zero_copy(values + (at - begin), kept->values + (x.begin - kept->extent.begin), n);
        at += n;
    }
    return ZERO_OK;
}

/* ---- elements of groups ---- */

/* A wish for elements of the model's groups, and their receiver. */
struct fetch {
    zero_checkpoint *c;
    const zero_model *model;
    const zero_range *wishes;
    const zero_checkpoint_receiver *to;
};

bool zero_checkpoint_has_pieces(const zero_checkpoint *c, const zero_model *model)
{
    return tp_of(c) == 1 && model->share.ranks == 1;
}

/* Extent i and those after it are the parts of the same elements. */
static zero_status visit_shard(const zero_checkpoint *c, const zero_state_local *local,
                               int rank, const zero_piece_visitor *visitor)
{
    ZERO_FREED zero_extent *extents = NULL;
    int n;
    ZERO_TRY(zero_state_table_extents(&c->manifest.table, local, rank, &extents, &n));
    for (int i = 0, parts; i < n; i += parts) {
        parts = zero_state_parts(&c->manifest.table, extents[i].tensor);
        int group = local->tensors[extents[i].tensor].group;
        zero_piece piece = {rank, i, parts, group, zero_extent_range(local, &extents[i])};
        ZERO_TRY(visitor->visit(visitor->arg, &piece));
    }
    return ZERO_OK;
}

zero_status zero_checkpoint_visit_pieces(zero_checkpoint *c, int n,
                                         const zero_range *wishes,
                                         const zero_piece_visitor *visitor)
{
    const zero_state_local *local;
    const int n_groups = c->manifest.table.n_groups;
    ZERO_TRY(local_of(c, 0, &local));
    for (int rank = 0; rank < c->manifest.table.layout.n_ranks; rank++) {
        bool is_wanted = false;
        for (int g = 0; g < n_groups; g++) {
            zero_range own = zero_state_group_in_shard(local, g, rank);
            for (int i = 0; i < n && !is_wanted; i++)
                is_wanted =
                    !zero_range_is_empty(zero_range_overlap(own, wishes[i * n_groups + g]));
        }
        if (is_wanted) ZERO_TRY(visit_shard(c, local, rank, visitor));
    }
    return ZERO_OK;
}

zero_status zero_checkpoint_read_piece(zero_checkpoint *c, const zero_piece *piece,
                                       float *values)
{
    const zero_shard_reader *shard;
    ZERO_TRY(zero_checkpoint_shard(c, piece->rank, &shard));
    for (int k = 0; k < piece->parts; k++) {
        int i = piece->extent + k;
        ZERO_TRY(zero_shard_read(
            shard, i, values + shard->extents[i].part * zero_range_len(piece->range)));
    }
    return ZERO_OK;
}

zero_status zero_checkpoint_expect_piece(zero_checkpoint *c, const zero_piece *piece)
{
    const zero_shard_reader *shard;
    ZERO_TRY(zero_checkpoint_shard(c, piece->rank, &shard));
    const zero_safetensors_entry *first = &shard->header.entries[piece->extent];
    zero_file_expect(&shard->file, first->begin,
                     first[piece->parts - 1].end - first->begin);
    return ZERO_OK;
}

zero_status zero_checkpoint_hand_over(const zero_piece *piece, float *values,
                                      const zero_range *wishes,
                                      const zero_checkpoint_receiver *to)
{
    zero_state_block block = {.range =
                                  zero_range_overlap(piece->range, wishes[piece->group])};
    if (zero_range_is_empty(block.range)) return ZERO_OK;
    for (int part = 0; part < piece->parts; part++)
        block.part[part] = values + part * zero_range_len(piece->range) +
                           (block.range.begin - piece->range.begin);
    return to->receive(to->arg, piece->group, &block);
}

static zero_status fetch_piece(void *arg, const zero_piece *piece)
{
    const struct fetch *f = arg;
    if (!zero_piece_is_wished(piece, f->wishes)) return ZERO_OK;
    ZERO_TRY(zero_checkpoint_read_piece(f->c, piece, f->c->block));
    return zero_checkpoint_hand_over(piece, f->c->block, f->wishes, f->to);
}

/* A shared model: elements of the rank's part of a tensor. */
static zero_status fetch_elements(const struct fetch *f, int tensor, zero_range elements)
{
    const zero_tensor *t = &f->model->tensors[tensor];
    zero_state_block block = {
        .range = {t->offset + elements.begin, t->offset + elements.end}};
    for (int part = 0; part < zero_state_parts(&f->c->manifest.table, tensor); part++) {
        block.part[part] = f->c->block + part * ZERO_EXTENT_MAX;
        for (int64_t at = elements.begin; at < elements.end;) {
            zero_stretch run = zero_share_run(t, at, elements.end);
            ZERO_TRY(zero_checkpoint_tensor(f->c, tensor, (zero_state_part)part, run.whole,
                                            run.whole + run.n,
                                            block.part[part] + (at - elements.begin)));
            at += run.n;
        }
    }
    return f->to->receive(f->to->arg, t->group, &block);
}

zero_status zero_checkpoint_fetch(zero_checkpoint *c, const zero_model *model,
                                  const zero_range *wishes,
                                  const zero_checkpoint_receiver *to)
{
    struct fetch f = {c, model, wishes, to};
    if (zero_checkpoint_has_pieces(c, model))
        return zero_checkpoint_visit_pieces(c, 1, wishes,
                                            &(zero_piece_visitor){fetch_piece, &f});
    /* Blocks end where extents do if the same number of ranks wrote them. */
    const int64_t most = ZERO_EXTENT_MAX / model->share.ranks;
    for (int i = 0; i < model->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        zero_range wanted = zero_range_overlap(zero_range_of_tensor(t), wishes[t->group]);
        for (int64_t at = wanted.begin - t->offset, end = wanted.end - t->offset, stop;
             at < end; at = stop) {
            stop = zero_min((at / most + 1) * most, end);
            ZERO_TRY(fetch_elements(&f, i, (zero_range){at, stop}));
        }
    }
    return ZERO_OK;
}

/* ---- everything ---- */

zero_status zero_checkpoint_tokenizer(zero_checkpoint *c, zero_tokenizer *tokenizer)
{
    const zero_manifest_file *known = &c->manifest.tokenizer;
    char path[ZERO_STORAGE_PATH + 64], found[ZERO_CHECKSUM];
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    ZERO_INVALID_IF(!c->manifest.has_tokenizer,
                    "%s has no tokenizer: the run was trained on tokens", c->dir.path);
    zero_print(path, "%s/" ZERO_TOKENIZER_NAME, c->dir.path);
    ZERO_TRY(read_file(c, ZERO_TOKENIZER_NAME, &text));
    zero_checksum(text.bytes, text.len, found);
    if (text.len == known->bytes && zero_same_text(found, known->checksum))
        return zero_tokenizer_parse_file(path, text.bytes, text.len, tokenizer);
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: was changed after it was written: expected %" PRIu64
                     " bytes with checksum %s, found %zu with %s",
                     path, known->bytes, known->checksum, text.len, found);
}

zero_status zero_checkpoint_verify(zero_checkpoint *c)
{
    for (int rank = 0; rank < c->manifest.table.layout.n_ranks; rank++) {
        const zero_shard_reader *shard;
        ZERO_TRY(zero_checkpoint_shard(c, rank, &shard));
        for (int i = 0; i < shard->n; i++) ZERO_TRY(zero_shard_read(shard, i, c->block));
    }
    ZERO_AT_END(zero_tokenizer_destroy) zero_tokenizer tokenizer = {0};
    return c->manifest.has_tokenizer ? zero_checkpoint_tokenizer(c, &tokenizer) : ZERO_OK;
}
