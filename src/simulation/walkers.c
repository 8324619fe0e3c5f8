#include "simulation/walker.h"

#include "base/fail.h"

void zero_walkers_stir(void *walkers, int rank)
{
    zero_walkers *w = walkers;
    w->list[rank].stirred = true;
    zero_walker_order_look(w, rank);
}

/* ---- states ---- */

/* The rank computes, or adds, until `until`. */
static void compute(zero_walkers *w, int rank, double seconds, double sums)
{
    zero_walker *k = &w->list[rank];
    k->state = ZERO_WALKER_COMPUTES;
    k->from = w->events.now;
    k->seconds = seconds;
    k->sums = sums;
    k->until = k->from + seconds + sums;
    k->busy = k->from + sums;
    k->due = k->until;
    zero_walker_order(w, rank, k->due);
    zero_walker_order_look(w, rank);
}

/* Adds up a wait that is over: until the last rank had come, it was for that rank; then for
 * links. */
static void note_wait(zero_walkers *w, int rank, const zero_action *a)
{
    zero_walker *k = &w->list[rank];
    double waited = fmax(w->events.now - k->from - k->sums, 0.0);
    k->waited += waited;
    k->spent.sums += k->sums;
    if (a->kind == ZERO_WORK_TRANSFER_WAIT) {
        k->spent.disk += waited;
        return;
    }
    /* When the last rank came to what this rank waits for. */
    double joined = a->kind == ZERO_WORK_AGREE ? k->joined : zero_walker_joined(w, rank, a);
    double for_rank = fmin(fmax(joined - k->from, 0.0), waited);
    k->spent.waiting += for_rank;
    k->spent.exposed += waited - for_rank;
}

static void end_agreement(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    if (k->agreed++ == 0) k->joined = zero_agreement_joined(w->agreements, rank);
    k->agrees = false;
}

static bool wait_is_over(zero_walkers *w, int rank, const zero_action *a)
{
    switch (a->kind) {
    case ZERO_WORK_EXCHANGE_WAIT: return zero_walker_exchange_is_over(w, rank, a);
    case ZERO_WORK_TRANSFER_WAIT: return zero_walker_transfer_is_over(w, rank, a);
    case ZERO_WORK_AGREE: {
        /* Begins agreements of the present action until one is not over at once. */
        zero_walker *k = &w->list[rank];
        while (!k->agrees && k->agreed < a->n_agreements) {
            int64_t bytes = a->bytes[k->agreed];
            k->agrees = true;
            if (zero_agreement_begin(w->agreements, rank, bytes, a->gathers))
                end_agreement(w, rank);
        }
        return !k->agrees;
    }
    default: return true;
    }
}

static void wait(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    k->from = w->events.now;
    k->sums = zero_walker_continue_chains(w, rank);
    k->busy = k->from + k->sums;
    k->state = ZERO_WALKER_WAITS;
    if (wait_is_over(w, rank, zero_walker_present(w, rank)))
        zero_walker_order(w, rank, k->busy);
    zero_walker_order_look(w, rank);
}

/* The rank looks at all that it has in flight. */
static void look(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    k->stirred = false;
    k->looks = true;
    double seconds = zero_exchange_look(w->exchanges, rank);
    seconds += zero_walker_continue_chains(w, rank);
    zero_walker_run_ahead(w, rank);
    k->looks = false;
    k->sums += seconds;
    k->busy = w->events.now + seconds;
    if (k->state == ZERO_WALKER_COMPUTES) k->until += seconds;
    zero_walker_order_look(w, rank);
}

/* ---- the walk ---- */

static void begin_step(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    k->at = k->ahead = 0;
    k->step_began = w->events.now;
    k->spent = (zero_simulated_rank){0};
    if (k->step < w->input->steps - 1 || w->is_reported) return;
    w->is_reported = true;
    w->origin = w->events.now;
    zero_network_forget(zero_exchanges_network(w->exchanges));
}

/* Executes the present action, unless it takes time: then the state changes. */
static void execute(zero_walkers *w, int rank, const zero_action *a)
{
    zero_walker *k = &w->list[rank];
    double seconds;
    switch (a->kind) {
    case ZERO_WORK_COMPUTE:
        if (a->seconds > 0.0) compute(w, rank, a->seconds * k->pace, 0.0);
        break;
    case ZERO_WORK_EXCHANGE:
        seconds = zero_walker_begin_exchange(w, rank, a);
        if (seconds > 0.0) compute(w, rank, 0.0, seconds);
        break;
    case ZERO_WORK_TRANSFER: zero_walker_begin_transfer(w, rank, a); break;
    case ZERO_WORK_COPY:
    case ZERO_WORK_FREE: break;
    default:
        if (!wait_is_over(w, rank, a)) wait(w, rank);
    }
}

