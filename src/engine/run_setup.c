#include "engine/walk.h"

#include "comm/divide.h"
#include "comm/launch.h"
#include "comm/watch.h"
#include "sharding/schedule_exchange.h"
#include "state/run_memory.h"

#define PAGE ((size_t)4096)

/* Two arrays: the ranks' parts, and the memory that the node has once. */
static zero_status share(zero_comm *comm, size_t parts, size_t all, zero_window *window)
{
    return all > 0 ? zero_window_init(window, comm, 2, (size_t[]){parts, all - parts})
                   : ZERO_OK;
}

zero_status zero_runner_share(const zero_schedule *s, zero_comm *comm, zero_window *window,
                              zero_window *tp_window)
{
    zero_comm *shard = zero_comm_shard(comm), *tp = zero_comm_tp(comm);
    zero_status st = share(shard, s->extent[ZERO_SPACE_PART], s->window_bytes, window);
    /* Each group has one verdict, but groups may differ. */
    if (shard != comm) ZERO_TRY(zero_agree(comm, st));
    if (!tp) return st;
    return zero_agree(
        comm, share(tp, s->extent[ZERO_SPACE_TP_PART], s->tp_window_bytes, tp_window));
}

static void poll_collectives(void *arg)
{
    zero_runner *r = arg;
    zero_watch_move(r->comm);
    if (r->poll_status == ZERO_OK)
        r->poll_status = zero_collective_poll_timed(r->comm, &r->polled);
    if (r->poll_status == ZERO_OK) r->poll_status = zero_chain_continue(&r->joining);
    if (r->poll_status == ZERO_OK) r->poll_status = zero_chain_continue(&r->reducing);
    if (r->walk) zero_run_ahead(r->walk);
}

static zero_status init_exchange(zero_runner *r, zero_op op, int number)
{
    const zero_schedule *s = r->schedule;
    zero_runner_exchange *x = &r->exchanges[op][number];
    zero_comm *comm = r->groups[zero_ops[op].among];
    int n = zero_exchange_collectives(s, op, number);
    ZERO_TRY(zero_new(&x->ops, n + 1, "collectives"));
    for (int k = 0; k < n; k++) {
        zero_collective_spec spec = zero_exchange_collective(s, op, number, k);
        ZERO_TRY(spec.on_device
                     ? zero_collective_init_on_device(&x->ops[k], comm, &spec, &r->copier)
                     : zero_collective_init(&x->ops[k], comm, &spec));
        x->n = k + 1;
    }
    return ZERO_OK;
}

/* Tables of one kind are one block. */
static zero_status allocate_tables(zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    size_t mine = (size_t)s->input.accumulation,
           all = mine * (size_t)(s->pipe.n_stages > 1 ? r->comm : r->data)->size;
    size_t groups = (size_t)s->model->n_groups, buffers = (size_t)s->n_buffers;
    r->n_exchanges = 3 * (int)groups + s->n_joins + s->n_messages;
    zero_runner_exchange *x;
    ZERO_TRY(zero_new(&x, r->n_exchanges, "exchanges"));
    r->exchanges[ZERO_OP_REDUCE] = x;
    ZERO_TRY(zero_new(&r->loss_copies, mine + 2 * groups, "copies"));
    ZERO_TRY(zero_new(&r->losses, mine + 2 * all, "losses of microbatches"));
    ZERO_TRY(zero_new(&r->squares, groups, "groups"));
    ZERO_TRY(zero_new(&r->touched, buffers, "buffers"));
    r->grad_copies = r->loss_copies + mine;
    r->param_copies = r->grad_copies + groups;
    r->gathered = r->losses + mine;
    r->all_losses = r->gathered + all;
    r->exchanges[ZERO_OP_GATHER] = x + groups;
    r->exchanges[ZERO_OP_ALL_REDUCE] = x + 2 * groups;
    r->exchanges[ZERO_OP_JOIN] = r->exchanges[ZERO_OP_COLLECT] = x + 3 * groups;
    r->exchanges[ZERO_OP_SEND] = r->exchanges[ZERO_OP_RECEIVE] =
        x + 3 * groups + s->n_joins;
    for (size_t i = 0; i < buffers; i++) r->touched[i] = (zero_life){-1, -1};
    return ZERO_OK;
}

