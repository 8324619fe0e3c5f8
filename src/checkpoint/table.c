#include "checkpoint/table.h"

static const int64_t most_params = INT64_C(1) << 62;

/* ---- tensors ---- */

static int by_name(const void *a, const void *b)
{
    const zero_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Tensors come in the order of their groups. */
static zero_status add_tensor(zero_state_table *t, int i, int64_t *total)
{
    zero_tensor *tensor = &t->tensors[i];
    int newest = i > 0 ? t->tensors[i - 1].group : -1;
    ZERO_FORMAT_IF(
        tensor->rows < 1 || tensor->cols < 1 ||
            tensor->rows > (most_params - *total) / tensor->cols,
        "tensor '%s' has %" PRId64 " rows and %" PRId64
        " columns: expected at least 1 of each, and 2^62 parameters in all at most",
        tensor->name, tensor->rows, tensor->cols);
    ZERO_FORMAT_IF(tensor->group < 0 || tensor->group < newest ||
                       tensor->group > newest + 1,
                   "tensor '%s' is in group %d, after one of group %d: expected groups in "
                   "order, from 0",
                   tensor->name, tensor->group, newest);
    if (!zero_state_table_is_shared(t)) tensor->cut = ZERO_CUT_NONE;
    /* Each slice has a row, or as many columns of each part as the others. */
    const int64_t most_rows = INT64_C(1) << 50; /* times slices fits in an int64_t */
    int64_t parts = tensor->cut_parts > 0 ? tensor->cut_parts : 1;
    bool is_sound = tensor->cut_parts >= 0;
    if (tensor->cut == ZERO_CUT_ROWS)
        is_sound =
            is_sound && tensor->rows >= t->layout.slices && tensor->rows <= most_rows;
    else if (tensor->cut == ZERO_CUT_COLS)
        is_sound = is_sound && tensor->cols % parts == 0 &&
                   tensor->cols / parts % t->layout.slices == 0;
    ZERO_FORMAT_IF(!is_sound,
                   "tensor '%s' [%" PRId64 ", %" PRId64 "] cannot be cut by %s of %" PRId64
                   " parts into %d slices",
                   tensor->name, tensor->rows, tensor->cols,
                   tensor->cut == ZERO_CUT_ROWS ? "rows" : "columns", parts,
                   t->layout.slices);
    ZERO_FORMAT_IF(
        zero_state_table_is_shared(t) && strchr(tensor->name, '@'),
        "tensor '%s' has an '@' in its name, which extents of a shared model have "
        "before the number of a part",
        tensor->name);
    tensor->offset =
        tensor->group == newest ? tensor[-1].offset + tensor[-1].rows * tensor[-1].cols : 0;
    tensor->whole_rows = tensor->rows;
    tensor->whole_cols = tensor->cols;
    tensor->first = 0;
    *total += tensor->rows * tensor->cols;
    const int stage = t->layout.stages ? t->layout.stages[i] : 0;
    ZERO_FORMAT_IF(
        stage < 0 || stage >= zero_max(t->layout.pp, 1) ||
            (tensor->group == newest && stage != t->stage[newest]),
        "tensor '%s' is in stage %d of %d: expected one below that, and that of its "
        "group",
        tensor->name, stage, t->layout.pp);
    t->stage[tensor->group] = stage;
    t->n_groups = tensor->group + 1;
    return ZERO_OK;
}

zero_status zero_state_table_init(zero_state_table *table, int n_tensors,
                                  const zero_tensor *tensors,
                                  const zero_state_layout *layout)
{
    ZERO_AT_END(zero_state_table_destroy)
    zero_state_table t = {.n_tensors = n_tensors, .layout = *layout};
    ZERO_FORMAT_IF(n_tensors < 1, "0 tensors: expected at least one");
    ZERO_FORMAT_IF(layout->n_ranks < 1 || layout->n_ranks > ZERO_SHARDS_MOST,
                   "tensors on %d ranks: expected 1 to %d ranks", layout->n_ranks,
                   ZERO_SHARDS_MOST);
    ZERO_FORMAT_IF(
        !zero_share_divides(layout->tp, layout->slices) ||
            layout->n_ranks % layout->tp != 0,
        "TP groups of %d ranks, of %d ranks in all, with %d slices: expected a "
        "size that divides the ranks, and up to %d slices: for each rank 1, 2, 4, "
        "8, ..., and any number for one alone",
        layout->tp, layout->n_ranks, layout->slices, ZERO_TP_MOST);
    ZERO_FORMAT_IF(n_tensors > ZERO_PIECES_MOST / layout->n_ranks ||
                       n_tensors > ZERO_PARTS_MOST / layout->tp,
                   "%d tensors on %d ranks, in TP groups of %d: expected at most %" PRId64
                   " pieces in all, and %" PRId64 " in a TP group",
                   n_tensors, layout->n_ranks, layout->tp, ZERO_PIECES_MOST,
                   ZERO_PARTS_MOST);
    ZERO_FORMAT_IF(
        layout->pp < 0 || layout->n_ranks / layout->tp % zero_max(layout->pp, 1) != 0,
        "%d stages of a pipeline, of %d ranks in TP groups of %d: expected as many "
        "groups in each",
        layout->pp, layout->n_ranks, layout->tp);
    int64_t total = 0;
    size_t n = (size_t)t.n_tensors;
    ZERO_TRY(zero_new(&t.stage, n, "groups"));
    ZERO_TRY(zero_new(&t.tensors, n, "tensors"));
    memcpy(t.tensors, tensors, n * sizeof *tensors);
    for (int i = 0; i < t.n_tensors; i++) ZERO_TRY(add_tensor(&t, i, &total));
    ZERO_FREED const zero_tensor **sorted = NULL;
    ZERO_TRY(zero_new(&sorted, t.n_tensors, "tensors"));
    for (int i = 0; i < t.n_tensors; i++) sorted[i] = &t.tensors[i];
    zero_sort(sorted, t.n_tensors, by_name);
    const char *twice = sorted[0]->name[0] == '\0' ? "" : NULL;
    for (int i = 1; i < t.n_tensors && !twice; i++)
        if (zero_same_text(sorted[i - 1]->name, sorted[i]->name)) twice = sorted[i]->name;
    ZERO_FORMAT_IF(
        twice,
        "two tensors are called '%s', or one has no name: expected names that differ",
        twice);
    t.layout.stages = NULL;
    ZERO_GIVE(table, t);
    return ZERO_OK;
}

void zero_state_table_destroy(zero_state_table *table)
{
    free(table->tensors);
    free(table->stage);
    *table = (zero_state_table){0};
}

/* ---- the parts of one p ---- */

zero_status zero_state_local_init(zero_state_local *local, const zero_state_table *table,
                                  int p)
{
    ZERO_AT_END(zero_state_local_destroy) zero_state_local l = {.p = p};
    ZERO_FREED int64_t *params = NULL;
    ZERO_TRY(zero_new(&params, table->n_groups, "groups"));
    ZERO_TRY(zero_new(&l.tensors, table->n_tensors, "tensors"));
    ZERO_TRY(zero_new(&l.partitions, table->n_groups, "groups"));
    /* Sets params[n_groups], too. */
    zero_share share = {table->layout.tp, l.p, table->layout.slices};
    for (int i = 0; i < table->n_tensors; i++) {
        zero_tensor *tensor = &l.tensors[i];
        *tensor = table->tensors[i];
        ZERO_TRY(zero_share_cut(&share, tensor));
        tensor->offset = params[tensor->group];
        params[tensor->group] += tensor->rows * tensor->cols;
    }
    const int N =
        table->layout.n_ranks / table->layout.tp / (int)zero_max(table->layout.pp, 1);
    ZERO_TRY(zero_partition_cut(table->layout.scheme, N, 1, table->n_groups, params,
                                l.partitions));
    ZERO_TRY(zero_partition_keep_whole(table->layout.optimizer, table->n_tensors, l.tensors,
                                       table->n_groups, l.partitions, &l.cuts));
    ZERO_TRY(zero_new(&l.first, table->n_groups, "groups"));
    for (int g = 0; g < table->n_groups; g++) l.first[g] = table->stage[g] * N;
    ZERO_GIVE(local, l);
    return ZERO_OK;
}

void zero_state_local_destroy(zero_state_local *local)
{
    zero_free(local->tensors, local->partitions, local->cuts, local->first);
    *local = (zero_state_local){0};
}

/* ---- extents ---- */

int64_t zero_extent_most(const zero_state_table *table)
{
    return ZERO_EXTENT_MAX / table->layout.tp;
}

zero_range zero_state_group_in_shard(const zero_state_local *local, int group, int d)
{
    const zero_partition *cut = &local->partitions[group];
    const int rank = d - local->first[group];
    return rank >= 0 && rank < cut->n_ranks ? zero_partition_shard(cut, rank)
                                            : (zero_range){0, 0};
}

zero_range zero_state_in_shard(const zero_state_local *local, int tensor, int d)
{
    const zero_tensor *of = &local->tensors[tensor];
    if (local->p > 0 && zero_tensor_is_replicated(of)) return (zero_range){0, 0};
    zero_range shard = zero_state_group_in_shard(local, of->group, d);
    zero_range own = zero_range_overlap(zero_range_of_tensor(of), shard);
    if (zero_range_is_empty(own)) return (zero_range){0, 0};
    return (zero_range){own.begin - of->offset, own.end - of->offset};
}

int zero_state_parts(const zero_state_table *table, int tensor)
{
    return zero_rule_parts(table->layout.optimizer, &table->tensors[tensor]);
}

int64_t zero_state_count_extents(const zero_state_table *t, const zero_state_local *local,
                                 int d)
{
    int64_t n = 0, most = zero_extent_most(t);
    for (int i = 0; i < t->n_tensors; i++) {
        zero_range own = zero_state_in_shard(local, i, d);
        if (!zero_range_is_empty(own))
            n += ((own.end - 1) / most - own.begin / most + 1) * zero_state_parts(t, i);
    }
    return n;
}

zero_status zero_state_table_extents(const zero_state_table *table,
                                     const zero_state_local *local, int d,
                                     zero_extent **list, int *n)
{
    int64_t count = zero_state_count_extents(table, local, d);
    zero_extent *made = NULL, *next;
    if (count > 0 && count <= INT32_MAX) made = malloc((size_t)count * sizeof *made);
    ZERO_TRY(zero_allocated(count == 0 || made,
                            "no memory for the %" PRId64 " extents of a shard", count));
    const int64_t most = zero_extent_most(table);
    next = made;
    for (int i = 0; made && i < table->n_tensors; i++) {
        zero_range own = zero_state_in_shard(local, i, d);
        for (int64_t at = own.begin, stop; at < own.end; at = stop) {
            stop = zero_min((at / most + 1) * most, own.end);
            for (int part = 0; part < zero_state_parts(table, i); part++)
                *next++ = (zero_extent){i, (zero_state_part)part, at, stop};
        }
    }
    *list = made;
    *n = (int)count;
    return ZERO_OK;
}

zero_range zero_extent_range(const zero_state_local *local, const zero_extent *extent)
{
    int64_t offset = local->tensors[extent->tensor].offset;
    return (zero_range){offset + extent->begin, offset + extent->end};
}

/* ---- names ---- */

void zero_extent_name(const zero_state_table *table, int p, const zero_extent *extent,
                      char name[ZERO_EXTENT_NAME])
{
    const zero_tensor *t = &table->tensors[extent->tensor];
    char of[24] = "";
    if (table->layout.tp > 1 && !zero_tensor_is_replicated(t))
        zero_print(of, "@%d/%d", p, table->layout.tp);
    snprintf(name, ZERO_EXTENT_NAME, "%s%s[%" PRId64 ":%" PRId64 "].%s", t->name, of,
             extent->begin, extent->end,
             zero_rule_part_name(table->layout.optimizer, (int)extent->part));
}

/* ---- elements of all shards ---- */

/* Ranks between the first and the last owner of a tensor have equally many of its
 * elements, so each tensor costs the same whatever the number of ranks: `steps` has
 * where that number of elements changes. */
static void add_to_owners(const zero_partition *cut, zero_range tensor, uint64_t *elements,
                          uint64_t *steps)
{
    int first = zero_partition_owner_of(cut, tensor.begin);
    int last = zero_partition_owner_of(cut, tensor.end - 1);
    for (int d = first; cut->cuts && d <= last; d++)
        elements[d] += (uint64_t)zero_range_len(
            zero_range_overlap(tensor, zero_partition_shard(cut, d)));
    if (cut->cuts) return;
    zero_range begin = zero_range_overlap(tensor, zero_partition_shard(cut, first));
    elements[first] += (uint64_t)zero_range_len(begin);
    if (last == first) return;
    zero_range end = zero_range_overlap(tensor, zero_partition_shard(cut, last));
    elements[last] += (uint64_t)zero_range_len(end);
    if (last == first + 1) return;
    uint64_t each = (uint64_t)zero_range_len(zero_partition_shard(cut, first + 1));
    steps[first + 1] += each;
    steps[last] -= each;
}

zero_status zero_state_add_elements(const zero_state_table *table,
                                    const zero_state_local *local, uint64_t *elements)
{
    int n = table->layout.n_ranks / table->layout.tp;
    ZERO_FREED uint64_t *steps = NULL;
    uint64_t each = 0;
    ZERO_TRY(zero_new(&steps, n, "shards"));
    for (int i = 0; i < table->n_tensors; i++) {
        const zero_tensor *t = &local->tensors[i];
        if (local->p > 0 && zero_tensor_is_replicated(t)) continue;
        const int first = local->first[t->group];
        add_to_owners(&local->partitions[t->group], zero_range_of_tensor(t),
                      elements + first, steps + first);
    }
    for (int d = 0; d < n; d++) {
        each += steps[d];
        elements[d] += each;
    }
    return ZERO_OK;
}

/* ---- elements of a whole tensor ---- */

int zero_state_holder(const zero_state_table *table, int tensor, int64_t whole)
{
    const zero_tensor *t = &table->tensors[tensor];
    const zero_state_layout *l = &table->layout;
    int64_t of_part = t->cols / zero_cut_parts(t);
    int p = 0;
    switch (t->cut) {
    case ZERO_CUT_ROWS:
        while (zero_share_row(t->rows, l->slices, (p + 1) * (l->slices / l->tp)) <=
               whole / t->cols)
            p++;
        return p;
    case ZERO_CUT_COLS: return (int)(whole % of_part / (of_part / l->tp));
    case ZERO_CUT_NONE: break;
    }
    return 0;
}

zero_state_place zero_state_find(const zero_state_local *local, int tensor, int64_t at,
                                 int64_t end)
{
    const zero_tensor *t = &local->tensors[tensor];
    zero_state_place place = {.run = zero_share_run_of_whole(t, at, end)};
    place.d = local->first[t->group] + zero_partition_owner_of(&local->partitions[t->group],
                                                               t->offset + place.run.local);
    return place;
}
