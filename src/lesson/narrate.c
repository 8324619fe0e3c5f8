#include "lesson/narrate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "sharding/schedule.h"

zero_status zero_narrate_check(const zero_model *model, int n_ranks)
{
    if (n_ranks <= ZERO_TOLD_RANKS && model->n_params <= ZERO_NARRATE_PARAMS)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "a model of %" PRId64
                     " parameters on %d ranks cannot be told number by "
                     "number; at most %d parameters on %d ranks can: take --model lesson "
                     "--data lesson",
                     model->n_params, n_ranks, ZERO_NARRATE_PARAMS, ZERO_TOLD_RANKS);
}

/* ---- lines ---- */

/* Text that continues on the next line where it would become too long. */
typedef struct {
    FILE *out;
    int column, indent;
} page;

enum { HEAD = 28, INDENT = 6, DEEPER = 8 };

__attribute__((format(printf, 2, 3))) static void put(page *p, const char *format, ...)
{
    char text[ZERO_NARRATE_WIDTH + 1];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *from = text;
    if (p->column + n > ZERO_NARRATE_WIDTH) {
        fprintf(p->out, "\n%*s", p->indent, "");
        p->column = p->indent;
        while (*from == ' ') from++;
    }
    fputs(from, p->out);
    p->column += (int)strlen(from);
}

static void put_words(page *p, const char *text)
{
    while (*text) {
        int n = (int)strcspn(text + 1, " ") + 1;
        put(p, "%.*s", n, text);
        text += n;
    }
}

static void end_line(page *p)
{
    fputc('\n', p->out);
    p->column = 0;
}

static void begin_line(page *p, int indent)
{
    p->indent = indent + 2;
    fprintf(p->out, "%*s", indent, "");
    p->column = indent;
}

/* ---- events ---- */

static bool are_alike(const zero_told *a, const zero_told *b)
{
    return a->op == b->op && a->unit == b->unit && a->group == b->group &&
           a->microbatch == b->microbatch;
}

/* The number of such events before index `at`. */
static int count_before(const zero_tale *tale, int rank, int at, const zero_told *like)
{
    int n = 0;
    for (int k = 0; k < at; k++) n += are_alike(zero_tale_at(tale, rank, k), like);
    return n;
}

/* The rank whose program all others are compared with: the first of the longest. */
static int leader_of(const zero_tale *tale)
{
    int last = tale->length - 1;
    for (int r = 0; r < tale->n_ranks; r++)
        if (zero_tale_at(tale, r, last)->op != ZERO_TOLD_NONE) return r;
    return 0;
}

/* What `rank` did in the leader's instruction `at`; NULL: nothing. */
static const zero_told *find(const zero_tale *tale, int at, int rank)
{
    int leader = leader_of(tale);
    const zero_told *like = zero_tale_at(tale, leader, at);
    const zero_told *same = zero_tale_at(tale, rank, at);
    if (are_alike(same, like)) return same;
    int left = count_before(tale, leader, at, like);
    for (int k = 0; k < tale->length; k++) {
        const zero_told *t = zero_tale_at(tale, rank, k);
        if (are_alike(t, like) && left-- == 0) return t;
    }
    return NULL;
}

static bool has(const zero_told *t, int k)
{
    return t->numbers[k].at >= 0;
}

/* ---- what several ranks say ---- */

/* What a rank says. */
typedef void teller(const zero_narrator *n, const zero_told *t,
                    char text[ZERO_NARRATE_WIDTH]);

/* "title: rank 0 ..., rank 1 ..., rank 2 ..." of the ranks that have something to say. */
static void put_ranks(page *p, const zero_narrator *n, const zero_tale *tale, int at,
                      const char *title, bool (*speaks)(const zero_told *), teller *tell)
{
    bool is_first = true;
    for (int r = 0; r < tale->n_ranks; r++) {
        const zero_told *t = find(tale, at, r);
        if (!t || !speaks(t)) continue;
        char text[ZERO_NARRATE_WIDTH];
        tell(n, t, text);
        if (is_first) begin_line(p, INDENT);
        put(p, "%s", is_first ? title : ",");
        put(p, "%srank %d: %s", is_first ? "" : " ", r, text);
        is_first = false;
    }
    if (!is_first) end_line(p);
}

static bool has_first(const zero_told *t)
{
    return has(t, 0);
}

static bool has_second(const zero_told *t)
{
    return has(t, 1);
}

static void tell_first(const zero_narrator *n, const zero_told *t,
                       char text[ZERO_NARRATE_WIDTH])
{
    (void)n;
    snprintf(text, ZERO_NARRATE_WIDTH, "%.4g", t->numbers[0].value);
}

static void tell_gradient(const zero_narrator *n, const zero_told *t,
                          char text[ZERO_NARRATE_WIDTH])
{
    (void)n;
    snprintf(text, ZERO_NARRATE_WIDTH, "%.4g", t->numbers[1].value);
}