/* The host's memory beside a device, and this node's window, where copies begin and end. */
static zero_status pin(zero_runner *r)
{
    const zero_memory *memory = r->link.memory;
    size_t pages = zero_round_up_size(r->arena.bytes, PAGE); /* of a longer mapping */
    if (pages > 0) ZERO_TRY(memory->pin(&r->math, r->arena.base, pages));
    if (r->window->bytes == 0) return ZERO_OK;
    ZERO_TRY(memory->pin(&r->math, r->window->base, r->window->bytes));
    r->window_is_pinned = true;
    return ZERO_OK;
}

static zero_status take_memory(zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    if (!r->link.memory) return zero_arena_init(&r->arena, s->own_bytes);
    ZERO_TRY(zero_arena_init(&r->arena, s->host_bytes));
    ZERO_TRY(r->link.memory->take(&r->math, s->own_bytes, &r->device));
    return pin(r);
}

/* Whether MPI can send from and receive into the device's memory. */
static zero_status check_messages(const zero_runner *r)
{
    const zero_memory *memory = r->link.memory;
    zero_memory_access access = ZERO_MEMORY_CLOSED;
    if (!r->schedule->input.device_messages) return ZERO_OK;
    if (memory->access) access = memory->access(&r->math, r->device);
    if (access == ZERO_MEMORY_OPEN ||
        (access == ZERO_MEMORY_OF_CUDA && zero_launch_is_cuda_aware()))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "MPI does not reach the memory of device '%s': this MPI is %s",
                     r->backend->name, zero_launch_cuda());
}

static zero_status init_local(zero_runner *r, const char *directory)
{
    bool has_device = r->backend->memory != NULL;
    ZERO_INVALID_IF(
        has_device != (r->schedule->input.device != 0),
        "a plan %s a device cannot run on the backend '%s', which has %s of its own",
        has_device ? "without" : "with", r->backend->name,
        has_device ? "memory" : "no memory");
    ZERO_TRY(r->backend->open(&r->math));
    r->is_open = true;
    zero_status st = r->backend->accepts
                         ? r->backend->accepts(&r->math, r->schedule->input.type)
                         : ZERO_OK;
    /* Another machine would do. */
    ZERO_TRY(st == ZERO_ERR_UNSUPPORTED ? zero_fail(ZERO_ERR_ENV, "%s", zero_last_error())
                                        : st);
    r->link = (zero_link){.memory = r->backend->memory, .math = &r->math};
    r->copier = zero_link_copier(&r->link);
    bool is_direct = r->near.comm || r->schedule->input.device_messages;
    ZERO_FAIL_IF(is_direct && !r->copier.share, ZERO_ERR_UNSUPPORTED,
                 "the memory of device '%s' cannot be reached by other processes",
                 r->backend->name);
    if (r->near.comm) r->copier.window = &r->near;
    /* The CPU that updates states beside a device. */
    if (zero_plan_updates_beside(&r->schedule->input)) {
        r->host = (zero_math){.poll = poll_collectives,
                              .poll_arg = r,
                              .threads = (int)r->schedule->input.threads};
        ZERO_TRY(zero_backend_cpu.open(&r->host));
        r->host_is_open = true;
    }
    ZERO_TRY(allocate_tables(r));
    ZERO_TRY(zero_profile_init(&r->profile, r->schedule->model));
    ZERO_TRY(
        zero_device_times_init(&r->times, r->backend, &r->math, &r->link, &r->profile));
    const zero_schedule *s = r->schedule;
    for (int k = 0; k < ZERO_EXCHANGES; k++)
        for (int n = 0; n < zero_exchange_count(s, zero_exchange_ops[k]); n++)
            if (zero_exchange_is_used(s, zero_exchange_ops[k], n))
                ZERO_TRY(init_exchange(r, zero_exchange_ops[k], n));
    ZERO_TRY(zero_tier_open(&r->tier, r->schedule, directory));
    ZERO_TRY(take_memory(r));
    ZERO_TRY(check_messages(r));
    r->math.scratch = zero_runner_buffer(r, r->schedule->scratch);
    return ZERO_OK;
}

