#include "simulation/walker.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"

/* No rank is more than two agreements ahead of another one: after one of all ranks, one of
 * the ZeRO groups may follow, and of the next one of all ranks the first messages. */
#define WINDOW 4

typedef struct {
    int64_t begun; /* agreements */
    int round;     /* of the present one; -1: none */
    int64_t bytes;
    bool gathers;
    uint32_t arrived[WINDOW]; /* rounds whose message is here, a bit each */
} member;

struct zero_agreements {
    zero_walkers *w; /* borrowed */
    int ranks, tp;
    member *members; /* [ranks] */
    /* [tp + 1]: of ZeRO groups, and of all ranks: when the last one so far began an
     * agreement */
    double (*joined)[WINDOW];
};

static int rounds_of(int ranks)
{
    int n = 0;
    while ((INT64_C(1) << n) < ranks) n++;
    return n;
}

int64_t zero_agreement_messages(int ranks)
{
    return (int64_t)ranks * rounds_of(ranks);
}

/* ---- groups ---- */

static int size_of(const zero_agreements *a, const member *m)
{
    return m->gathers ? a->ranks / a->tp : a->ranks;
}

static double *joined_of(const zero_agreements *a, int rank)
{
    const member *m = &a->members[rank];
    return &a->joined[m->gathers ? rank % a->tp : a->tp][(m->begun - 1) % WINDOW];
}

double zero_agreement_joined(const zero_agreements *a, int rank)
{
    return *joined_of(a, rank);
}

/* ---- rounds ---- */

static void send(zero_agreements *a, int rank)
{
    const member *m = &a->members[rank];
    int64_t distance = INT64_C(1) << m->round;
    int64_t times = m->gathers ? zero_min(distance, size_of(a, m) - distance) : 1;
    int stride = m->gathers ? a->tp : 1;
    int to = (int)((rank / stride + distance) % size_of(a, m)) * stride + rank % stride;
    int64_t cookie = ((int64_t)to * WINDOW + (m->begun - 1) % WINDOW) * 32 + m->round;
    zero_network_send(zero_exchanges_network(a->w->exchanges), rank, to, times * m->bytes,
                      ZERO_EXCHANGE_COOKIE(2 * cookie));
}

/* Goes on as far as messages are here. True if the agreement is over. */
static bool proceed(zero_agreements *a, int rank)
{
    member *m = &a->members[rank];
    uint32_t *arrived = &m->arrived[(m->begun - 1) % WINDOW];
    int n = rounds_of(size_of(a, m));
    while (m->round < n && *arrived >> m->round & 1)
        if (++m->round < n) send(a, rank);
    if (m->round < n) return false;
    m->round = -1;
    *arrived = 0;
    return true;
}

void zero_agreement_arrive(zero_agreements *a, int64_t cookie)
{
    int rank = (int)(cookie / 32 / WINDOW), which = (int)(cookie / 32 % WINDOW);
    member *m = &a->members[rank];
    m->arrived[which] |= UINT32_C(1) << cookie % 32;
    bool is_present = m->round >= 0 && which == (m->begun - 1) % WINDOW;
    if (is_present && proceed(a, rank)) zero_walkers_agreed(a->w, rank);
}

bool zero_agreement_begin(zero_agreements *a, int rank, int64_t bytes, bool gathers)
{
    member *m = &a->members[rank];
    m->begun++;
    m->bytes = bytes;
    m->gathers = gathers;
    m->round = 0;
    *joined_of(a, rank) = a->w->events.now;
    if (size_of(a, m) > 1) send(a, rank);
    return proceed(a, rank);
}

/* ---- all ---- */

zero_status zero_agreements_open(zero_agreements **agreements, zero_walkers *w)
{
    static const char what[] = "agreements of simulated ranks";
    const int ranks = w->ranks, tp = w->groups.gathering;
    ZERO_TRY(zero_new(agreements, 1, what));
    zero_agreements *a = *agreements;
    *a = (zero_agreements){.w = w, .ranks = ranks, .tp = tp};
    ZERO_TRY(zero_new(&a->members, ranks, what));
    ZERO_TRY(zero_new(&a->joined, tp + 1, what));
    for (int r = 0; r < ranks; r++) a->members[r].round = -1;
    return ZERO_OK;
}

void zero_agreements_close(zero_agreements *a)
{
    if (!a) return;
    free(a->members);
    free(a->joined);
    free(a);
}
