#include "state/finding.h"

#include <unistd.h>

#include "state/visit.h"

zero_check_space zero_finding_space(const zero_runner *r)
{
    return zero_check_space_at(r->schedule, zero_runner_buffer(r, r->schedule->check));
}

zero_status zero_finding_exchange(zero_runner *r, const uint64_t mine[2],
                                  zero_status looked)
{
    /* In place of words that say something; it costs no message while all is well. */
    const uint64_t failed[] = {UINT64_MAX, UINT64_MAX};
    uint64_t *words = zero_finding_space(r).words;
    int n = 2 * r->comm->size;
    zero_clear(words, n);
    memcpy(words + 2 * r->comm->rank, looked == ZERO_OK ? mine : failed, sizeof failed);
    ZERO_TRY(zero_comm_or(r->comm, n, words));
    for (int rank = 0; rank < r->comm->size; rank++)
        if (memcmp(words + 2 * rank, failed, sizeof failed) == 0)
            return zero_agree(r->comm, looked);
    return ZERO_OK;
}

/* ---- words ---- */

void zero_finding_add_place(zero_sentence *report, const zero_runner *r,
                            const zero_finding *place)
{
    int64_t first = place->range.begin, last = place->range.end - 1;
    zero_sentence_add(report, "the %s of %s, element",
                      zero_array_name(r->schedule, place->array),
                      r->schedule->model->tensors[place->tensor].name);
    if (first == last)
        zero_sentence_add(report, " %" PRId64, first);
    else
        zero_sentence_add(report, "s %" PRId64 " to %" PRId64, first, last);
}

zero_status zero_finding_add_advice(zero_sentence *report, zero_runner *r, int rank)
{
    char host[64] = "";
    if (rank == r->comm->rank) gethostname(host, sizeof host - 1);
    if (rank >= 0) ZERO_TRY(zero_comm_broadcast(r->comm, rank, host, sizeof host));
    zero_sentence_add(report, ". Memory or a CPU is faulty");
    if (rank >= 0) zero_sentence_add(report, " on %s, where rank %d runs", host, rank);
    zero_sentence_add(report, ": resume from the newest checkpoint on other hardware");
    return ZERO_OK;
}

zero_status zero_finding_lost(const char *what)
{
    return zero_fail(
        ZERO_ERR_CORRUPTED,
        "%s differed when it was compared, and not when it was read again. Memory or a CPU "
        "is faulty: resume from the newest checkpoint on other hardware",
        what);
}

/* ---- looking ---- */

struct looking {
    zero_inspect_look *look;
    void *arg;
    int part; /* of states */
};

static zero_status look_at_block(void *arg, const zero_state_block *block)
{
    const struct looking *l = arg;
    l->look(l->arg, block->part[l->part], zero_range_bytes(block->range, ZERO_FP32));
    return ZERO_OK;
}

zero_status zero_finding_inspect(zero_runner *r, const zero_finding *at,
                                 zero_inspect_look *look, void *arg)
{
    const zero_schedule *s = r->schedule;
    const zero_tensor *t = &s->model->tensors[at->tensor];
    zero_range range = {t->offset + at->range.begin, t->offset + at->range.end};
    struct looking looking = {look, arg, (int)at->array - ZERO_ARRAY_MASTERS};
    if (at->array != ZERO_ARRAY_PARAMETERS && at->array != ZERO_ARRAY_GRADIENTS)
        return zero_states_visit(r, t->group, range, ZERO_VISIT_READ, look_at_block,
                                 &looking);
    int buffer = s->groups[t->group].buffers[at->array];
    return zero_inspect(r, zero_runner_element(r, buffer, range.begin),
                        zero_range_bytes(range, s->buffers[buffer].type), look, arg);
}

zero_status zero_finding_narrow(zero_finding *at, bool to_last,
                                zero_finding_compare *compare, void *arg)
{
    while (zero_range_len(at->range) > 1) {
        int64_t middle = at->range.begin + zero_range_len(at->range) / 2;
        zero_finding half = *at;
        bool differ = false;
        if (to_last)
            half.range.begin = middle;
        else
            half.range.end = middle;
        ZERO_TRY(compare(arg, &half, &differ));
        if (differ)
            *at = half;
        else if (to_last)
            at->range.end = middle;
        else
            at->range.begin = middle;
    }
    return ZERO_OK;
}

/* ---- one verdict ---- */

zero_status zero_finding_agree(zero_runner *r, const zero_finding *mine, zero_status looked,
                               const char *what)
{
    const uint64_t *words = zero_finding_space(r).words;
    const uint64_t place[] = {(uint64_t)(mine->tensor + 1), (uint64_t)mine->array};
    zero_sentence report = {.used = 0};
    int rank = 0;
    ZERO_TRY(zero_finding_exchange(r, place, looked));
    while (rank < r->comm->size && words[2 * rank] == 0) rank++;
    if (rank == r->comm->size) return ZERO_OK; /* none found anything */

    zero_finding theirs = {.tensor = (int)words[2 * rank] - 1,
                           .array = (zero_array)words[2 * rank + 1]};
    ZERO_TRY(zero_finding_exchange(
        r, (uint64_t[]){(uint64_t)mine->range.begin, (uint64_t)mine->range.end}, ZERO_OK));
    theirs.range = (zero_range){(int64_t)words[2 * rank], (int64_t)words[2 * rank + 1]};
    zero_sentence_add(&report, "rank %d %s ", rank, what);
    zero_finding_add_place(&report, r, &theirs);
    ZERO_TRY(zero_finding_add_advice(&report, r, rank));
    return zero_fail(ZERO_ERR_CORRUPTED, "%s", report.chars);
}
