#include "comm/step.h"

#include <inttypes.h>
#include <stdlib.h>

void zero_steps_destroy(zero_steps *steps)
{
    for (int64_t i = 0; i < steps->n_sums; i++) free(steps->sums[i].terms);
    free(steps->sums);
    free(steps->list);
    *steps = (zero_steps){0};
}

/* ---- growing ---- */

/* Room for one more element of `bytes`; the array as it was, if there is none. */
static void *grow(zero_steps *steps, void *array, int64_t n, int64_t *capacity,
                  size_t bytes)
{
    if (n < *capacity) return array;
    int64_t wanted = 2 * n + 16;
    void *larger = realloc(array, (size_t)wanted * bytes);
    if (larger)
        *capacity = wanted;
    else
        steps->failed = true;
    return larger ? larger : array;
}

void zero_steps_add(zero_steps *steps, zero_collective_step step)
{
    steps->list = grow(steps, steps->list, steps->n, &steps->capacity, sizeof step);
    if (!steps->failed) steps->list[steps->n++] = step;
}

int zero_steps_add_sum(zero_steps *steps)
{
    steps->sums =
        grow(steps, steps->sums, steps->n_sums, &steps->sum_capacity, sizeof *steps->sums);
    if (steps->failed) return 0;
    steps->sums[steps->n_sums] = (zero_sum){0};
    return (int)steps->n_sums++;
}

void zero_steps_add_term(zero_steps *steps, int sum, zero_term term)
{
    if (steps->failed) return;
    zero_sum *s = &steps->sums[sum];
    s->terms = grow(steps, s->terms, s->n, &s->capacity, sizeof term);
    if (!steps->failed) s->terms[s->n++] = term;
}

/* ---- chunks ---- */

int64_t zero_steps_chunks(const zero_steps *steps)
{
    int64_t count = steps->spec.count;
    return count / steps->chunk + (count % steps->chunk > 0);
}

int64_t zero_steps_chunk_len(const zero_steps *steps, int64_t k)
{
    int64_t left = steps->spec.count - k * steps->chunk;
    return left < steps->chunk ? left : steps->chunk;
}

int64_t zero_steps_chunk_at(const zero_steps *steps, int piece, int64_t k)
{
    return piece * steps->spec.stride + k * steps->chunk;
}

void zero_steps_send(zero_steps *steps, int64_t k, int peer, zero_spot from)
{
    zero_steps_add(steps, (zero_collective_step){.kind = ZERO_STEP_SEND,
                                                 .type = steps->spec.type,
                                                 .peer = peer,
                                                 .len = zero_steps_chunk_len(steps, k),
                                                 .from = from});
}

void zero_steps_receive(zero_steps *steps, int64_t k, int peer, zero_spot to)
{
    zero_steps_add(steps, (zero_collective_step){.kind = ZERO_STEP_RECEIVE,
                                                 .type = steps->spec.type,
                                                 .peer = peer,
                                                 .len = zero_steps_chunk_len(steps, k),
                                                 .to = to});
}

void zero_steps_copy(zero_steps *steps, int64_t k, zero_spot from, zero_spot to)
{
    zero_steps_add(steps, (zero_collective_step){.kind = ZERO_STEP_COPY,
                                                 .type = steps->spec.type,
                                                 .len = zero_steps_chunk_len(steps, k),
                                                 .from = from,
                                                 .to = to});
}

void zero_steps_signal(zero_steps *steps, int64_t phase)
{
    zero_steps_add(steps, (zero_collective_step){.kind = ZERO_STEP_SIGNAL, .phase = phase});
}

void zero_steps_await(zero_steps *steps, int peer, int64_t phase, int64_t read)
{
    zero_steps_add(steps, (zero_collective_step){.kind = ZERO_STEP_AWAIT,
                                                 .type = steps->spec.type,
                                                 .peer = peer,
                                                 .phase = phase,
                                                 .len = read});
}

/* ---- counting ---- */

static zero_reach reach(const zero_steps *steps, int peer)
{
    const int *node_of = steps->layout->node_of;
    return node_of[peer] == node_of[steps->rank] ? ZERO_INSIDE : ZERO_ACROSS;
}

static void count_send(const zero_steps *steps, int peer, int64_t bytes, zero_traffic *t)
{
    t->bytes_sent[reach(steps, peer)] += bytes;
    t->messages_sent[reach(steps, peer)]++;
}

static void count_receive(const zero_steps *steps, int peer, int64_t bytes, zero_traffic *t)
{
    t->bytes_received[reach(steps, peer)] += bytes;
    t->messages_received[reach(steps, peer)]++;
}

/* What is read of a neighbour's memory, be it now or, where it stays in place, later. */
static int64_t bytes_read(const zero_steps *steps, const zero_collective_step *step)
{
    int64_t bytes = step->len * (int64_t)zero_type_size(steps->spec.type), read = 0;
    if (step->kind != ZERO_STEP_ADD)
        return step->from.place != ZERO_STAGING && step->from.rank != steps->rank ? bytes
                                                                                  : 0;
    const zero_sum *sum = &steps->sums[step->sum];
    for (int64_t t = 0; t < sum->n; t++)
        if (sum->terms[t].staged < 0 && sum->terms[t].first != steps->rank) read += bytes;
    return read;
}

