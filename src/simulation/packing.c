#include "simulation/packing.h"

#include "base/fail.h"
#include "base/grow.h"
#include "lists/algorithm.h"

/* ---- peers ---- */

zero_peers zero_peers_of(const zero_collective_spec *spec, const zero_layout *layout)
{
    bool by_nodes =
        spec->algorithm == ZERO_ALGORITHM_HIER && layout->in_blocks && layout->n_nodes > 1;
    return (zero_peers){layout, by_nodes ? zero_layout_largest_node(layout) : 0};
}

int zero_peers_member(const zero_peers *peers, int member, int64_t peer)
{
    const zero_layout *layout = peers->layout;
    if (peers->largest_node == 0) {
        int64_t i = member + peer;
        return (int)(i < layout->size ? i : i - layout->size);
    }
    int64_t node = layout->node_of[member] + peer / peers->largest_node;
    if (node >= layout->n_nodes) node -= layout->n_nodes;
    return layout->first[node] + (int)(peer % peers->largest_node);
}

static int64_t relative(const zero_peers *peers, int member, int to)
{
    const zero_layout *layout = peers->layout;
    if (peers->largest_node == 0) return (to - member + layout->size) % layout->size;
    int away = layout->node_of[to] - layout->node_of[member];
    if (away < 0) away += layout->n_nodes;
    return (int64_t)away * peers->largest_node + layout->local_of[to];
}

/* ---- packing ---- */

typedef struct {
    const zero_steps *from;
    const zero_peers *peers;
    zero_packed_list *to;
    int64_t *awaited;                     /* [size]: a phase of each member */
    int64_t all_awaited;                  /* and of all neighbours */
    int64_t waited_received, waited_sent; /* steps of `from` whose messages were awaited */
    int32_t *packed; /* [from->n + 1]: steps of `to` before a step of `from` */
    bool failed;
} packer;

static void append(packer *p, zero_packed_kind kind, int64_t peer, int64_t value)
{
    zero_packed_list *to = p->to;
    p->failed = p->failed || !zero_grow(to->steps, to->n, &to->capacity) ||
                peer > INT32_MAX || to->n == INT32_MAX;
    if (p->failed) return;
    to->steps[to->n++] =
        (zero_packed_step){.kind = (int32_t)kind, .peer = (int32_t)peer, .value = value};
}

static bool waits(const packer *p, const zero_collective_step *step)
{
    return step->received > p->waited_received || step->sent > p->waited_sent;
}

/* Makes packed step i wait for what the step still has to wait for, since steps run in
 * order. */
static void set_waits(packer *p, int64_t i, const zero_collective_step *step)
{
    if (p->failed) return;
    zero_packed_step *packed = &p->to->steps[i];
    if (step->received > p->waited_received) {
        packed->received = p->packed[step->received];
        p->waited_received = step->received;
    }
    if (step->sent > p->waited_sent) {
        packed->sent = p->packed[step->sent];
        p->waited_sent = step->sent;
    }
}

static zero_packed_step *last_if(const packer *p, int64_t before, zero_packed_kind kind)
{
    zero_packed_list *to = p->to;
    bool is = to->n >= before && to->steps[to->n - before].kind == (int32_t)kind;
    return is ? &to->steps[to->n - before] : NULL;
}

/* The last step becomes a WORK, which adds and copies in a row have together. */
static void open_work(packer *p, const zero_collective_step *step)
{
    if (last_if(p, 1, ZERO_PACKED_WORK) && !waits(p, step)) return;
    int64_t first = p->to->n;
    append(p, ZERO_PACKED_WORK, 0, 0);
    set_waits(p, first, step);
}

/* The last WORK reads bytes of another member first, in one READ: each owner's link carries
 * no more than the reader's. */
static void read_first(packer *p, int owner, int64_t bytes)
{
    if (p->failed || owner == p->from->rank || bytes == 0) return;
    int64_t peer = relative(p->peers, p->from->rank, owner);
    zero_packed_step *read = last_if(p, 2, ZERO_PACKED_READ);
    if (read) {
        read->value += bytes;
        if (read->peer != peer) read->peer = ZERO_ALL_NEIGHBOURS;
        return;
    }
    zero_packed_step work = p->to->steps[p->to->n - 1];
    p->to->n--;
    append(p, ZERO_PACKED_READ, peer, bytes);
    append(p, ZERO_PACKED_WORK, 0, work.value);
    if (p->failed) return;
    p->to->steps[p->to->n - 2].received = work.received;
    p->to->steps[p->to->n - 2].sent = work.sent;
}

static void work_on(packer *p, int64_t bytes)
{
    if (!p->failed) p->to->steps[p->to->n - 1].value += bytes;
}

static int64_t bytes_in(const packer *p, const zero_collective_step *step)
{
    return step->len * (int64_t)zero_type_size(p->from->spec.type);
}

static void pack_add(packer *p, const zero_collective_step *step)
{
    const zero_sum *sum = &p->from->sums[step->sum];
    open_work(p, step);
    work_on(p, step->len * (int64_t)zero_type_size(step->type));
    for (int64_t t = 0; t < sum->n; t++) {
        work_on(p, step->len * (int64_t)zero_type_size(sum->terms[t].type));
        if (sum->terms[t].staged < 0) read_first(p, sum->terms[t].first, bytes_in(p, step));
    }
}

