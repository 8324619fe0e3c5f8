/* Stage 3, P_os+g+p: each rank keeps the parameters of its own pieces only, too.
 *
 *     all types   16 Psi/N_d bytes
 *
 * A unit's parameters are gathered before they are used and released after, forward and
 * backward: with the reduction of gradients at most 3 (N-1)/N Psi elements per rank and
 * microbatch. Section 7.2.2 of the paper. A program is a row of uses, of which `prefetch`
 * are gathered ahead:
 *
 *     uses         F0  F1  F2  B2  B1  B0        prefetch = 1, each unit with its own
 *                                                group:
 *
 *     GATHER 0, GATHER_WAIT 0, GATHER 1, FORWARD 0, RELEASE 0,
 *     GATHER_WAIT 1, GATHER 2, FORWARD 1, RELEASE 1, GATHER_WAIT 2, FORWARD 2,
 *     GATHER 1, BACKWARD 2, RELEASE 2, REDUCE 2, GATHER_WAIT 1, GATHER 0, BACKWARD 1, ...
 *
 * Parameters that the next use, or one that is gathered ahead anyway, reads again are not
 * released: the last unit's stay between its forward and its backward. Groups of at most
 * `persist` elements are held whole and gathered after the update, as in stages 1 and 2.
 *
 * With `node_parameters` they are released after the last use in the program: a step
 * gathers each group once, whatever the number of microbatches, and backward gathers
 * nothing. They wait in the node's memory, of which each rank pays its share. ZeRO++'s hpZ
 * keeps a second partition of the parameters within each node for this; here the node has
 * them whole. Source: Wang and others, ZeRO++, arXiv:2306.10209, section 3.2. */

#include "base/grow.h"
#include "base/number.h"
#include "sharding/holdings.h"
#include "sharding/schedule_exchange.h"
#include "sharding/writer.h"

/* Uses whose parameters are read from the file before they are gathered. */
#define FETCHED_AHEAD 2

/* The uses of a program, in order: forward and backward passes over the units. */
struct uses {
    const zero_writer *w;
    int64_t n, ahead;
    bool trains;
    /* [n_groups] the last use that reads a group; NULL without node_parameters. Owned by
     * write_passes(). */
    int64_t *last;
};

struct use {
    int microbatch, unit;
    bool is_backward;
};

static struct use use_at(const struct uses *uses, int64_t at)
{
    int units = uses->w->model->n_units;
    int64_t pass = uses->trains ? 2 * units : units;
    int k = (int)(at % pass);
    bool is_backward = k >= units;
    return (struct use){.microbatch = (int)(at / pass),
                        .unit = is_backward ? 2 * units - 1 - k : k,
                        .is_backward = is_backward};
}

/* The groups whose parameters a use reads. */
static int read_by(const struct uses *uses, int64_t at, const int **groups)
{
    struct use use = use_at(uses, at);
    const zero_unit *unit = &uses->w->model->units[use.unit];
    *groups = unit->groups;
    return use.is_backward && !zero_write_backward_reads(uses->w, use.unit)
               ? 0
               : unit->n_groups;
}

/* True if a later use reads the group, and it stays here until then. */
static bool is_read_again(const struct uses *uses, int64_t at, int g)
{
    int64_t reach = zero_max(uses->ahead, 1);
    if (uses->last) return uses->last[g] > at;
    for (int64_t next = at + 1; next <= at + reach && next < uses->n; next++) {
        const int *groups;
        int n = read_by(uses, next, &groups);
        for (int k = 0; k < n; k++)
            if (groups[k] == g) return true;
    }
    return false;
}

/* Does something with the groups that use `at` reads, if there is such a use. */
static void for_groups(zero_writer *w, const struct uses *uses, int64_t at,
                       void (*act)(zero_writer *w, const struct uses *uses, int64_t at,
                                   int g))
{
    const int *groups;
    int n = at < uses->n ? read_by(uses, at, &groups) : 0;
    for (int k = 0; k < n; k++) act(w, uses, at, groups[k]);
}

/* The place of the whole parameters. Pieces that lie end to end already are gathered in
 * place. */
