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
    int64_t micro_batch;
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

/* A micro batch that is too large for any plan is no failure; a fault of every micro batch
 * is one. */
static zero_status attempt(const search *s, int64_t micro_batch, plan *made)
{
    zero_plan_input in = input_with(s, micro_batch);
    zero_schedule schedule;
    *made = (plan){.micro_batch = micro_batch};
    zero_status st = zero_schedule_compile(&schedule, &in);
    bool may_be_too_large = micro_batch > 1 || s->sequences > 0;
    if (st != ZERO_OK) return st == ZERO_ERR_INVALID && may_be_too_large ? ZERO_OK : st;
    size_t host = zero_plan_needed(&schedule), process = zero_plan_process(&schedule);
    *made =
        (plan){.is_possible = true,
               .micro_batch = micro_batch,
               .accumulation = in.accumulation,
               .needed = s->room->context +
                         (in.device ? zero_plan_device_needed(&schedule) : host),
               .alive = schedule.peak_bytes + (in.device ? 0 : process) + s->room->context,
               .host = in.device ? host : 0,
               .host_alive = schedule.host_peak_bytes + process};
    zero_schedule_destroy(&schedule);
    return ZERO_OK;
}

/* With so many bytes needed, or alive, and on a device so many of the host. */
static bool is_within(const search *s, const plan *p, size_t bytes, size_t host)
{
    return p->is_possible && bytes <= s->room->bytes &&
           (!s->input->device || s->room->host == 0 || host <= s->room->host);
}

static bool fits(const search *s, const plan *p)
{
    return is_within(s, p, p->needed, p->host);
}

static bool is_alive_within(const search *s, const plan *p)
{
    return is_within(s, p, p->alive, p->host_alive);
}

/* The plan that fits, and the next larger one, which does not. */
static zero_plan_batch fitted_of(const plan *p, const plan *next)
{
    return (zero_plan_batch){.micro_batch = p->micro_batch,
                             .accumulation = p->accumulation,
                             .needed = p->needed,
                             .host = p->host,
                             .next = next->is_possible ? next->micro_batch : 0,
                             .next_needed = next->is_possible ? next->needed : 0};
}

/* ---- any micro batch ---- */

/* Finds the smallest micro batch whose bytes alive exceed the room: doubles, then bisects.
 * One that no plan can have counts as too large. Below that number only gaps can keep a
 * micro batch from fitting. They are a few percent of the bytes, so each smaller number is
 * tried in turn. */
static zero_status find_any(const search *s, zero_plan_batch *fitted)
{
    plan p, next;
    int64_t within = 1, beyond = 2;
    ZERO_TRY(attempt(s, 1, &p));
    for (; beyond < MOST / 2; beyond *= 2) {
        ZERO_TRY(attempt(s, beyond, &p));
        if (!is_alive_within(s, &p)) break;
        within = beyond;
    }
    while (beyond - within > 1) {
        int64_t middle = within + (beyond - within) / 2;
        ZERO_TRY(attempt(s, middle, &p));
        *(is_alive_within(s, &p) ? &within : &beyond) = middle;
    }
    ZERO_TRY(attempt(s, beyond, &next));
    for (int64_t batch = beyond - 1; batch >= 1; batch--, next = p) {
        ZERO_TRY(attempt(s, batch, &p));
        if (!fits(s, &p)) continue;
        *fitted = fitted_of(&p, &next);
        return ZERO_OK;
    }
    *fitted = (zero_plan_batch){.needed = next.needed, .host = next.host};
    return ZERO_OK;
}

/* ---- a given global batch ---- */

/* A single microbatch needs no accumulators, so a larger micro batch may need fewer bytes.
 * So the divisors are tried, the largest first, and not bisected. A lower bound of a plan's
 * bytes, which needs no schedule, rules out most of them quickly. */
static zero_status find_divisor(const search *s, zero_plan_batch *fitted)
{
    plan p = {.is_possible = false}, next = p;
    size_t least = 0;
    int64_t larger = 0, most_parts = zero_min(s->sequences, ZERO_PLAN_BATCH_PARTS);
    for (int64_t parts = 1; parts <= most_parts; parts++) {
        if (s->sequences % parts != 0 ||
            (s->input->reproducible && !zero_is_power_of_two(parts)))
            continue;
        int64_t batch = s->sequences / parts;
        zero_plan_input in = input_with(s, batch);
        zero_plan_bound bound;
        zero_status st = zero_plan_least(&in, &bound);
        if (st != ZERO_OK && st != ZERO_ERR_INVALID) return st;
        least = SIZE_MAX; /* too large for any plan */
        if (st == ZERO_OK)
            least = (in.device ? bound.device_bytes : bound.bytes) + s->room->context;
        p.is_possible = false;
        if (least <= s->room->bytes) ZERO_TRY(attempt(s, batch, &p));
        if (p.is_possible) least = p.needed;
        if (fits(s, &p)) {
            if (larger > 0) ZERO_TRY(attempt(s, larger, &next));
            *fitted = fitted_of(&p, &next);
            return ZERO_OK;
        }
        larger = batch;
    }
    /* Of the last one tried, the smallest. */
    *fitted = (zero_plan_batch){.needed = least, .host = p.is_possible ? p.host : 0};
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
