#include "trace/chakra.h"

#include "io/bytes.h"
#include "io/whole_file.h"
#include "report/text.h"
#include "sharding/schedule_exchange.h"
#include "sharding/schedule_peers.h"
#include "simulation/actions.h"

/* ---- protobuf ---- */

/* Numbers of et_def.proto. */
typedef enum { MEM_LOAD = 2, MEM_STORE, COMP, COMM_SEND, COMM_RECV, COMM_COLL } node_type;
enum { ALL_REDUCE = 0, ALL_GATHER = 2 };
enum {
    NODE_ID = 1,
    NODE_NAME,
    NODE_TYPE,
    NODE_DEPENDENCY = 5,
    NODE_MICROSECONDS = 7,
    NODE_ATTRIBUTE = 10
};
enum { META_VERSION = 1, META_ATTRIBUTE };
enum {
    ATTRIBUTE_NAME = 1,
    AS_INT32 = 7,
    AS_INT64 = 9,
    AS_UINT64 = 13,
    AS_BOOL = 27,
    AS_TEXT = 29
};
enum { WIRE_VARINT, WIRE_BYTES = 2 };

typedef struct {
    zero_bytes file, node, attribute; /* attribute: one that is being written */
    uint64_t id;                      /* of the newest node; ids begin with 1 */
    zero_status status;
} writer;

static void put(writer *w, zero_bytes *to, const void *bytes, size_t len)
{
    if (w->status == ZERO_OK) w->status = zero_bytes_append(to, bytes, len);
}

