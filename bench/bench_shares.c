#include "bench_shares.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_report.h"

#define DOUBLES ((int)(sizeof(bench_share) / sizeof(double)))

/* A rank waits where others are late: for collectives, and where all agree. */
static bool is_wait(int op)
{
    return op == ZERO_OP_REDUCE_WAIT || op == ZERO_OP_GATHER_WAIT || op == ZERO_OP_LOSS ||
           op == ZERO_OP_OVERFLOW;
}

static bench_share share_of(const bench_profile *p)
{
    bench_share share = {.exposed = p->exposed / p->all, .rest = 1.0};
    for (int op = 0; op < ZERO_OP_KINDS; op++) {
        share.of_op[op] = p->of_op[op] / p->all;
        share.rest -= share.of_op[op];
    }
    return share;
}

static double busy(const bench_share *share)
{
    double sum = 0.0;
    for (int op = 0; op < ZERO_OP_KINDS; op++)
        if (!is_wait(op)) sum += share->of_op[op];
    return sum;
}

zero_status bench_shares_gather(const bench_engine *e, bench_shares *shares)
{
    int size = e->comm->size, slowest = 0;
    bench_share mine = share_of(&e->profile), *all = calloc((size_t)size, sizeof *all);
    ZERO_TRY(zero_agree(e->comm,
                        all ? ZERO_OK
                            : zero_fail(ZERO_ERR_NOMEM, "no memory for %d ranks", size)));
    zero_status st = zero_comm_all_gather_doubles(e->comm, DOUBLES, (const double *)&mine,
                                                  (double *)all);
    for (int r = 1; r < size; r++)
        if (busy(&all[r]) > busy(&all[slowest])) slowest = r;
    if (st == ZERO_OK) *shares = (bench_shares){all[0], all[slowest], slowest};
    free(all);
    return st;
}

static void print_line(const char *name, double first, double slowest)
{
    if (first == 0.0 && slowest == 0.0) return;
    printf("  %-30s%10.2f%11.2f\n", name, 100.0 * first, 100.0 * slowest);
}

void bench_shares_print(const bench_shares *shares, const zero_config *config)
{
    const bench_share *first = &shares->first, *slowest = &shares->slowest;
    char title[64];
    snprintf(title, sizeof title, "stage %" PRId64 ", %s: %% of the step", config->stage,
             config->dtype);
    printf("\n%-32s%10s%6srank %d\n", title, "rank 0", "", shares->slowest_rank);
    for (int op = 0; op < ZERO_OP_KINDS; op++)
        print_line(zero_op_name((zero_op)op), first->of_op[op], slowest->of_op[op]);
    print_line("between instructions", first->rest, slowest->rest);
    print_line("of all: exposed communication", first->exposed, slowest->exposed);
}

json_t *bench_share_object(const bench_share *share)
{
    json_t *object = json_object();
    for (int op = 0; op < ZERO_OP_KINDS; op++)
        json_object_set_new(object, zero_op_name((zero_op)op),
                            bench_number(share->of_op[op]));
    json_object_set_new(object, "exposed", bench_number(share->exposed));
    return object;
}
