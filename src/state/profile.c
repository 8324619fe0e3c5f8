#include "state/profile.h"

/* "block 11" is a "block", and so are "block_11" and "block11". */
static size_t kind_length(const char *name)
{
    size_t all = strlen(name), n = all;
    while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9') n--;
    if (n > 1 && n < all && strchr(" ._-", name[n - 1])) n--;
    return n > 0 ? n : all;
}

/* Searches from the newest kind: units of a kind mostly follow each other. */
static int find_column(zero_profile *p, const char *unit)
{
    const size_t n = kind_length(unit);
    for (int k = p->n_columns - 1; k > ZERO_ALL_UNITS; k--)
        if (kind_length(p->kinds[k]) == n && memcmp(p->kinds[k], unit, n) == 0) return k;
    p->kinds[p->n_columns] = unit;
    return p->n_columns++;
}

zero_status zero_profile_init(zero_profile *p, const zero_model *model)
{
    *p = (zero_profile){.n_columns = 1};
    ZERO_TRY(zero_new(&p->kinds, model->n_units + 1, "units of a profile"));
    ZERO_TRY(zero_new(&p->column_of, model->n_units, "units of a profile"));
    for (int u = 0; u < model->n_units; u++)
        p->column_of[u] = find_column(p, model->units[u].name);
    return zero_new(&p->all, ZERO_PROGRAMS * ZERO_OP_KINDS * p->n_columns,
                    "classes of a profile");
}

void zero_profile_destroy(zero_profile *p)
{
    zero_free(p->kinds, p->column_of, p->all);
    *p = (zero_profile){0};
}

static void add(zero_profile_entry *entry, const zero_profile_entry *more)
{
    entry->count += more->count;
    entry->seconds += more->seconds;
    entry->exchange += more->exchange;
}

int zero_profile_column(const zero_profile *p, const zero_instruction *i)
{
    return i->unit >= 0 ? p->column_of[i->unit] : ZERO_ALL_UNITS;
}

void zero_profile_add(zero_profile *p, zero_program_kind program, const zero_instruction *i,
                      zero_profile_entry more)
{
    zero_profile_entry *entries =
        p->all + ((int)program * ZERO_OP_KINDS + (int)i->op) * p->n_columns;
    const int column = zero_profile_column(p, i);
    add(&entries[ZERO_ALL_UNITS], &more);
    if (column != ZERO_ALL_UNITS) add(&entries[column], &more);
}

const zero_profile_entry *zero_profile_at(const zero_profile *p, zero_program_kind program,
                                          zero_op op, int column)
{
    return p->all + ((int)program * ZERO_OP_KINDS + (int)op) * p->n_columns + column;
}

bool zero_profile_is_exposed(const zero_profile *p, zero_op op)
{
    const zero_work_kind kind = zero_ops[op].kind;
    return kind == ZERO_WORK_EXCHANGE_WAIT || (p->is_of_device && kind == ZERO_WORK_COPY);
}

double zero_profile_exposed(const zero_profile *p, zero_program_kind program)
{
    double seconds = 0.0;
    for (zero_op op = 0; op < ZERO_OP_KINDS; op++) {
        if (zero_profile_is_exposed(p, op))
            seconds += zero_profile_at(p, program, op, ZERO_ALL_UNITS)->seconds;
    }
    return seconds;
}

double zero_profile_computing(const zero_profile *p, zero_program_kind program)
{
    double seconds = 0.0;
    for (zero_op i = 0; i < ZERO_OP_KINDS; i++) {
        const zero_profile_entry *entry = zero_profile_at(p, program, i, ZERO_ALL_UNITS);
        if (zero_ops[i].kind == ZERO_WORK_COMPUTE)
            seconds += entry->seconds - entry->exchange;
    }
    return seconds;
}

void zero_profile_kind(const zero_profile *p, int column, char name[ZERO_UNIT_NAME])
{
    snprintf(name, ZERO_UNIT_NAME, "%.*s", (int)kind_length(p->kinds[column]),
             p->kinds[column]);
}

/* ---- over ranks ---- */

zero_status zero_profile_gather(const zero_profile *p, zero_program_kind program,
                                zero_comm *comm, zero_profile_ranks *ranks)
{
    int n = ZERO_OP_KINDS * p->n_columns;
    ZERO_AT_END(zero_profile_ranks_destroy) zero_profile_ranks made = {.profile = p};
    ZERO_FREED double *seconds = NULL;
    zero_status st = zero_new(&made.rows, n, "classes of a profile");
    if (st == ZERO_OK)
        st = zero_new(&seconds, n * ((int64_t)comm->size + 1), "seconds of all ranks");
    ZERO_TRY(zero_agree(comm, st));
    for (int i = 0; i < n; i++) {
        made.rows[i].own = *zero_profile_at(p, program, (zero_op)0, i);
        seconds[i] = made.rows[i].own.seconds;
    }
    const double *all = seconds + n;
    ZERO_TRY(zero_comm_all_gather_doubles(comm, n, seconds, seconds + n));
    for (int i = 0; i < n; i++) {
        zero_profile_row *row = &made.rows[i];
        row->least = row->most = all[i];
        for (int r = 1; r < comm->size; r++) {
            row->least = fmin(row->least, all[(int64_t)r * n + i]);
            row->most = fmax(row->most, all[(int64_t)r * n + i]);
        }
    }
    ZERO_GIVE(ranks, made);
    return ZERO_OK;
}

void zero_profile_ranks_destroy(zero_profile_ranks *ranks)
{
    free(ranks->rows);
    *ranks = (zero_profile_ranks){0};
}

const zero_profile_row *zero_profile_row_at(const zero_profile_ranks *ranks, zero_op op,
                                            int column)
{
    return &ranks->rows[(int)op * ranks->profile->n_columns + column];
}