static void tell_element(const zero_narrator *n, const zero_told *t,
                         char text[ZERO_NARRATE_WIDTH])
{
    (void)n;
    snprintf(text, ZERO_NARRATE_WIDTH, "g[%" PRId64 "] = %.4g", t->numbers[0].at,
             t->numbers[0].value);
}

static bool has_tokens(const zero_told *t)
{
    return t->tokens[0] >= 0;
}

/* Tokens of other tokenizers are shown as numbers: their texts may have any bytes. */
static bool is_letter(const zero_tokenizer *tok, int32_t token)
{
    if (!tok || token >= tok->vocab || tok->starts[token + 1] - tok->starts[token] != 1)
        return false;
    unsigned char c = tok->bytes[tok->starts[token]];
    return c > ' ' && c < 0x7f;
}

static void tell_sample(const zero_narrator *n, const zero_told *t,
                        char text[ZERO_NARRATE_WIDTH])
{
    int at = snprintf(text, ZERO_NARRATE_WIDTH, "sample %" PRId64 " \"", t->sample);
    for (int k = 0; k < ZERO_TOLD_TOKENS && t->tokens[k] >= 0; k++) {
        const zero_tokenizer *tok = n->tokenizer;
        int32_t token = (int32_t)t->tokens[k];
        if (is_letter(tok, token))
            at += snprintf(text + at, (size_t)(ZERO_NARRATE_WIDTH - at), "%c",
                           tok->bytes[tok->starts[token]]);
        else
            at += snprintf(text + at, (size_t)(ZERO_NARRATE_WIDTH - at), "%s%" PRId32,
                           k > 0 ? " " : "", token);
    }
    snprintf(text + at, (size_t)(ZERO_NARRATE_WIDTH - at), "\"");
}

static bool sends(const zero_told *t)
{
    return t->sent > 0 || t->received > 0;
}

static void tell_bytes(const zero_narrator *n, const zero_told *t,
                       char text[ZERO_NARRATE_WIDTH])
{
    (void)n;
    snprintf(text, ZERO_NARRATE_WIDTH, "sends %" PRId64 " B, receives %" PRId64 " B",
             t->sent, t->received);
}

/* In one sentence if all ranks do the same. */
static void put_traffic(page *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    const zero_told *first = find(tale, at, 0);
    bool are_equal = first != NULL;
    for (int r = 1; r < tale->n_ranks && are_equal; r++) {
        const zero_told *t = find(tale, at, r);
        are_equal = t && t->sent == first->sent && t->received == first->received;
    }
    if (!are_equal) {
        put_ranks(p, n, tale, at, "", sends, tell_bytes);
        return;
    }
    if (!sends(first)) return;
    begin_line(p, INDENT);
    put(p, "each rank sends %" PRId64 " B, receives %" PRId64 " B", first->sent,
        first->received);
    end_line(p);
}

/* ---- sums ---- */

/* The REDUCE that a REDUCE_WAIT of `rank` waits for: the last one of its group before it. */
static const zero_told *find_reduce(const zero_tale *tale, int rank, const zero_told *wait)
{
    for (int64_t k = wait->at - 1; k >= 0; k--) {
        const zero_told *t = zero_tale_at(tale, rank, (int)k);
        if (t->op == ZERO_OP_REDUCE && t->group == wait->group) return t;
    }
    return NULL;
}

static void put_term(page *p, bool is_first, double x)
{
    if (is_first)
        put(p, " %.4g", x);
    else
        put(p, " %c %.4g", x < 0.0 ? '-' : '+', x < 0.0 ? -x : x);
}

/* "rank 0 keeps elements 0..127 of the sum: g[5] = -0.0132 + 0.0417 + 0.0008 = 0.0293" */
static void put_sum(page *p, const zero_tale *tale, const zero_told *t)
{
    const zero_told_number *sum = &t->numbers[t->shard];
    bool is_first = true;
    begin_line(p, INDENT);
    put(p, "rank %" PRId64 " keeps %" PRId64 "..%" PRId64 " of the sum:", t->rank, t->begin,
        t->end - 1);
    put(p, " g[%" PRId64 "] =", sum->at);
    for (int r = 0; r < tale->n_ranks; r++) {
        const zero_told *given = find_reduce(tale, r, t);
        if (!given || given->tp != t->tp || !has(given, (int)t->shard)) continue;
        put_term(p, is_first, given->numbers[t->shard].value);
        is_first = false;
    }
    put(p, " = %.4g", sum->value);
    end_line(p);
}

