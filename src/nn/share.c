#include "nn/share.h"

#define GRANULE 64 /* rows: kernels like whole ones */

int64_t zero_share_row(int64_t rows, int slices, int i)
{
    if (rows % slices == 0) return rows / slices * i;
    int64_t granule = zero_divide_up(rows, GRANULE) >= slices ? GRANULE : 1;
    int64_t granules = zero_divide_up(rows, granule);
    return zero_min(rows, granule * zero_divide_up(i * granules, slices));
}

/* ---- which elements ---- */

/* Columns of a part: here, and in the whole tensor. */
static int64_t part_cols(const zero_tensor *t, int64_t cols)
{
    return cols / zero_cut_parts(t);
}

zero_stretch zero_share_run(const zero_tensor *t, int64_t at, int64_t end)
{
    if (t->cut != ZERO_CUT_COLS || t->cols == t->whole_cols)
        return (zero_stretch){at, at + t->first * t->cols, end - at};
    int64_t here = part_cols(t, t->cols), there = part_cols(t, t->whole_cols);
    int64_t part = at / here, in_part = at % here; /* parts of all rows adjoin */
    return (zero_stretch){at, part * there + t->first + in_part,
                          zero_min(here - in_part, end - at)};
}

zero_stretch zero_share_run_of_whole(const zero_tensor *t, int64_t at, int64_t end)
{
    if (t->cut != ZERO_CUT_COLS || t->cols == t->whole_cols) {
        int64_t begin = t->first * t->cols;
        int64_t from = zero_max(at, begin), to = zero_min(end, begin + t->rows * t->cols);
        return (zero_stretch){from - begin, from, zero_max(to - from, 0)};
    }
    int64_t here = part_cols(t, t->cols), there = part_cols(t, t->whole_cols);
    int64_t part = at / there, in_part = zero_max(at % there - t->first, 0);
    if (in_part >= here) { /* behind its columns of this part */
        part++;
        in_part = 0;
    }
    int64_t from = part * there + t->first + in_part;
    int64_t n = zero_min(here - in_part, end - from);
    return (zero_stretch){part * here + in_part, from, zero_max(n, 0)};
}

/* ---- a rank's model ---- */

bool zero_share_divides(int ranks, int slices)
{
    return ranks >= 1 && slices >= ranks && slices <= ZERO_TP_MOST && slices % ranks == 0 &&
           (ranks == 1 || zero_is_power_of_two(slices / ranks));
}

zero_status zero_share_cut(const zero_share *share, zero_tensor *t)
{
    switch (t->cut) {
    case ZERO_CUT_ROWS: {
        int per_rank = share->slices / share->ranks;
        ZERO_INVALID_IF(t->rows < share->slices,
                        "--tp-slices %d: '%s' has only %" PRId64
                        " rows, and each slice needs one",
                        share->slices, t->name, t->rows);
        t->first = zero_share_row(t->rows, share->slices, share->rank * per_rank);
        t->rows =
            zero_share_row(t->whole_rows, share->slices, (share->rank + 1) * per_rank) -
            t->first;
        return ZERO_OK;
    }
    case ZERO_CUT_COLS: {
        int64_t parts = zero_cut_parts(t), of_part = t->cols / parts;
        ZERO_INVALID_IF(of_part % share->slices != 0,
                        "--tp-slices %d does not divide the %" PRId64
                        " columns of '%s' (%" PRId64 " parts of %" PRId64 ")",
                        share->slices, t->cols, t->name, parts, of_part);
        t->cols = parts * (of_part / share->ranks);
        t->first = of_part / share->ranks * share->rank;
        return ZERO_OK;
    }
    case ZERO_CUT_NONE: break;
    }
    return ZERO_OK;
}

static void *copied(const void *table, int n, size_t size)
{
    void *copy = malloc((size_t)n * size);
    if (copy) memcpy(copy, table, (size_t)n * size);
    return copy;
}

static zero_status share(const zero_model *whole, zero_model *m)
{
    ZERO_TRY(zero_model_check_described(whole));
    ZERO_INVALID_IF(
        m->share.rank < 0 || m->share.rank >= m->share.ranks ||
            !zero_share_divides(m->share.ranks, m->share.slices),
        "--tp-slices %d with --tp %d: sums are trees over the slices, of which "
        "each rank needs 1, 2, 4, 8, ..., got %d/%d; give --tp-slices %d, or that "
        "times a power of two, up to %d",
        m->share.slices, m->share.ranks, m->share.slices, m->share.ranks, m->share.ranks,
        ZERO_TP_MOST);
    m->tensors = copied(whole->tensors, whole->n_tensors, sizeof *m->tensors);
    m->groups = copied(whole->groups, whole->n_groups, sizeof *m->groups);
    m->units = copied(whole->units, whole->n_units, sizeof *m->units);
    ZERO_FAIL_IF(!m->tensors || !m->groups || !m->units, ZERO_ERR_NOMEM,
                 "no memory for the tables of %d units", whole->n_units);
    /* Tensors of a part have other lengths, so their groups do, too. */
    m->n_params = 0;
    for (int g = 0; g < m->n_groups; g++) m->groups[g].n_params = 0;
    for (int i = 0; i < m->n_tensors; i++) {
        zero_tensor *t = &m->tensors[i];
        zero_group *g = &m->groups[t->group];
        ZERO_TRY(zero_share_cut(&m->share, t));
        t->offset = g->n_params;
        g->n_params += t->rows * t->cols;
        m->n_params += t->rows * t->cols;
    }
    for (int i = 0; i < m->n_units; i++) {
        zero_unit *u = &m->units[i];
        ZERO_INVALID_IF(
            zero_share_has_parts(&m->share) && !u->part,
            "unit '%s' cannot be shared by %d ranks in %d slices: its passes have "
            "no parts (zero/model.h); use --tp 1",
            u->name, m->share.ranks, m->share.slices);
        u->share = m->share;
        for (int k = 0; k < u->n_groups; k++)
            u->tensors[k] = &m->tensors[m->groups[u->groups[k]].first_tensor];
    }
    return ZERO_OK;
}

zero_status zero_model_share(const zero_model *whole, zero_share with, zero_model *part)
{
    ZERO_AT_END(zero_model_destroy) zero_model m = *whole;
    m.tensors = NULL;
    m.groups = NULL;
    m.units = NULL;
    m.shape = NULL; /* the units' pointers lead to the whole model's */
    m.share = with;
    ZERO_TRY(share(whole, &m));
    ZERO_GIVE(part, m);
    return ZERO_OK;
}
