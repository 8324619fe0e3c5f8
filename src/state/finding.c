#include "state/finding.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"

zero_check_space zero_finding_space(const zero_runner *r)
{
    return zero_check_space_at(r->schedule, zero_runner_buffer(r, r->schedule->check));
}

zero_status zero_finding_exchange(zero_runner *r, const uint64_t mine[2])
{
    uint64_t *words = zero_finding_space(r).words;
    int n = 2 * r->comm->size;
    memset(words, 0, (size_t)n * sizeof *words);
    memcpy(words + 2 * r->comm->rank, mine, 2 * sizeof *words);
    return zero_comm_or(r->comm, n, words);
}

bool zero_finding_has_failed(const zero_runner *r)
{
    const uint64_t *words = zero_finding_space(r).words, failed[] = ZERO_FINDING_FAILED;
    for (int rank = 0; rank < r->comm->size; rank++)
        if (memcmp(words + 2 * rank, failed, sizeof failed) == 0) return true;
    return false;
}

/* ---- words ---- */

void zero_finding_add_elements(zero_sentence *report, const char *what,
                               const zero_tensor *t, zero_range elements)
{
    int64_t first = elements.begin, last = elements.end - 1;
    zero_sentence_add(report, "the %s of %s, element", what, t->name);
    if (first == last)
        zero_sentence_add(report, " %" PRId64, first);
    else
        zero_sentence_add(report, "s %" PRId64 " to %" PRId64, first, last);
}

void zero_finding_add_place(zero_sentence *report, const zero_runner *r,
                            const zero_finding *place)
{
    zero_finding_add_elements(report, zero_array_name(place->array),
                              &r->schedule->input.model->tensors[place->tensor],
                              place->range);
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
    return zero_fail(ZERO_ERR_CORRUPTED,
                     "%s differed when it was compared, and not when it was read again. "
                     "Memory or a CPU is faulty: resume from the newest checkpoint on "
                     "other hardware",
                     what);
}

/* ---- one verdict ---- */

/* Returns the lowest rank that found something, or the number of ranks if no rank did. */
static int lowest_finder(const zero_runner *r)
{
    const uint64_t *words = zero_finding_space(r).words;
    int rank = 0;
    while (rank < r->comm->size && words[2 * rank] == 0) rank++;
    return rank;
}

/* Exchanges the tensor and the array of each rank's finding. */
static zero_status exchange_places(zero_runner *r, const zero_finding *mine,
                                   zero_status looked)
{
    uint64_t failed[] = ZERO_FINDING_FAILED;
    uint64_t place[] = {(uint64_t)(mine->tensor + 1), (uint64_t)mine->array};
    ZERO_TRY(zero_finding_exchange(r, looked == ZERO_OK ? place : failed));
    return zero_finding_has_failed(r) ? zero_agree(r->comm, looked) : ZERO_OK;
}

zero_status zero_finding_agree(zero_runner *r, const zero_finding *mine, zero_status looked,
                               const char *what)
{
    const uint64_t *words = zero_finding_space(r).words;
    zero_sentence report = {.used = 0};
    ZERO_TRY(exchange_places(r, mine, looked));
    int rank = lowest_finder(r);
    if (rank == r->comm->size) return ZERO_OK;

    zero_finding theirs = {.tensor = (int)words[2 * rank] - 1,
                           .array = (zero_array)words[2 * rank + 1]};
    ZERO_TRY(zero_finding_exchange(
        r, (uint64_t[]){(uint64_t)mine->range.begin, (uint64_t)mine->range.end}));
    theirs.range = (zero_range){(int64_t)words[2 * rank], (int64_t)words[2 * rank + 1]};
    zero_sentence_add(&report, "rank %d %s ", rank, what);
    zero_finding_add_place(&report, r, &theirs);
    ZERO_TRY(zero_finding_add_advice(&report, r, rank));
    return zero_fail(ZERO_ERR_CORRUPTED, "%s", report.chars);
}
