#include "lesson/narrate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "lesson/lines.h"
#include "lesson/tale.h"
#include "sharding/schedule.h"

zero_status zero_narrate_check(const zero_model *model, int n_ranks)
{
    if (n_ranks > ZERO_TOLD_RANKS)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "%d ranks cannot be told number by number; at most %d can",
                         n_ranks, ZERO_TOLD_RANKS);
    if (model->n_params <= ZERO_NARRATE_PARAMS) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_UNSUPPORTED,
        "a model of %" PRId64
        " parameters cannot be told number by number; at most %d parameters can: "
        "take --model lesson --data lesson",
        model->n_params, ZERO_NARRATE_PARAMS);
}

enum { INDENT = 6 };

/* ---- events ---- */

static bool has(const zero_told *t, int k)
{
    return t->numbers[k].at >= 0;
}

/* ---- what several ranks say ---- */

/* Writes the words of one rank. */
typedef void teller(const zero_narrator *n, const zero_told *t,
                    char text[ZERO_NARRATE_WIDTH]);

/* "title: rank 0 ..., rank 1 ..., rank 2 ..." of the ranks that have something to say. */
static void put_ranks(zero_lines *p, const zero_narrator *n, const zero_tale *tale, int at,
                      const char *title, bool (*speaks)(const zero_told *), teller *tell)
{
    bool is_first = true;
    for (int r = 0; r < tale->n_ranks; r++) {
        const zero_told *t = zero_tale_find(tale, at, r);
        if (!t || !speaks(t)) continue;
        char text[ZERO_NARRATE_WIDTH];
        tell(n, t, text);
        if (is_first) zero_lines_begin(p, INDENT);
        zero_lines_put(p, "%s", is_first ? title : ",");
        zero_lines_put(p, "%srank %d: %s", is_first ? "" : " ", r, text);
        is_first = false;
    }
    if (!is_first) zero_lines_end(p);
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
    return c >= ' ' && c < 0x7f;
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

/* The bytes that each rank sends to each other, if they are the same; else -1. */
static int64_t equal_bytes(const zero_tale *tale, int at)
{
    int64_t bytes = zero_tale_bytes(tale, at, 0, tale->n_ranks - 1);
    for (int from = 0; from < tale->n_ranks; from++)
        for (int to = 0; to < tale->n_ranks; to++)
            if (from != to && zero_tale_bytes(tale, at, from, to) != bytes) return -1;
    return bytes;
}

/* "rank 0 -> 1: 256 B, 2: 256 B" */
static void put_sender(zero_lines *p, const zero_tale *tale, int at, int from)
{
    bool is_first = true;
    for (int to = 0; to < tale->n_ranks; to++) {
        int64_t bytes = zero_tale_bytes(tale, at, from, to);
        if (bytes == 0) continue;
        if (is_first) {
            zero_lines_begin(p, INDENT);
            zero_lines_put(p, "rank %d -> %d: %" PRId64 " B", from, to, bytes);
        } else {
            zero_lines_put(p, ",");
            zero_lines_put(p, " %d: %" PRId64 " B", to, bytes);
        }
        is_first = false;
    }
    if (!is_first) zero_lines_end(p);
}

static void put_traffic(zero_lines *p, const zero_narrator *n, const zero_tale *tale,
                        int at)
{
    int64_t bytes = equal_bytes(tale, at);
    int others = tale->n_ranks - 1;
    (void)n;
    for (int r = 0; bytes < 0 && r < tale->n_ranks; r++) put_sender(p, tale, at, r);
    if (bytes <= 0 || others == 0) return;
    zero_lines_begin(p, INDENT);
    zero_lines_put(p,
                   "each rank sends %" PRId64 " B to each of the %d other%s: %" PRId64 " B",
                   bytes, others, others == 1 ? "" : "s", bytes * others);
    zero_lines_end(p);
}

/* ---- sums ---- */

static void put_term(zero_lines *p, bool is_first, double x)
{
    if (is_first)
        zero_lines_put(p, " %.4g", x);
    else
        zero_lines_put(p, " %c %.4g", x < 0.0 ? '-' : '+', x < 0.0 ? -x : x);
}

/* "rank 0 keeps elements 0..127 of the sum: g[5] = -0.0132 + 0.0417 + 0.0008 = 0.0293" */
static void put_sum(zero_lines *p, const zero_tale *tale, const zero_told *t)
{
    const zero_told_number *sum = &t->numbers[t->shard];
    int terms = 0;
    zero_lines_begin(p, INDENT);
    zero_lines_put(p,
                   "rank %" PRId64 " keeps %" PRId64 "..%" PRId64 " of the sum:", t->rank,
                   t->begin, t->end - 1);
    zero_lines_put(p, " g[%" PRId64 "] =", sum->at);
    for (int r = 0; r < tale->n_ranks; r++) {
        const zero_told *given = zero_tale_reduce(tale, r, t);
        if (!given || given->tp != t->tp || !has(given, (int)t->shard)) continue;
        put_term(p, terms++ == 0, given->numbers[t->shard].value);
    }
    if (terms != 1) zero_lines_put(p, " = %.4g", sum->value);
    zero_lines_end(p);
}

static void put_sums(zero_lines *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    (void)n;
    for (int r = 0; r < tale->n_ranks; r++) {
        const zero_told *t = zero_tale_find(tale, at, r);
        if (!t || t->end <= t->begin) continue;
        if (has(t, (int)t->shard)) {
            put_sum(p, tale, t);
            continue;
        }
        zero_lines_begin(p, INDENT);
        zero_lines_put(p, "rank %d keeps %" PRId64 "..%" PRId64 ", which is padding: zeros",
                       r, t->begin, t->end - 1);
        zero_lines_end(p);
    }
}

/* ---- gathered groups ---- */

/* Rank 0's copy stands for all of its ZeRO group: they are equal. */
static void put_gathered(zero_lines *p, const zero_narrator *n, const zero_tale *tale,
                         int at)
{
    const zero_told *t = zero_tale_find(tale, at, zero_tale_leader(tale));
    bool is_first = true;
    int T = zero_tale_tp(tale);
    (void)n;
    for (int k = 0; k < ZERO_TOLD_RANKS; k++) {
        if (!has(t, k)) continue;
        if (is_first) zero_lines_begin(p, INDENT);
        zero_lines_put(p, "%s%c[%" PRId64 "] = %.4g", is_first ? "" : ", ",
                       t->is_gradient ? 'g' : 'p', t->numbers[k].at, t->numbers[k].value);
        zero_lines_put(p, " from rank %d", k * T + (int)t->tp);
        is_first = false;
    }
    if (!is_first) zero_lines_end(p);
}

/* ---- updates ---- */

static void put_update(zero_lines *p, const zero_told *t)
{
    zero_lines_begin(p, INDENT);
    zero_lines_put(p, "rank %" PRId64 ":", t->rank);
    if (t->real == 0)
        zero_lines_put(p, " its piece is padding");
    else if (!t->done)
        zero_lines_put(p, " no update is due, so its %" PRId64 " parameters stay", t->real);
    else
        zero_lines_put(p, " updates %" PRId64 "..%" PRId64, t->begin,
                       t->begin + t->real - 1);
    if (t->real > 0 && t->done && has(t, 0) && has(t, 1))
        zero_lines_put(p, ": w[%" PRId64 "] = %.4g -> %.4g", t->numbers[0].at,
                       t->numbers[0].value, t->numbers[1].value);
    if (t->real > 0 && t->done && has(t, 2))
        zero_lines_put(p, " (g = %.4g)", t->numbers[2].value);
    zero_lines_end(p);
}

static void put_updates(zero_lines *p, const zero_narrator *n, const zero_tale *tale,
                        int at)
{
    (void)n;
    for (int r = 0; r < tale->n_ranks; r++) {
        const zero_told *t = zero_tale_find(tale, at, r);
        if (t) put_update(p, t);
    }
}

/* ---- one number, or one for each rank ---- */

static void put_samples(zero_lines *p, const zero_narrator *n, const zero_tale *tale,
                        int at)
{
    put_ranks(p, n, tale, at, "", has_tokens, tell_sample);
}

static void put_numbers(zero_lines *p, const zero_narrator *n, const zero_tale *tale,
                        int at)
{
    put_ranks(p, n, tale, at, "", has_first, tell_first);
}

static void put_elements(zero_lines *p, const zero_narrator *n, const zero_tale *tale,
                         int at)
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

static void put_pass(zero_lines *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    const zero_told *t = zero_tale_find(tale, at, zero_tale_leader(tale));
    char title[ZERO_NARRATE_WIDTH];
    put_ranks(p, n, tale, at, "loss of its sample: ", has_loss, tell_first);
    put_ranks(p, n, tale, at, "first number of the output: ", has_output, tell_first);
    if (!has(t, 1)) return;
    snprintf(title, sizeof title, "g[%" PRId64 "] of %.40s, its own: ", t->numbers[1].at,
             n->model->groups[t->group].name);
    put_ranks(p, n, tale, at, title, has_second, tell_gradient);
}

static void put_agreed(zero_lines *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    const zero_told *t = zero_tale_find(tale, at, zero_tale_leader(tale));
    (void)n;
    zero_lines_begin(p, INDENT);
    zero_lines_put(p, "%s %.6g", t->op == ZERO_OP_LOSS ? "loss" : "norm",
                   t->numbers[0].value);
    if (t->op == ZERO_OP_OVERFLOW)
        zero_lines_put(p, t->done ? ", finite on all ranks: the update is made"
                                  : ", not finite: no rank updates anything");
    zero_lines_end(p);
}

static void put_size(zero_lines *p, const zero_narrator *n, const zero_tale *tale, int at)
{
    (void)n;
    zero_lines_begin(p, INDENT);
    zero_lines_put(p, "%" PRId64 " B",
                   zero_tale_find(tale, at, zero_tale_leader(tale))->bytes);
    zero_lines_end(p);
}

/* ---- the words ---- */

typedef void printer(zero_lines *p, const zero_narrator *n, const zero_tale *tale, int at);

/* The numbers of an instruction; NULL: its meaning says all (ops.def). */
static printer *const printers[ZERO_OP_KINDS] = {
    [ZERO_OP_LOAD] = put_samples,     [ZERO_OP_GATHER_WAIT] = put_gathered,
    [ZERO_OP_FORWARD] = put_pass,     [ZERO_OP_RECOMPUTE] = put_pass,
    [ZERO_OP_BACKWARD] = put_pass,    [ZERO_OP_RELEASE] = put_size,
    [ZERO_OP_ROUND] = put_elements,   [ZERO_OP_ACCUMULATE] = put_elements,
    [ZERO_OP_REDUCE_WAIT] = put_sums, [ZERO_OP_LOSS] = put_agreed,
    [ZERO_OP_NORM] = put_numbers,     [ZERO_OP_OVERFLOW] = put_agreed,
    [ZERO_OP_UPDATE] = put_updates,
};

static printer *printer_of(int64_t op)
{
    switch (zero_ops[op].kind) {
    case ZERO_WORK_EXCHANGE: return put_traffic;
    case ZERO_WORK_TRANSFER: return put_size;
    default: return printers[op];
    }
}

/* In stage 0 ranks gather sums of gradients: they all update everything. */
static const char *meaning_of(const zero_told *t)
{
    if (!t->is_gradient) return zero_ops[(zero_op)t->op].meaning;
    return t->op == ZERO_OP_GATHER
               ? "begins to collect the sums of a group from their owners"
               : "waits until the group's gradient is whole";
}

/* "block 0"; "block 0.1" for a part of its pass. */
static void write_operand(const zero_narrator *n, const zero_told *t,
                          char text[ZERO_NARRATE_WIDTH])
{
    const char *unit = t->unit >= 0 ? n->model->units[t->unit].name : NULL;
    const char *group = t->group >= 0 ? n->model->groups[t->group].name : "";
    bool is_join = t->op == ZERO_OP_JOIN || t->op == ZERO_OP_JOIN_WAIT;
    if (unit && t->part != ZERO_PART_ALL && !is_join)
        snprintf(text, ZERO_NARRATE_WIDTH, "%.20s.%" PRId64, unit, t->part);
    else
        snprintf(text, ZERO_NARRATE_WIDTH, "%.20s", unit ? unit : group);
}

void zero_narrate_instruction(const zero_narrator *n, const zero_tale *tale, int at,
                              FILE *out)
{
    const zero_told *t = zero_tale_find(tale, at, zero_tale_leader(tale));
    zero_lines p = {.out = out, .indent = INDENT};
    char operand[ZERO_NARRATE_WIDTH];
    if (!t || t->op < 0 || t->op >= ZERO_OP_KINDS) return;
    write_operand(n, t, operand);
    p.column = fprintf(out, "%4d  %s%s%s:", at + 1, zero_op_name((zero_op)t->op),
                       operand[0] ? " " : "", operand);
    zero_lines_put(&p, " ");
    zero_lines_put_words(&p, meaning_of(t));
    zero_lines_end(&p);
    if (printer_of(t->op)) printer_of(t->op)(&p, n, tale, at);
}

void zero_narrate_step(const zero_narrator *n, const zero_tale *tale, FILE *out)
{
    fprintf(out, "step %" PRId64 ", told by %d rank%s\n", zero_tale_at(tale, 0, 0)->step,
            tale->n_ranks, tale->n_ranks == 1 ? "" : "s");
    for (int at = 0; at < tale->length; at++) zero_narrate_instruction(n, tale, at, out);
}
