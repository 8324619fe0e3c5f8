#include "lists/step.h"

void zero_steps_destroy(zero_steps *steps)
{
    for (int64_t i = 0; i < steps->n_sums; i++) free(steps->sums[i].terms);
    free(steps->sums);
    free(steps->list);
    *steps = (zero_steps){0};
}

/* ---- growing ---- */

void zero_steps_add(zero_steps *steps, zero_collective_step step)
{
    if (steps->counted) {
        if (steps->n++ > 0) zero_steps_count(steps, &steps->last, steps->counted);
        steps->last = step;
        return;
    }
    if (zero_grow(steps->list, steps->n, &steps->capacity))
        steps->list[steps->n++] = step;
    else
        steps->failed = true;
}

zero_collective_step *zero_steps_last(zero_steps *steps)
{
    bool is_kept = !steps->counted && !steps->failed;
    return is_kept ? &steps->list[steps->n - 1] : &steps->last;
}

int zero_steps_add_sum(zero_steps *steps)
{
    if (!zero_grow(steps->sums, steps->n_sums, &steps->sum_capacity)) {
        steps->failed = true;
        return 0;
    }
    steps->sums[steps->n_sums] = (zero_sum){0};
    return (int)steps->n_sums++;
}

void zero_steps_add_term(zero_steps *steps, int sum, zero_term term)
{
    if (steps->failed) return;
    zero_sum *s = &steps->sums[sum];
    if (!steps->counted) {
        steps->failed = !zero_grow(s->terms, s->n, &s->capacity);
        if (steps->failed) return;
        s->terms[s->n] = term;
    }
    s->n_read += term.staged < 0 && term.first != steps->rank;
    s->n_staged += term.staged >= 0;
    s->n++;
}

/* ---- chunks ---- */

int64_t zero_step_message(const zero_collective_spec *spec, int64_t most, size_t bytes)
{
    int64_t line = ZERO_STEP_ALIGN * (int64_t)bytes;
    if (spec->message == 0) return most;
    return zero_min(most, spec->message / line * ZERO_STEP_ALIGN);
}

int64_t zero_steps_chunks(const zero_steps *steps)
{
    return zero_divide_up(steps->spec.count, steps->chunk);
}

int64_t zero_steps_portions(const zero_steps *steps)
{
    bool arrives = steps->spec.on_device && !steps->spec.direct;
    return arrives ? zero_max(zero_steps_chunks(steps), 1) : 1;
}

int64_t zero_steps_chunk_len(const zero_steps *steps, int64_t k)
{
    return zero_min(steps->spec.count - k * steps->chunk, steps->chunk);
}

int64_t zero_steps_chunk_at(const zero_steps *steps, int piece, int64_t k)
{
    return piece * steps->spec.stride + k * steps->chunk;
}

zero_collective_step *zero_steps_put(zero_steps *steps, zero_step_kind kind, int64_t k,
                                     zero_spot from, zero_spot to)
{
    zero_steps_add(steps, (zero_collective_step){.kind = kind,
                                                 .type = steps->spec.type,
                                                 .len = zero_steps_chunk_len(steps, k),
                                                 .from = from,
                                                 .to = to});
    return zero_steps_last(steps);
}

void zero_steps_send(zero_steps *steps, int64_t k, int peer, zero_spot from)
{
    zero_steps_put(steps, ZERO_STEP_SEND, k, from, (zero_spot){0})->peer = peer;
}

void zero_steps_receive(zero_steps *steps, int64_t k, int peer, zero_spot to)
{
    zero_steps_put(steps, ZERO_STEP_RECEIVE, k, (zero_spot){0}, to)->peer = peer;
}

void zero_steps_signal(zero_steps *steps, int64_t phase)
{
    zero_steps_add(steps, (zero_collective_step){.kind = ZERO_STEP_SIGNAL, .phase = phase});
}

void zero_steps_signal_in(zero_steps *steps, int64_t phase, int64_t first, int64_t n)
{
    int64_t at = zero_min(first * steps->chunk, steps->spec.count);
    int64_t end = zero_min((first + n) * steps->chunk, steps->spec.count);
    zero_steps_signal(steps, phase);
    if (!steps->spec.on_device || steps->spec.direct) return;
    zero_collective_step *step = zero_steps_last(steps);
    step->type = steps->spec.type;
    step->from = (zero_spot){ZERO_IN, steps->rank, at};
    step->len = end - at;
}

