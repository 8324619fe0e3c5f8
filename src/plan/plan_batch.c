#include "plan/plan_batch.h"

#include "base/fail.h"
#include "base/number.h"
#include "plan/plan.h"
#include "sharding/compile.h"

#define MOST INT64_MAX /* the search for a micro batch ends below half of it */

typedef struct {
    const zero_plan_input *input;
    const zero_plan_room *room;
    int64_t sequences; /* of a rank and step; 0: accumulation stays as it is */
} search;

/* A plan with some micro batch. */
typedef struct {
    bool is_possible;
    int accumulation;
    size_t needed, alive;    /* bytes: with the gaps of the layout, and without them */
    size_t host, host_alive; /* the same of the host, beside a device */
} plan;

static zero_plan_input input_with(const search *s, int64_t micro_batch)
{
    zero_plan_input in = *s->input;
    in.micro_batch = micro_batch;
    if (s->sequences > 0) in.accumulation = (int)(s->sequences / micro_batch);
    return in;
}

static zero_status measure(const search *s, int64_t micro_batch, plan *made)
{
    zero_plan_input in = input_with(s, micro_batch);
    zero_schedule schedule;
    ZERO_TRY(zero_schedule_compile(&schedule, &in));
    size_t needed =
        in.device ? zero_plan_device_needed(&schedule) : zero_plan_needed(&schedule);
    size_t beside = in.device ? 0 : zero_plan_process(&schedule);
    *made = (plan){.is_possible = true,
                   .accumulation = in.accumulation,
                   .needed = needed + s->room->context,
                   .alive = schedule.peak_bytes + beside + s->room->context,
                   .host = in.device ? zero_plan_needed(&schedule) : 0,
                   .host_alive = schedule.host_peak_bytes + zero_plan_process(&schedule)};
    zero_schedule_destroy(&schedule);
    return ZERO_OK;
}

/* A micro batch that is too large for any plan is no failure. */
static zero_status attempt(const search *s, int64_t micro_batch, plan *made)
{
    *made = (plan){.is_possible = false};
    zero_status st = measure(s, micro_batch, made);
    return st == ZERO_ERR_INVALID ? ZERO_OK : st;
}

static bool fits_host(const search *s, size_t bytes)
{
    return !s->input->device || s->room->host == 0 || bytes <= s->room->host;
}

static bool fits(const search *s, const plan *p)
{
    return p->is_possible && p->needed <= s->room->bytes && fits_host(s, p->host);
}

static bool is_alive_within(const search *s, const plan *p)
{
    return p->is_possible && p->alive <= s->room->bytes && fits_host(s, p->host_alive);
}

static zero_plan_batch fitted_of(int64_t micro_batch, const plan *p)
{
    return (zero_plan_batch){.micro_batch = micro_batch,
                             .accumulation = p->accumulation,
                             .needed = p->needed,
                             .host = p->host};
}

static void set_next(zero_plan_batch *fitted, int64_t next, const plan *p)
{
    if (!p->is_possible) return;
    fitted->next = next;
    fitted->next_needed = p->needed;
}

/* ---- any micro batch ---- */

/* The smallest micro batch above `within` whose bytes alive exceed the room: doubles, then
 * bisects. One that no plan can have counts as too large. */
static zero_status find_beyond(const search *s, int64_t within, int64_t *beyond)
{
    plan p;
    for (*beyond = 2 * within; *beyond < MOST / 2; *beyond *= 2) {
        ZERO_TRY(attempt(s, *beyond, &p));
        if (!is_alive_within(s, &p)) break;
        within = *beyond;
    }
    while (*beyond - within > 1) {
        int64_t middle = within + (*beyond - within) / 2;
        ZERO_TRY(attempt(s, middle, &p));
        if (is_alive_within(s, &p))
            within = middle;
        else
            *beyond = middle;
    }
    return ZERO_OK;
}

/* Below that number only gaps can keep a micro batch from fitting. They are a few percent
 * of the bytes, so each smaller number is tried in turn. */
static zero_status find_any(const search *s, zero_plan_batch *fitted)
{
    plan p, next;
    int64_t batch;
    ZERO_TRY(measure(s, 1, &p)); /* a fault of every micro batch is an error */
    ZERO_TRY(find_beyond(s, 1, &batch));
    ZERO_TRY(attempt(s, batch, &next));
    for (batch--; batch >= 1; batch--, next = p) {
        ZERO_TRY(attempt(s, batch, &p));
        if (!fits(s, &p)) continue;
        *fitted = fitted_of(batch, &p);
        set_next(fitted, batch + 1, &next);
        return ZERO_OK;
    }
    *fitted = (zero_plan_batch){.needed = next.needed, .host = next.host};
    return ZERO_OK;
}

/* ---- a given global batch ---- */

static bool may_be(const search *s, int64_t parts)
{
    if (s->sequences % parts != 0) return false;
    return !s->input->reproducible || zero_is_power_of_two(parts);
}

/* A lower bound of the plan's bytes, without a schedule: it rules out most micro batches
 * quickly. */
static zero_status find_least(const search *s, int64_t micro_batch, size_t *bytes)
{
    zero_plan_input in = input_with(s, micro_batch);
    zero_plan_bound least;
    zero_status st = zero_plan_least(&in, &least);
    *bytes = SIZE_MAX;
    if (st == ZERO_ERR_INVALID) return ZERO_OK; /* too large for any plan */
    if (st == ZERO_OK)
        *bytes = (in.device ? least.device_bytes : least.bytes) + s->room->context;
    return st;
}

/* A single microbatch needs no accumulators, so a larger micro batch may need fewer bytes.
 * So the divisors are tried, the largest first, and not bisected. */
static zero_status find_divisor(const search *s, zero_plan_batch *fitted)
{
    plan p = {.is_possible = false};
    size_t least = 0;
    int64_t next = 0, most_parts = zero_min(s->sequences, ZERO_PLAN_BATCH_PARTS);
    for (int64_t parts = 1; parts <= most_parts && fitted->micro_batch == 0; parts++) {
        int64_t batch = s->sequences / parts;
        if (!may_be(s, parts)) continue;
        ZERO_TRY(find_least(s, batch, &least));
        p.is_possible = false;
        if (least <= s->room->bytes) ZERO_TRY(attempt(s, batch, &p));
        if (p.is_possible) least = p.needed;
        if (fits(s, &p))
            *fitted = fitted_of(batch, &p);
        else
            next = batch;
    }
    if (fitted->micro_batch == 0) /* of the last one tried, the smallest */
        *fitted = (zero_plan_batch){.needed = least, .host = p.is_possible ? p.host : 0};
    if (fitted->micro_batch == 0 || next == 0) return ZERO_OK;
    ZERO_TRY(attempt(s, next, &p));
    set_next(fitted, next, &p);
    return ZERO_OK;
}

zero_status zero_plan_fit_batch(const zero_plan_input *input, int64_t sequences,
                                const zero_plan_room *room, zero_plan_batch *fitted)
{
    const search s = {input, room, sequences};
    zero_plan_batch found = {.micro_batch = 0};
    ZERO_TRY(sequences > 0 ? find_divisor(&s, &found) : find_any(&s, &found));
    *fitted = found;
    return ZERO_OK;
}