static void put_sums(page *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    (void)n;
    for (int r = 0; r < tale->n_ranks; r++) {
        const zero_told *t = find(tale, at, r);
        if (!t || t->end <= t->begin) continue;
        if (has(t, (int)t->shard)) {
            put_sum(p, tale, t);
            continue;
        }
        begin_line(p, INDENT);
        put(p, "rank %d keeps %" PRId64 "..%" PRId64 ", which is padding: zeros", r,
            t->begin, t->end - 1);
        end_line(p);
    }
}

/* ---- gathered groups ---- */

static int tp_ranks(const zero_tale *tale)
{
    int64_t most = 0;
    for (int r = 0; r < tale->n_ranks; r++)
        if (zero_tale_at(tale, r, 0)->tp > most) most = zero_tale_at(tale, r, 0)->tp;
    return (int)most + 1;
}

/* Rank 0's copy stands for all of its ZeRO group: they are equal. */
static void put_gathered(page *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    const zero_told *t = find(tale, at, leader_of(tale));
    bool is_first = true;
    int T = tp_ranks(tale);
    (void)n;
    for (int k = 0; k < ZERO_TOLD_RANKS; k++) {
        if (!has(t, k)) continue;
        if (is_first) begin_line(p, INDENT);
        put(p, "%s%c[%" PRId64 "] = %.4g", is_first ? "" : ", ", t->is_gradient ? 'g' : 'p',
            t->numbers[k].at, t->numbers[k].value);
        put(p, " from rank %d", k * T + (int)t->tp);
        is_first = false;
    }
    if (!is_first) end_line(p);
}

/* ---- updates ---- */

static void put_update(page *p, const zero_told *t)
{
    begin_line(p, INDENT);
    put(p, "rank %" PRId64 ":", t->rank);
    if (t->real == 0)
        put(p, " its piece is padding");
    else if (!t->done)
        put(p, " no update is due, so its %" PRId64 " parameters stay", t->real);
    else
        put(p, " updates %" PRId64 "..%" PRId64, t->begin, t->begin + t->real - 1);
    if (t->real > 0 && t->done && has(t, 0) && has(t, 1))
        put(p, ": w[%" PRId64 "] = %.4g -> %.4g", t->numbers[0].at, t->numbers[0].value,
            t->numbers[1].value);
    if (t->real > 0 && t->done && has(t, 2)) put(p, " (g = %.4g)", t->numbers[2].value);
    end_line(p);
}

static void put_updates(page *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    (void)n;
    for (int r = 0; r < tale->n_ranks; r++) {
        const zero_told *t = find(tale, at, r);
        if (t) put_update(p, t);
    }
}

/* ---- one number, or one for each rank ---- */

static void put_samples(page *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    put_ranks(p, n, tale, at, "", has_tokens, tell_sample);
}

static void put_numbers(page *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    put_ranks(p, n, tale, at, "", has_first, tell_first);
}

static void put_elements(page *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    put_ranks(p, n, tale, at, "", has_first, tell_element);
}

static bool has_loss(const zero_told *t)
{
    return has(t, 0) && t->is_loss;
}

static bool has_output(const zero_told *t)
{
    return has(t, 0) && !t->is_loss;
}

static void put_pass(page *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    const zero_told *t = find(tale, at, leader_of(tale));
    char title[ZERO_NARRATE_WIDTH];
    put_ranks(p, n, tale, at, "loss of its sample: ", has_loss, tell_first);
    put_ranks(p, n, tale, at, "first number of the output: ", has_output, tell_first);
    if (!has(t, 1)) return;
    snprintf(title, sizeof title, "g[%" PRId64 "] of %.40s, its own: ", t->numbers[1].at,
             n->model->groups[t->group].name);
    put_ranks(p, n, tale, at, title, has_second, tell_gradient);
}

static void put_agreed(page *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    const zero_told *t = find(tale, at, leader_of(tale));
    (void)n;
    begin_line(p, INDENT);
    put(p, "%s %.6g", t->op == ZERO_OP_LOSS ? "loss" : "norm", t->numbers[0].value);
    if (t->op == ZERO_OP_OVERFLOW)
        put(p, t->done ? ", finite on all ranks: the update is made"
                       : ", not finite: no rank updates anything");
    end_line(p);
}

static void put_size(page *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    (void)n;
    begin_line(p, INDENT);
    put(p, "%" PRId64 " B", find(tale, at, leader_of(tale))->bytes);
    end_line(p);
}

/* ---- the words ---- */

typedef struct {
    const char *says;
    void (*numbers)(page *p, const zero_narrator *n, const zero_tale *tale, int at);
} sentence;