/* With one `out` a piece that a neighbour wrote is in its place: it is read later, where
 * the model uses it, but counts here, as in a run. */
static void pack_copy(packer *p, const zero_collective_step *step)
{
    bool is_there = p->from->spec.one_out && step->from.place == ZERO_OUT;
    open_work(p, step);
    if (!is_there) work_on(p, 2 * step->len * (int64_t)zero_type_size(step->type));
    if (step->from.place != ZERO_STAGING) read_first(p, step->from.rank, bytes_in(p, step));
}

static void pack_message(packer *p, const zero_collective_step *step)
{
    bool sends = step->kind == ZERO_STEP_SEND;
    int64_t first = p->to->n;
    if (sends && step->from.place != ZERO_STAGING && step->from.rank != p->from->rank)
        append(p, ZERO_PACKED_LEND, relative(p->peers, p->from->rank, step->from.rank),
               bytes_in(p, step));
    append(p, sends ? ZERO_PACKED_SEND : ZERO_PACKED_RECEIVE,
           relative(p->peers, p->from->rank, step->peer),
           step->len * (int64_t)zero_type_size(step->type));
    set_waits(p, first, step);
    if (sends) p->to->until_sent = p->to->n;
}

/* A node of one rank has nobody who would wait. */
static void pack_signal(packer *p, const zero_collective_step *step, bool is_needed)
{
    if (!is_needed && !waits(p, step)) return;
    append(p, ZERO_PACKED_SIGNAL, 0, step->phase);
    set_waits(p, p->to->n - 1, step);
}

static void pack_await(packer *p, const zero_collective_step *step, bool is_needed)
{
    bool of_all = step->peer == ZERO_ALL_NEIGHBOURS;
    int64_t *awaited = of_all ? &p->all_awaited : &p->awaited[step->peer];
    bool is_new = step->phase > zero_max(*awaited, p->all_awaited) && is_needed;
    if (!is_new && !waits(p, step)) return;
    *awaited = zero_max(*awaited, step->phase);
    append(p, ZERO_PACKED_AWAIT,
           of_all ? ZERO_ALL_NEIGHBOURS : relative(p->peers, p->from->rank, step->peer),
           step->phase);
    set_waits(p, p->to->n - 1, step);
}

zero_status zero_pack(zero_packed_list *list, const zero_collective_spec *spec,
                      const zero_peers *peers, int member)
{
    zero_steps from;
    zero_packed_list made = {.n = 0};
    packer p = {.from = &from, .peers = peers, .to = &made};
    if (zero_algorithm_get(spec->algorithm)->posts_mpi_collectives)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "MPI's own collectives cannot be simulated, since it does not say "
                         "what they do: choose --collectives p2p, shm, hier or auto");
    if (spec->on_device)
        return zero_fail(
            ZERO_ERR_UNSUPPORTED,
            "copies from and to a device are not simulated: leave --device out");
    ZERO_TRY(zero_steps_init(&from, spec, peers->layout, member));
    bool neighbours = zero_layout_local_size(peers->layout, member) > 1;
    p.awaited = calloc((size_t)peers->layout->size, sizeof *p.awaited);
    p.packed = calloc((size_t)from.n + 1, sizeof *p.packed);
    p.failed = !p.awaited || !p.packed;
    for (int64_t i = 0; i < from.n && !p.failed; i++) {
        const zero_collective_step *step = &from.list[i];
        p.packed[i + 1] = (int32_t)made.n; /* a SIGNAL waits for sends until itself */
        switch (step->kind) {
        case ZERO_STEP_SEND:
        case ZERO_STEP_RECEIVE: pack_message(&p, step); break;
        case ZERO_STEP_ADD: pack_add(&p, step); break;
        case ZERO_STEP_COPY: pack_copy(&p, step); break;
        case ZERO_STEP_SIGNAL: pack_signal(&p, step, neighbours); break;
        case ZERO_STEP_AWAIT: pack_await(&p, step, neighbours); break;
        case ZERO_STEP_MPI:
        case ZERO_STEP_FETCH:
        case ZERO_STEP_STORE:
        case ZERO_STEP_MARK: break; /* refused */
        }
        p.packed[i + 1] = (int32_t)made.n;
    }
    int64_t steps = from.n;
    free(p.awaited);
    free(p.packed);
    zero_steps_destroy(&from);
    if (p.failed) {
        zero_packed_list_destroy(&made);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for a list of %lld steps",
                         (long long)steps);
    }
    /* Gives back what growing has left over. */
    void *fitted = realloc(made.steps, (size_t)(made.n + 1) * sizeof *made.steps);
    if (fitted) made.steps = fitted;
    made.capacity = made.n;
    *list = made;
    return ZERO_OK;
}

void zero_packed_list_destroy(zero_packed_list *list)
{
    free(list->steps);
    *list = (zero_packed_list){0};
}