/* The present action is over. */
static void pass(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    const zero_action *a = zero_walker_present(w, rank);
    zero_walker_emit(w, rank, a, k->began, k->waited);
    k->at++;
}

static void act(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    k->state = ZERO_WALKER_ACTS;
    while (k->state == ZERO_WALKER_ACTS) {
        if (k->at == zero_walker_actions(w, rank)->n) {
            k->spent.step = w->events.now - k->step_began;
            if (++k->step < w->input->steps) {
                begin_step(w, rank);
                continue;
            }
            k->state = ZERO_WALKER_ENDED;
            w->ended++;
            zero_walker_order_look(w, rank);
            return;
        }
        const zero_action *a = zero_walker_present(w, rank);
        zero_walker_run_ahead(w, rank);
        if (a->is_of_stream && k->at < k->ahead) {
            k->at++;
            continue;
        }
        if (k->ahead <= k->at) k->ahead = k->at + 1;
        k->began = w->events.now;
        k->waited = 0.0;
        k->agreed = 0;
        execute(w, rank, a);
        if (k->state == ZERO_WALKER_ACTS) pass(w, rank);
    }
}

static void rank_happens(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    if (k->look_at >= 0.0 && w->events.now >= k->look_at) {
        k->look_at = -1.0;
        look(w, rank);
    }
    if (k->state == ZERO_WALKER_WAITS) {
        const zero_action *a = zero_walker_present(w, rank);
        bool is_over = wait_is_over(w, rank, a);
        if (is_over && k->busy > w->events.now) {
            zero_walker_order(w, rank, k->busy);
        } else if (is_over) {
            note_wait(w, rank, a);
            pass(w, rank);
            act(w, rank);
        }
    } else if (k->state == ZERO_WALKER_COMPUTES && w->events.now >= k->until) {
        k->spent.compute += k->seconds;
        k->spent.sums += k->sums;
        if (k->seconds > 0.0 && k->step == w->input->steps - 1)
            w->last_pass = w->events.now;
        pass(w, rank);
        act(w, rank);
    } else if (k->state == ZERO_WALKER_COMPUTES && w->events.now >= k->due) {
        k->due = k->until;
        zero_walker_order(w, rank, k->due);
    }
}

void zero_walkers_agreed(zero_walkers *w, int rank)
{
    end_agreement(w, rank);
    zero_walker_order(w, rank, fmax(w->events.now, w->list[rank].busy));
}

void zero_walkers_arrived(void *walkers, int64_t cookie)
{
    zero_walkers *w = walkers;
    const int64_t i = cookie / 2;
    if (cookie % 2 == 0) {
        zero_agreement_arrive(w->agreements, i);
        return;
    }
    w->moves[i] = false;
    zero_walkers_stir(w, (int)(i / w->files));
}

zero_status zero_walkers_run(zero_walkers *w)
{
    zero_event event;
    zero_network *network = zero_exchanges_network(w->exchanges);
    for (int r = 0; r < w->ranks; r++) {
        begin_step(w, r);
        act(w, r);
    }
    while (zero_events_next(&w->events, &event)) {
        switch ((zero_event_kind)event.kind) {
        case ZERO_EVENT_NETWORK: zero_network_happens(network, &event); break;
        case ZERO_EVENT_RANK: rank_happens(w, event.which); break;
        }
        if (w->ended < w->ranks || w->has_ended) continue;
        w->has_ended = true; /* what is still in flight belongs to the next step */
        w->busiest = zero_network_busiest(network);
    }
    ZERO_TRY(zero_exchanges_status(w->exchanges));
    if (w->events.failed)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the events of %d simulated ranks",
                         w->ranks);
    if (w->ended == w->ranks) return ZERO_OK;
    int rank = 0;
    while (w->list[rank].state == ZERO_WALKER_ENDED) rank++;
    return zero_fail(ZERO_ERR_STALLED,
                     "simulated rank %d of %d waits for ever at instruction %d of step %d, "
                     "%s; %d ranks have ended. This is a defect; please report it",
                     rank, w->ranks, w->list[rank].at, w->list[rank].step,
                     zero_op_name(zero_walker_present(w, rank)->instruction->op), w->ended);
}