/* Without its window no device is opened: the caller may choose copies through the host. */
static zero_status init_near(zero_runner *r)
{
    if (!r->schedule->input.ipc) return ZERO_OK;
    zero_status st = zero_device_window_init(&r->near, r->shard);
    return st == ZERO_ERR_ENV ? zero_fail(ZERO_ERR_UNSUPPORTED, "%s", zero_last_error())
                              : st;
}

/* A kernel that is later in the order of preference has to take a quarter less time, on the
 * rank where it is slowest: what decides bits must not hang on a disturbed trial. */
static zero_status choose_products(zero_runner *r)
{
    const zero_contest *c = r->backend->contest;
    int64_t least = INT64_MAX, most;
    int best = 0;
    if (!c || r->schedule->input.type != ZERO_BF16 || r->math.bits == ZERO_BITS_PORTABLE)
        return ZERO_OK;
    for (int i = 0; i < c->kernels; i++) {
        ZERO_TRY(zero_comm_most(r->comm, c->measure(&r->math, i), &most));
        if (most >= least - least / 4) continue;
        least = most;
        best = i;
    }
    c->take(&r->math, best);
    return ZERO_OK;
}

zero_status zero_runner_init(zero_runner *r, const zero_schedule *schedule,
                             const zero_runner_place *place, zero_comm *comm)
{
    *r = (zero_runner){.schedule = schedule,
                       .backend = place->backend,
                       .comm = comm,
                       .data = zero_comm_data(comm),
                       .shard = zero_comm_shard(comm),
                       .replicas = zero_comm_replicas(comm),
                       .pipe = zero_comm_pipe(comm),
                       .tp = zero_comm_tp(comm),
                       .window = place->window,
                       .tp_window = place->tp_window};
    r->math = (zero_math){.poll = poll_collectives,
                          .poll_arg = r,
                          .threads = (int)zero_plan_threads(&schedule->input),
                          .device = place->device,
                          .bits = place->bits};
    zero_status st = init_near(r);
    if (st == ZERO_OK) st = zero_agree(comm, init_local(r, place->directory));
    if (st == ZERO_OK && r->near.comm)
        st = zero_device_window_open(&r->near, &r->copier, r->device);
    if (st == ZERO_OK) st = choose_products(r);
    if (st != ZERO_OK) zero_runner_destroy(r);
    return st;
}

void zero_runner_destroy(zero_runner *r)
{
    zero_runner_exchange *x = r->exchanges[ZERO_OP_REDUCE];
    for (int i = 0; x && i < r->n_exchanges; i++) {
        for (int k = 0; k < x[i].n; k++) zero_collective_destroy(&x[i].ops[k]);
        free(x[i].ops);
    }
    zero_free(x, r->loss_copies, r->losses, r->squares, r->touched);
    zero_device_times_destroy(&r->times);
    zero_profile_destroy(&r->profile);
    zero_tier_close(&r->tier); /* ends transfers from and to the arena */
    if (r->arena.mapping) zero_lifetimes_close(r);
    zero_device_window_destroy(&r->near); /* before the memory is given back */
    const zero_memory *memory = r->link.memory;
    if (memory) {
        if (r->window_is_pinned) memory->unpin(&r->math, r->window->base);
        if (r->device) memory->unpin(&r->math, r->arena.base);
        if (r->device) memory->give_back(&r->math, r->device);
    }
    if (r->host_is_open && zero_backend_cpu.close) zero_backend_cpu.close(&r->host);
    if (r->is_open && r->backend->close) r->backend->close(&r->math);
    zero_arena_destroy(&r->arena);
    *r = (zero_runner){0};
}
