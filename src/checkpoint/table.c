#include "checkpoint/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/range.h"
#include "nn/model.h"

static const int64_t most_params = INT64_C(1) << 62;

/* ---- tensors ---- */

static int by_name(const void *a, const void *b)
{
    const zero_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static zero_status check_names(const zero_state_table *t)
{
    const zero_tensor **sorted = malloc((size_t)t->n_tensors * sizeof *sorted);
    if (!sorted) return zero_fail(ZERO_ERR_NOMEM, "no memory for %d tensors", t->n_tensors);
    for (int i = 0; i < t->n_tensors; i++) sorted[i] = &t->tensors[i];
    qsort(sorted, (size_t)t->n_tensors, sizeof *sorted, by_name);
    const char *twice = sorted[0]->name[0] == '\0' ? "" : NULL;
    for (int i = 1; i < t->n_tensors && !twice; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0) twice = sorted[i]->name;
    free(sorted);
    if (!twice) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "two tensors are called '%s', or one has no name: expected names that "
                     "differ",
                     twice);
}

/* Tensors come in the order of their groups. */
static zero_status add_tensor(zero_state_table *t, int i, int64_t *total)
{
    zero_tensor *tensor = &t->tensors[i];
    int newest = i > 0 ? t->tensors[i - 1].group : -1;
    if (tensor->rows < 1 || tensor->cols < 1 ||
        tensor->rows > (most_params - *total) / tensor->cols)
        return zero_fail(ZERO_ERR_FORMAT,
                         "tensor '%s' has %" PRId64 " rows and %" PRId64
                         " columns: expected at least 1 of each, and 2^62 parameters in "
                         "all at most",
                         tensor->name, tensor->rows, tensor->cols);
    if (tensor->group < 0 || tensor->group < newest || tensor->group > newest + 1)
        return zero_fail(ZERO_ERR_FORMAT,
                         "tensor '%s' is in group %d, after one of group %d: expected "
                         "groups in order, from 0",
                         tensor->name, tensor->group, newest);
    tensor->offset = t->group_params[tensor->group];
    t->group_params[tensor->group] += tensor->rows * tensor->cols;
    *total += tensor->rows * tensor->cols;
    t->n_groups = tensor->group + 1;
    return ZERO_OK;
}

static zero_status allocate(zero_state_table *t, const zero_tensor *tensors)
{
    size_t n = (size_t)t->n_tensors;
    t->tensors = calloc(n, sizeof *t->tensors);
    t->group_params = calloc(n, sizeof *t->group_params); /* at most one for each tensor */
    t->partitions = calloc(n, sizeof *t->partitions);
    if (!t->tensors || !t->group_params || !t->partitions)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %d tensors", t->n_tensors);
    memcpy(t->tensors, tensors, n * sizeof *tensors);
    return ZERO_OK;
}

static zero_status fill(zero_state_table *t, const zero_tensor *tensors)
{
    int64_t total = 0;
    ZERO_TRY(allocate(t, tensors));
    for (int i = 0; i < t->n_tensors; i++) ZERO_TRY(add_tensor(t, i, &total));
    ZERO_TRY(check_names(t));
    return zero_partition_cut(t->scheme, t->n_ranks, t->n_groups, t->group_params,
                              t->partitions);
}

zero_status zero_state_table_init(zero_state_table *table, int n_tensors,
                                  const zero_tensor *tensors, zero_partition_scheme scheme,
                                  int n_ranks)
{
    zero_state_table t = {.n_tensors = n_tensors, .n_ranks = n_ranks, .scheme = scheme};
    if (n_tensors < 1 || n_ranks < 1 || n_ranks > ZERO_SHARDS_MOST)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%d tensors on %d ranks: expected at least one tensor and 1 to %d "
                         "ranks",
                         n_tensors, n_ranks, ZERO_SHARDS_MOST);
    zero_status st = fill(&t, tensors);
    if (st == ZERO_OK)
        *table = t;
    else
        zero_state_table_destroy(&t);
    return st;
}

void zero_state_table_destroy(zero_state_table *table)
{
    free(table->tensors);
    free(table->group_params);
    free(table->partitions);
    *table = (zero_state_table){0};
}

/* ---- extents ---- */

/* The elements of a tensor that a rank owns. */
static zero_range owned_of(const zero_state_table *t, int tensor, int rank)
{
    const zero_tensor *of = &t->tensors[tensor];
    zero_range shard = zero_partition_shard(&t->partitions[of->group], rank);
    zero_range own = zero_range_overlap(zero_range_of_tensor(of), shard);
    return (zero_range){own.begin - of->offset, own.end - of->offset};
}

/* Counts without listing: a table from outside may claim any number. */
static int64_t count_extents(const zero_state_table *t, int rank)
{
    int64_t blocks = 0;
    for (int i = 0; i < t->n_tensors; i++) {
        zero_range own = owned_of(t, i, rank);
        if (!zero_range_is_empty(own))
            blocks += (own.end - 1) / ZERO_EXTENT_MAX - own.begin / ZERO_EXTENT_MAX + 1;
    }
    return blocks * ZERO_STATES;
}

static void write_extents(const zero_state_table *t, int rank, zero_extent *list)
{
    for (int i = 0; i < t->n_tensors; i++) {
        zero_range own = owned_of(t, i, rank);
        for (int64_t at = own.begin, stop; at < own.end; at = stop) {
            stop = zero_min((at / ZERO_EXTENT_MAX + 1) * ZERO_EXTENT_MAX, own.end);
            for (int part = 0; part < ZERO_STATES; part++)
                *list++ = (zero_extent){i, (zero_state_part)part, at, stop};
        }
    }
}

zero_status zero_state_table_extents(const zero_state_table *table, int rank,
                                     zero_extent **list, int *n)
{
    int64_t count = count_extents(table, rank);
    zero_extent *made = NULL;
    if (count > 0 && count <= INT32_MAX) made = malloc((size_t)count * sizeof *made);
    if (count > 0 && !made)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the %" PRId64 " extents of a shard",
                         count);
    if (made) write_extents(table, rank, made);
    *list = made;
    *n = (int)count;
    return ZERO_OK;
}

zero_range zero_extent_range(const zero_state_table *table, const zero_extent *extent)
{
    int64_t offset = table->tensors[extent->tensor].offset;
    return (zero_range){offset + extent->begin, offset + extent->end};
}

const char *zero_state_part_name(zero_state_part part)
{
    static const char *const names[] = {"master", "momentum", "variance"};
    return names[part];
}

void zero_extent_name(const zero_state_table *table, const zero_extent *extent,
                      char name[ZERO_EXTENT_NAME])
{
    snprintf(name, ZERO_EXTENT_NAME, "%s[%" PRId64 ":%" PRId64 "].%s",
             table->tensors[extent->tensor].name, extent->begin, extent->end,
             zero_state_part_name(extent->part));
}
