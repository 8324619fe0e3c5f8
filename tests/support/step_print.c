#include "support/step_print.h"

#include <inttypes.h>

#include "lists/algorithm.h"

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
        if (step->peer == ZERO_ALL_NEIGHBOURS)
            fprintf(file, "all neighbours");
        else
            fprintf(file, "%d", step->peer);
        break;
    case ZERO_STEP_MPI: fprintf(file, "MPI's own collective"); break;
    case ZERO_STEP_FETCH:
        fprintf(file, "fetch [%" PRId64 "] of the device -> ", step->from.at);
        print_spot(&step->to, file);
        break;
    case ZERO_STEP_STORE:
        fprintf(file, "store ");
        print_spot(&step->from, file);
        fprintf(file, " -> [%" PRId64 "] of the device", step->to.at);
        break;
    case ZERO_STEP_MARK: fprintf(file, "mark what the device was given"); break;
    }
    if (step->len > 0)
        fprintf(file, ", %" PRId64 " elements %s", step->len, zero_type_name(step->type));
    if (step->received > 0) fprintf(file, ", received before %" PRId64, step->received);
    if (step->sent > 0) fprintf(file, ", sent before %" PRId64, step->sent);
    if (step->fetched > 0) fprintf(file, ", fetched before %" PRId64, step->fetched);
    if (step->stored > 0) fprintf(file, ", stored before %" PRId64, step->stored);
    fprintf(file, "\n");
}

void zero_steps_print(const zero_steps *steps, FILE *file)
{
    const zero_collective_spec *spec = &steps->spec;
    fprintf(file,
            "%s %s, rank %d of %d: %" PRId64 " of every %" PRId64
            " elements%s, chunks of %" PRId64 ", staging %zu bytes\n",
            zero_algorithm_name(spec->algorithm), zero_collective_kind_name(spec->kind),
            steps->rank, steps->layout->size, spec->count,
            zero_collective_has_root(spec->kind) ? spec->count : spec->stride,
            spec->direct      ? " directly on devices"
            : spec->on_device ? " on a device"
                              : "",
            steps->chunk, zero_collective_staging(spec, steps->layout));
    for (int64_t i = 0; i < steps->n; i++) {
        fprintf(file, "%6" PRId64 "  ", i);
        print_step(steps, &steps->list[i], file);
    }
}