static const sentence sentences[ZERO_OP_KINDS] = {
    [ZERO_OP_LOAD] = {"each rank reads samples of its own", put_samples},
    [ZERO_OP_GATHER] = {"each rank begins to send its piece to the others", put_traffic},
    [ZERO_OP_GATHER_WAIT] = {"now each rank has the whole group", put_gathered},
    [ZERO_OP_FORWARD] = {"each rank computes with samples of its own", put_pass},
    [ZERO_OP_RECOMPUTE] = {"the same once more, for what backward reads", put_pass},
    [ZERO_OP_BACKWARD] = {"gradients of each rank's own samples", put_pass},
    [ZERO_OP_JOIN] = {"the ranks of a TP group begin to put their parts together",
                      put_traffic},
    [ZERO_OP_JOIN_WAIT] = {"now each of them has the result", NULL},
    [ZERO_OP_KEEP] = {"each rank of a TP group keeps its piece of the output", NULL},
    [ZERO_OP_COLLECT] = {"the ranks of a TP group begin to gather the pieces", put_traffic},
    [ZERO_OP_COLLECT_WAIT] = {"now each of them has the whole output", NULL},
    [ZERO_OP_RELEASE] = {"each rank gives the gathered group back", put_size},
    [ZERO_OP_ROUND] = {"the gradient is rounded to the type of gradients", put_elements},
    [ZERO_OP_ACCUMULATE] = {"this microbatch's gradient is added to the sum", put_elements},
    [ZERO_OP_REDUCE] = {"each rank begins to send pieces to their owners", put_traffic},
    [ZERO_OP_REDUCE_WAIT] = {"each rank has the sum of its own piece", put_sums},
    [ZERO_OP_ALL_REDUCE] = {"replicas begin to add up their pieces", put_traffic},
    [ZERO_OP_ALL_REDUCE_WAIT] = {"each replica has the sum of all", NULL},
    [ZERO_OP_LOSS] = {"the losses of all ranks, averaged", put_agreed},
    [ZERO_OP_NORM] = {"squares of the gradient, each rank's piece added up", put_numbers},
    [ZERO_OP_OVERFLOW] = {"all ranks add their squares, and vote", put_agreed},
    [ZERO_OP_VERIFY] = {"each rank looks for flipped bits in its states", NULL},
    [ZERO_OP_COMPARE] = {"copies are compared, in steps where that is due", NULL},
    [ZERO_OP_UPDATE] = {"each rank updates what it owns", put_updates},
    [ZERO_OP_RECORD] = {"each rank hashes its new states", NULL},
    [ZERO_OP_FETCH_GRAD] = {"the gradient begins to move to the host", NULL},
    [ZERO_OP_STORE_PARAM] = {"new parameters begin to move to the device", NULL},
    [ZERO_OP_PUBLISH] = {"the delayed update becomes visible", NULL},
    [ZERO_OP_DELAY] = {"the gradient is kept for the next step", NULL},
    [ZERO_OP_FETCH] = {"each rank begins to read optimizer states from its file", put_size},
    [ZERO_OP_FETCH_WAIT] = {"they are in memory", NULL},
    [ZERO_OP_STORE] = {"each rank begins to write them back", put_size},
    [ZERO_OP_STORE_WAIT] = {"their memory is free", NULL},
    [ZERO_OP_FETCH_PARAM] = {"each rank begins to read its piece of the parameters",
                             put_size},
    [ZERO_OP_FETCH_PARAM_WAIT] = {"it is in memory", NULL},
    [ZERO_OP_SAVE] = {"each rank begins to write the output to its file", put_size},
    [ZERO_OP_SAVE_WAIT] = {"its memory is free", NULL},
    [ZERO_OP_RESTORE] = {"each rank begins to read the output from its file", put_size},
    [ZERO_OP_RESTORE_WAIT] = {"it is in memory", NULL},
};

static const char *operand_of(const zero_narrator *n, const zero_told *t)
{
    if (t->unit >= 0) return n->model->units[t->unit].name;
    return t->group >= 0 ? n->model->groups[t->group].name : "";
}

void zero_narrate_instruction(const zero_narrator *n, const zero_tale *tale, int at,
                              FILE *out)
{
    const zero_told *t = find(tale, at, leader_of(tale));
    page p = {.out = out, .indent = HEAD + 1};
    if (!t || t->op < 0 || t->op >= ZERO_OP_KINDS) return;
    p.column = fprintf(out, "%4d  %-12s %-*s", at + 1, zero_op_name((zero_op)t->op),
                       HEAD - 19, operand_of(n, t));
    const sentence *s = &sentences[t->op];
    put_words(&p, " ");
    put_words(&p, s->says);
    end_line(&p);
    if (s->numbers) s->numbers(&p, n, tale, at);
}

void zero_narrate_step(const zero_narrator *n, const zero_tale *tale, FILE *out)
{
    fprintf(out, "step %" PRId64 ", told by %d ranks\n", zero_tale_at(tale, 0, 0)->step,
            tale->n_ranks);
    for (int at = 0; at < tale->length; at++) zero_narrate_instruction(n, tale, at, out);
}
