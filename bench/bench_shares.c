#include "bench_shares.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "bench_report.h"

#define DOUBLES ((int)(sizeof(bench_share) / sizeof(double)))

/* A rank waits for late ranks in collectives and in votes. */
static bool is_wait(int op)
{
    return op == ZERO_OP_REDUCE_WAIT || op == ZERO_OP_GATHER_WAIT || op == ZERO_OP_LOSS ||
           op == ZERO_OP_OVERFLOW;
}

static bench_share share_of(const bench_profile *p)
{
    bench_share share = {.exchange = p->exchange / p->all,
                         .exposed = p->exposed / p->all,
                         .rest = 1.0,
                         .seconds = p->all / (double)p->steps};
    for (int op = 0; op < ZERO_OP_KINDS; op++) {
        for (int k = 0; k < BENCH_COLUMNS; k++) share.of[op][k] = p->of[op][k] / p->all;
        share.rest -= share.of[op][ZERO_ALL_UNITS];
    }
    return share;
}

static double busy(const bench_share *share)
{
    double sum = 0.0;
    for (int op = 0; op < ZERO_OP_KINDS; op++)
        if (!is_wait(op)) sum += share->of[op][ZERO_ALL_UNITS];
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

static void print_line(const bench_shares *shares, const char *name, double first,
                       double slowest)
{
    if (first == 0.0 && slowest == 0.0) return;
    printf("  %-34s%10.2f%7.2f%13.2f%7.2f\n", name, 1e3 * first * shares->first.seconds,
           100.0 * first, 1e3 * slowest * shares->slowest.seconds, 100.0 * slowest);
}

/* One line for a class of instructions, or one per kind of unit. */
static void print_class(const bench_shares *shares, zero_op op)
{
    static const char *const units[BENCH_COLUMNS] = {"", " embedding", " block", " head"};
    const double *first = shares->first.of[op], *slowest = shares->slowest.of[op];
    bool by_units =
        op == ZERO_OP_FORWARD || op == ZERO_OP_RECOMPUTE || op == ZERO_OP_BACKWARD;
    for (int k = by_units; k < (by_units ? BENCH_COLUMNS : 1); k++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", zero_op_name(op), units[k]);
        print_line(shares, name, first[k], slowest[k]);
    }
}

void bench_shares_print(const bench_shares *shares, const zero_config *config)
{
    const bench_share *first = &shares->first, *slowest = &shares->slowest;
    char title[64], rank[32];
    snprintf(title, sizeof title, "stage %d, %s: a step's time", config->plan.stage,
             zero_type_name(config->plan.type));
    snprintf(rank, sizeof rank, "rank %d: ms", shares->slowest_rank);
    printf("\n%-34s%12s%7s%13s%7s\n", title, "rank 0: ms", "%", rank, "%");
    for (int op = 0; op < ZERO_OP_KINDS; op++) print_class(shares, (zero_op)op);
    print_line(shares, "between instructions", first->rest, slowest->rest);
    print_line(shares, "all", 1.0, 1.0);
    print_line(shares, "incl. waiting for collectives", first->exposed, slowest->exposed);
    print_line(shares, "incl. exchange while computing", first->exchange,
               slowest->exchange);
}

json_t *bench_share_object(const bench_share *share)
{
    json_t *object = json_object();
    for (int op = 0; op < ZERO_OP_KINDS; op++)
        json_object_set_new(object, zero_op_name((zero_op)op),
                            bench_number(share->of[op][ZERO_ALL_UNITS]));
    json_object_set_new(object, "exposed", bench_number(share->exposed));
    json_object_set_new(object, "exchange", bench_number(share->exchange));
    return object;
}