static void put_varint(writer *w, zero_bytes *to, uint64_t value)
{
    unsigned char bytes[10];
    size_t n = 0;
    do bytes[n++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    while ((value >>= 7) > 0);
    put(w, to, bytes, n);
}

static void put_number(writer *w, zero_bytes *to, uint64_t field, uint64_t value)
{
    put_varint(w, to, field << 3 | WIRE_VARINT);
    put_varint(w, to, value);
}

static void put_bytes(writer *w, zero_bytes *to, uint64_t field, const void *bytes,
                      size_t len)
{
    put_varint(w, to, field << 3 | WIRE_BYTES);
    put_varint(w, to, len);
    put(w, to, bytes, len);
}

/* An attribute of the message that is being written: a text, or else a number. */
static void put_attribute(writer *w, uint64_t field, const char *name, uint64_t as,
                          int64_t value, const char *text)
{
    w->attribute.len = 0;
    put_bytes(w, &w->attribute, ATTRIBUTE_NAME, name, strlen(name));
    if (text)
        put_bytes(w, &w->attribute, as, text, strlen(text));
    else
        put_number(w, &w->attribute, as, (uint64_t)value);
    put_bytes(w, &w->node, field, w->attribute.bytes, w->attribute.len);
}

/* Messages follow each other, each after its length. */
static void put_message(writer *w)
{
    put_varint(w, &w->file, w->node.len);
    put(w, &w->file, w->node.bytes, w->node.len);
    w->node.len = 0;
}

static uint64_t begin_node(writer *w, node_type type, const char *name, uint64_t after)
{
    put_number(w, &w->node, NODE_ID, ++w->id);
    put_bytes(w, &w->node, NODE_NAME, name, strlen(name));
    put_number(w, &w->node, NODE_TYPE, type);
    if (after > 0) put_number(w, &w->node, NODE_DEPENDENCY, after);
    put_attribute(w, NODE_ATTRIBUTE, "is_cpu_op", AS_BOOL, 0, NULL);
    return w->id;
}

/* ---- collectives ---- */

typedef struct {
    writer w;
    const zero_schedule *s;
    zero_actions actions;
    /* [contents][ranks]: messages so far, which are tags. Those between stages are counted
     * by content: both ends do not begin them all in one order. */
    int32_t *sent, *received;
    int content, contents; /* of the collective; without such messages 0 of 1 */
    int ranks;             /* of the world */
    uint64_t *node_of;     /* [actions.n]: the last node of an action */
    uint64_t *end_of;      /* [actions.n_specs]: of the exchange that begins there */
    uint64_t *end_of_file; /* [actions.n_files] */
    int rank;
    double rate; /* flops per second of this rank */
} walk;

static int64_t put_step(walk *of, const zero_steps *steps, const zero_collective_step *step,
                        const zero_member *member, uint64_t gate, const char *name)
{
    writer *w = &of->w;
    zero_traffic moved = {.bytes_fetched = 0};
    const bool sends = step->kind == ZERO_STEP_SEND,
               receives = step->kind == ZERO_STEP_RECEIVE;
    if (!sends && !receives && step->kind != ZERO_STEP_ADD && step->kind != ZERO_STEP_COPY)
        return 0;
    zero_steps_count(steps, step, &moved);
    const zero_volume all = zero_traffic_total(&moved);
    const int64_t bytes = sends ? zero_traffic_sent(&moved) : zero_volume_duplex(&all);
    if (bytes == 0) return 0;
    if (!sends && !receives) {
        begin_node(w, MEM_LOAD, name, gate);
        put_attribute(w, NODE_ATTRIBUTE, "tensor_size", AS_UINT64, bytes, NULL);
        put_attribute(w, NODE_ATTRIBUTE, "from", AS_TEXT, 0, "window");
    } else {
        const int peer = zero_member_rank(member, step->peer);
        int32_t *tags = &(sends ? of->sent : of->received)[of->content * of->ranks + peer];
        begin_node(w, sends ? COMM_SEND : COMM_RECV, name, gate);
        put_attribute(w, NODE_ATTRIBUTE, "comm_size", AS_INT64, bytes, NULL);
        put_attribute(w, NODE_ATTRIBUTE, "comm_src", AS_INT32, sends ? of->rank : peer,
                      NULL);
        put_attribute(w, NODE_ATTRIBUTE, "comm_dst", AS_INT32, sends ? peer : of->rank,
                      NULL);
        put_attribute(w, NODE_ATTRIBUTE, "comm_tag", AS_INT32,
                      (*tags)++ * of->contents + of->content, NULL);
    }
    put_message(w);
    return (int64_t)w->id;
}

/* A wait for the messages of steps[from, to) of this kind: adds to the open node. */
static void depend_on(walk *of, const zero_steps *steps, const int64_t *ids,
                      zero_step_kind kind, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        if (steps->list[i].kind == kind && ids[i] > 0)
            put_number(&of->w, &of->w.node, NODE_DEPENDENCY, (uint64_t)ids[i]);
}

static uint64_t put_wait(walk *of, const zero_steps *steps, const int64_t *ids,
                         uint64_t gate, int64_t received[2], int64_t sent[2])
{
    begin_node(&of->w, COMP, "wait", gate);
    depend_on(of, steps, ids, ZERO_STEP_RECEIVE, received[0], received[1]);
    depend_on(of, steps, ids, ZERO_STEP_SEND, sent[0], sent[1]);
    put_message(&of->w);
    received[0] = received[1];
    sent[0] = sent[1];
    return of->w.id;
}

/* Runs in order: a step that waits makes all later ones wait. *end: the node when all is
 * over. */
static zero_status put_collective(walk *of, const zero_instruction *i,
                                  const zero_collective_spec *spec, const char *name,
                                  uint64_t after, uint64_t *end)
{
    ZERO_AT_END(zero_steps_destroy) zero_steps steps = {0};
    ZERO_FREED int64_t *ids = NULL;
    const zero_member member = zero_exchange_member(of->s, i->op);
    int64_t received[2] = {0, 0}, sent[2] = {0, 0};
    uint64_t gate = after;
    ZERO_TRY(zero_steps_init(&steps, spec, zero_exchange_layout(of->s, i->op),
                             zero_exchange_rank(of->s, i->op)));
    ZERO_TRY(zero_new(&ids, steps.n + 1, "steps of a collective"));
    for (int64_t k = 0; k < steps.n; k++) {
        const zero_collective_step *step = &steps.list[k];
        received[1] = zero_max(received[0], step->received);
        sent[1] = zero_max(sent[0], step->sent);
        if (received[1] > received[0] || sent[1] > sent[0])
            gate = put_wait(of, &steps, ids, gate, received, sent);
        ids[k] = put_step(of, &steps, step, &member, gate, name);
        if (step->kind == ZERO_STEP_ADD || step->kind == ZERO_STEP_COPY)
            gate = ids[k] > 0 ? (uint64_t)ids[k] : gate;
    }
    received[1] = sent[1] = steps.n;
    *end = put_wait(of, &steps, ids, gate, received, sent);
    return of->w.status;
}

static zero_status put_exchange(walk *of, const zero_action *a, const char *name,
                                uint64_t after)
{
    uint64_t ends[2] = {after, after};
    const bool is_message = a->lane >= ZERO_FAMILY_PARTS;
    of->contents = is_message ? ZERO_PIPE_CONTENTS : 1;
    of->content = is_message ? (int)of->s->messages[a->instruction->join].content : 0;
    for (int k = 0; k < a->n_calls; k++) {
        const zero_collective_spec *spec = &of->actions.specs[a->first_spec + k].spec;
        ZERO_TRY(put_collective(of, a->instruction, spec, name,
                                a->is_chain ? ends[0] : after, &ends[0]));
        if (k > 0 && !a->is_chain) { /* all of them */
            begin_node(&of->w, COMP, "wait", ends[0]);
            put_number(&of->w, &of->w.node, NODE_DEPENDENCY, ends[1]);
            put_message(&of->w);
            ends[0] = of->w.id;
        }
        ends[1] = ends[0];
    }
    if (a->n_calls > 0) of->end_of[a->first_spec] = ends[0];
    return ZERO_OK;
}

/* ---- a rank ---- */

/* A transfer's seconds at one byte per second are its bytes. */
static void put_transfer(walk *of, const zero_action *a, const char *name, uint64_t after)
{
    const double read = zero_work_disk_seconds(of->s, a->instruction, 1.0, INFINITY),
                 written = zero_work_disk_seconds(of->s, a->instruction, INFINITY, 1.0);
    begin_node(&of->w, read > 0.0 ? MEM_LOAD : MEM_STORE, name, after);
    put_attribute(&of->w, NODE_ATTRIBUTE, "tensor_size", AS_UINT64,
                  (int64_t)(read + written), NULL);
    put_attribute(&of->w, NODE_ATTRIBUTE, "from", AS_TEXT, 0, "file");
    put_message(&of->w);
    of->end_of_file[a->file] = of->w.id;
}

static void put_agreements(walk *of, const zero_action *a, const char *name, uint64_t *now)
{
    const bool is_pipeline = of->s->pipe.n_stages > 1; /* it gathers among all */
    const int tp = is_pipeline ? 1 : of->s->input.model->share.ranks;
    for (int k = 0; k < a->n_agreements; k++) {
        char group[16];
        *now = begin_node(&of->w, COMM_COLL, name, *now);
        put_attribute(&of->w, NODE_ATTRIBUTE, "comm_type", AS_INT64,
                      a->gathers ? ALL_GATHER : ALL_REDUCE, NULL);
        put_attribute(&of->w, NODE_ATTRIBUTE, "comm_size", AS_INT64, a->bytes[k], NULL);
        zero_print(group, "%d", of->rank % tp + 1);
        if (a->gathers && tp > 1)
            put_attribute(&of->w, NODE_ATTRIBUTE, "pg_name", AS_TEXT, 0, group);
        put_message(&of->w);
    }
}

static zero_status put_actions(walk *of)
{
    uint64_t now = 0;
    for (int at = 0; at < of->actions.n; at++) {
        const zero_action *a = &of->actions.list[at];
        uint64_t awaited = 0;
        char name[ZERO_PLAN_TEXT];
        zero_text_instruction(of->s->input.model, a->instruction, name);
        switch (a->kind) {
        case ZERO_WORK_COMPUTE:
            now = begin_node(&of->w, COMP, name, now);
            put_number(&of->w, &of->w.node, NODE_MICROSECONDS,
                       (uint64_t)llround(1e6 * a->seconds));
            put_attribute(&of->w, NODE_ATTRIBUTE, "num_ops", AS_INT64,
                          llround(a->seconds * of->rate), NULL);
            put_message(&of->w);
            break;
        case ZERO_WORK_EXCHANGE: ZERO_TRY(put_exchange(of, a, name, now)); break;
        case ZERO_WORK_EXCHANGE_WAIT:
            if (a->n_calls > 0) awaited = of->end_of[a->first_spec];
            break;
        case ZERO_WORK_TRANSFER:
            if (a->is_of_stream)
                put_transfer(of, a, name, a->after < 0 ? 0 : of->node_of[a->after]);
            else
                put_transfer(of, a, name, now);
            break;
        case ZERO_WORK_TRANSFER_WAIT: awaited = of->end_of_file[a->file]; break;
        case ZERO_WORK_AGREE: put_agreements(of, a, name, &now); break;
        default: break; /* takes no time */
        }
        if (awaited > 0) {
            awaited = begin_node(&of->w, COMP, name, awaited);
            if (now > 0) put_number(&of->w, &of->w.node, NODE_DEPENDENCY, now);
            put_message(&of->w);
            now = awaited;
        }
        of->node_of[at] = now;
    }
    return of->w.status;
}

static zero_status write_rank(walk *of, const char *path, const char *command,
                              const zero_plan_machine *machine)
{
    ZERO_TRY(zero_actions_init(&of->actions, of->s, machine));
    const zero_actions *a = &of->actions;
    const int tags = of->ranks * ZERO_PIPE_CONTENTS;
    ZERO_TRY(zero_new(&of->sent, tags, "messages by rank"));
    ZERO_TRY(zero_new(&of->received, tags, "messages by rank"));
    ZERO_TRY(zero_new(&of->node_of, a->n + 1, "nodes of a trace"));
    ZERO_TRY(zero_new(&of->end_of, a->n_specs + 1, "nodes of a trace"));
    ZERO_TRY(zero_new(&of->end_of_file, a->n_files + 1, "nodes of a trace"));
    put_bytes(&of->w, &of->w.node, META_VERSION, "0.0.4", 5);
    put_attribute(&of->w, META_ATTRIBUTE, "command", AS_TEXT, 0, command);
    put_message(&of->w);
    ZERO_TRY(put_actions(of));
    return zero_whole_file_put(path, of->w.file.bytes, of->w.file.len);
}

static void close_walk(walk *of)
{
    zero_actions_destroy(&of->actions);
    zero_bytes_destroy(&of->w.file);
    zero_bytes_destroy(&of->w.node);
    zero_bytes_destroy(&of->w.attribute);
    zero_free(of->sent, of->received, of->node_of, of->end_of, of->end_of_file);
}

zero_status zero_chakra_write(const char *directory, const char *command,
                              const zero_simulation_report *report)
{
    const zero_simulate_input *in = &report->input;
    const int ranks = report->plan.layout.size;
    zero_storage_dir dir = {0};
    ZERO_TRY(zero_storage_open_or_make(directory, &dir));
    zero_storage_close(&dir);
    for (int rank = 0; rank < ranks; rank++) {
        ZERO_AT_END(zero_plan_rank_close) zero_plan_rank plan;
        ZERO_AT_END(close_walk)
        walk of = {.s = &plan.schedule, .rank = rank, .ranks = ranks};
        zero_plan_machine machine = in->machine;
        char path[ZERO_STORAGE_FILE_PATH];
        ZERO_TRY(zero_plan_rank_open(
            &report->plan, zero_plan_stage_number(&report->plan.stages[0]), rank, &plan));
        for (int k = 0; k < in->n_slow; k++)
            if (in->slow[k].rank == rank) machine.flops *= in->slow[k].factor;
        of.rate = machine.flops;
        zero_print(path, "%.1023s/zero.%d.et", directory, rank);
        ZERO_TRY(write_rank(&of, path, command, &machine));
    }
    return ZERO_OK;
}