/* As if MPI sent directly. */
static void count_native(const zero_steps *steps, int64_t bytes, zero_traffic *t)
{
    const zero_collective_spec *spec = &steps->spec;
    bool spreads = spec->kind == ZERO_BROADCAST, collects = spec->kind == ZERO_REDUCE;
    for (int peer = 0; peer < steps->layout->size; peer++) {
        if (peer == steps->rank) continue;
        bool from_root = steps->rank == spec->root, to_root = peer == spec->root;
        if (spreads ? from_root : !collects || to_root) count_send(steps, peer, bytes, t);
        if (spreads ? to_root : !collects || from_root)
            count_receive(steps, peer, bytes, t);
    }
}

void zero_steps_count(const zero_steps *steps, const zero_collective_step *step,
                      zero_traffic *traffic)
{
    int64_t bytes = step->len * (int64_t)zero_type_size(step->type);
    switch (step->kind) {
    case ZERO_STEP_SEND:
        count_send(steps, step->peer, bytes, traffic);
        traffic->bytes_received[ZERO_INSIDE] += bytes_read(steps, step);
        break;
    case ZERO_STEP_RECEIVE: count_receive(steps, step->peer, bytes, traffic); break;
    case ZERO_STEP_ADD:
    case ZERO_STEP_COPY:
        traffic->bytes_received[ZERO_INSIDE] += bytes_read(steps, step);
        break;
    case ZERO_STEP_AWAIT: traffic->bytes_sent[ZERO_INSIDE] += bytes; break;
    case ZERO_STEP_MPI: count_native(steps, bytes, traffic); break;
    case ZERO_STEP_SIGNAL: break;
    }
}

/* ---- printing ---- */

static void print_spot(const zero_spot *spot, FILE *file)
{
    static const char *const places[] = {"in", "out", "staging"};
    if (spot->place == ZERO_STAGING)
        fprintf(file, "staging[%" PRId64 " B]", spot->at);
    else
        fprintf(file, "%s of %d [%" PRId64 "]", places[spot->place], spot->rank, spot->at);
}

static void print_sum(const zero_steps *steps, const zero_collective_step *step, FILE *file)
{
    const zero_sum *sum = &steps->sums[step->sum];
    for (int64_t t = 0; t < sum->n; t++) {
        const zero_term *term = &sum->terms[t];
        if (t > 0) fprintf(file, " + ");
        if (term->staged < 0)
            fprintf(file, "in of %d", term->first);
        else
            fprintf(file, "staging[%" PRId64 " B]", step->staged + term->staged);
        if (term->count > 1)
            fprintf(file, " (%d..%d)", term->first, term->first + term->count - 1);
    }
    fprintf(file, " at [%" PRId64 "] -> ", step->from.at);
    print_spot(&step->to, file);
}

static void print_peer(const zero_collective_step *step, FILE *file)
{
    if (step->peer == ZERO_ALL_NEIGHBOURS)
        fprintf(file, "all neighbours");
    else
        fprintf(file, "%d", step->peer);
}

static void print_step(const zero_steps *steps, const zero_collective_step *step,
                       FILE *file)
{
    switch (step->kind) {
    case ZERO_STEP_SEND:
        fprintf(file, "send to %d from ", step->peer);
        print_spot(&step->from, file);
        break;
    case ZERO_STEP_RECEIVE:
        fprintf(file, "receive from %d to ", step->peer);
        print_spot(&step->to, file);
        break;
    case ZERO_STEP_ADD:
        fprintf(file, "add ");
        print_sum(steps, step, file);
        break;
    case ZERO_STEP_COPY:
        fprintf(file, "copy ");
        print_spot(&step->from, file);
        fprintf(file, " -> ");
        print_spot(&step->to, file);
        break;
    case ZERO_STEP_SIGNAL: fprintf(file, "signal phase %" PRId64, step->phase); break;
    case ZERO_STEP_AWAIT:
        fprintf(file, "await phase %" PRId64 " of ", step->phase);
        print_peer(step, file);
        break;
    case ZERO_STEP_MPI: fprintf(file, "MPI's own collective"); break;
    }
    if (step->len > 0)
        fprintf(file, ", %" PRId64 " elements %s", step->len, zero_type_name(step->type));
    if (step->received > 0) fprintf(file, ", received before %" PRId64, step->received);
    if (step->sent > 0) fprintf(file, ", sent before %" PRId64, step->sent);
    fprintf(file, "\n");
}

void zero_steps_print(const zero_steps *steps, FILE *file)
{
    const zero_collective_spec *spec = &steps->spec;
    fprintf(file,
            "%s %s, rank %d of %d: %" PRId64 " of every %" PRId64
            " elements, chunks of %" PRId64 ", staging %zu bytes\n",
            zero_algorithm_name(spec->algorithm), zero_collective_kind_name(spec->kind),
            steps->rank, steps->layout->size, spec->count,
            zero_collective_has_root(spec->kind) ? spec->count : spec->stride, steps->chunk,
            zero_collective_staging(spec, steps->layout));
    for (int64_t i = 0; i < steps->n; i++) {
        fprintf(file, "%6" PRId64 "  ", i);
        print_step(steps, &steps->list[i], file);
    }
}