static int place_for(zero_writer *w, int g)
{
    const zero_schedule *s = w->s;
    int param = s->groups[g].param;
    bool shares = zero_schedule_shares(s),
         slice = s->input.partition == ZERO_PARTITION_SLICE;
    bool is_moved = param == ZERO_NO_BUFFER; /* to the file */
    if (!is_moved && s->buffers[param].space == ZERO_SPACE_NODE) return param;
    zero_space space = slice ? ZERO_SPACE_NODE : ZERO_SPACE_PART;
    return zero_hold_buffer(w->s, w->program, ZERO_CLASS_GATHERED, g, ZERO_HOLD_WHOLE,
                            shares ? space : ZERO_SPACE_OWN, s->input.type);
}

static void gather(zero_writer *w, const struct uses *uses, int64_t at, int g)
{
    (void)uses, (void)at;
    zero_write_due(w, g);
    if (w->param[g] != ZERO_NO_BUFFER) return;
    int piece = zero_write_await_piece(w, g);
    w->param[g] = place_for(w, g);
    w->arrived[g] = w->in->serial;
    zero_write_gather(w, g, piece, w->param[g]);
}

/* Pieces that lie in the file come to memory before they are gathered. */
static void fetch(zero_writer *w, const struct uses *uses, int64_t at, int g)
{
    (void)uses, (void)at;
    zero_write_fetch_params(w, g);
}

static void await(zero_writer *w, const struct uses *uses, int64_t at, int g)
{
    (void)uses, (void)at;
    zero_write_await(w, g);
}

static void release(zero_writer *w, const struct uses *uses, int64_t at, int g)
{
    bool stays = w->groups[g].param_held == ZERO_HOLD_WHOLE;
    if (stays || is_read_again(uses, at, g)) return;
    zero_write_group(w, ZERO_OP_RELEASE, g, ZERO_NO_BUFFER, w->param[g]);
    w->param[g] = ZERO_NO_BUFFER;
}

static bool find_last_uses(zero_schedule *s, struct uses *uses)
{
    if (!s->input.node_parameters) return true;
    s->status = zero_new(&uses->last, s->model->n_groups, "groups");
    if (s->status != ZERO_OK) return false;
    for (int64_t at = 0; at < uses->n; at++) {
        const int *groups;
        int n = read_by(uses, at, &groups);
        for (int k = 0; k < n; k++) uses->last[groups[k]] = at;
    }
    return true;
}

static void write_passes(zero_writer *w)
{
    int64_t units = w->model->n_units;
    struct uses uses = {.w = w,
                        .trains = w->program == ZERO_PROGRAM_STEP,
                        .ahead = zero_min(w->in->prefetch, 2 * units)};
    uses.n = uses.trains ? 2 * units * w->in->accumulation : units;
    if (!find_last_uses(w->s, &uses)) return;
    for (int64_t at = 0; at < uses.n; at++) {
        struct use use = use_at(&uses, at);
        if (use.unit == 0 && !use.is_backward) zero_write_load(w, use.microbatch);
        for_groups(w, &uses, at, gather);
        for (int64_t k = 1; k <= uses.ahead + FETCHED_AHEAD; k++)
            for_groups(w, &uses, at + k, fetch);
        for_groups(w, &uses, at, await);
        for (int64_t k = 1; k <= uses.ahead; k++) for_groups(w, &uses, at + k, gather);
        if (use.is_backward)
            zero_write_backward(w, use.unit);
        else
            zero_write_forward(w, use.unit);
        for_groups(w, &uses, at, release);
        if (use.is_backward) zero_write_complete(w, use.unit);
    }
    free(uses.last);
}

const zero_stage zero_stage_os_g_p = {.name = "P_os+g+p",
                                      .words = "+ parameters",
                                      .parameters = ZERO_HOLD_PIECE,
                                      .gradients = ZERO_HOLD_PIECE,
                                      .optimizer = ZERO_HOLD_PIECE,
                                      .path = &zero_gradient_in_pieces,
                                      .write_passes = write_passes};