void zero_steps_await(zero_steps *steps, int peer, int64_t phase, int64_t n_read)
{
    zero_steps_add(steps, (zero_collective_step){.kind = ZERO_STEP_AWAIT,
                                                 .type = steps->spec.type,
                                                 .peer = peer,
                                                 .phase = phase,
                                                 .len = n_read});
}

int64_t zero_steps_until_sent(const zero_steps *steps)
{
    int64_t n = steps->n;
    while (n > 0 && steps->list[n - 1].kind != ZERO_STEP_SEND) n--;
    return n;
}

void zero_steps_pace(zero_steps *steps)
{
    int64_t sent_at[ZERO_PACE] = {0}, sends = 0; /* where the last sends stand */
    for (int64_t i = 0; i < steps->n; i++) {
        zero_collective_step *step = &steps->list[i];
        if (step->kind != ZERO_STEP_SEND) continue;
        int64_t *slot = &sent_at[sends++ % ZERO_PACE];
        step->received = zero_max(step->received, *slot);
        *slot = i;
    }
}

bool zero_steps_is_near(const zero_steps *steps, const zero_collective_step *step)
{
    if (!steps->spec.direct) return false;
    if (step->kind == ZERO_STEP_ADD)
        return zero_collective_stages_on_device(&steps->spec) ||
               steps->sums[step->sum].n_staged == 0;
    return step->kind == ZERO_STEP_COPY;
}

/* ---- counting ---- */

/* Bytes of neighbours' memory that the step reads: now, or later where data stays in
 * place. */
static int64_t bytes_read(const zero_steps *steps, const zero_collective_step *step)
{
    int64_t bytes = step->len * (int64_t)zero_element_size(steps->spec.type);
    int64_t n = step->from.place != ZERO_STAGING && step->from.rank != steps->rank;
    if (step->kind != ZERO_STEP_ADD) return n * bytes;
    return steps->sums[step->sum].n_read * bytes;
}

/* Counts as if MPI sent directly to each rank. */
static void count_mpi_call(const zero_steps *steps, int64_t bytes, zero_traffic *t)
{
    const zero_collective_spec *spec = &steps->spec;
    bool spreads = spec->kind == ZERO_BROADCAST, collects = spec->kind == ZERO_REDUCE;
    if ((spreads || collects) && steps->rank != spec->root) {
        zero_traffic_count(t, zero_reach_of(steps->layout, steps->rank, spec->root),
                           collects, spreads, bytes);
        return;
    }
    int inside = zero_layout_local_size(steps->layout, steps->rank) - 1;
    int across = steps->layout->size - 1 - inside;
    zero_traffic_count(t, ZERO_INSIDE, collects ? 0 : inside, spreads ? 0 : inside, bytes);
    zero_traffic_count(t, ZERO_ACROSS, collects ? 0 : across, spreads ? 0 : across, bytes);
}

void zero_steps_count(const zero_steps *steps, const zero_collective_step *step,
                      zero_traffic *traffic)
{
    int64_t bytes = step->len * (int64_t)zero_element_size(step->type);
    switch (step->kind) {
    case ZERO_STEP_SEND:
        zero_traffic_count(traffic, zero_reach_of(steps->layout, steps->rank, step->peer),
                           1, 0, bytes);
        traffic->bytes_received[ZERO_INSIDE] += bytes_read(steps, step);
        break;
    case ZERO_STEP_RECEIVE:
        zero_traffic_count(traffic, zero_reach_of(steps->layout, steps->rank, step->peer),
                           0, 1, bytes);
        break;
    case ZERO_STEP_ADD:
    case ZERO_STEP_COPY:
        traffic->bytes_received[ZERO_INSIDE] += bytes_read(steps, step);
        if (step->to.place == ZERO_STAGING && zero_steps_is_near(steps, step))
            traffic->bytes_fetched += bytes;
        break;
    case ZERO_STEP_AWAIT: traffic->bytes_sent[ZERO_INSIDE] += bytes; break;
    case ZERO_STEP_MPI: count_mpi_call(steps, bytes, traffic); break;
    case ZERO_STEP_FETCH: traffic->bytes_fetched += bytes; break;
    case ZERO_STEP_STORE: traffic->bytes_stored += bytes; break;
    case ZERO_STEP_SIGNAL:
    case ZERO_STEP_MARK: break;
    }
}
