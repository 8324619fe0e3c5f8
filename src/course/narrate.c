#include "course/narrate.h"

#include "base/embedded.h"
#include "facts/form.h"
#include "sharding/schedule.h"

extern const zero_embedded zero_narrate_texts[];

zero_status zero_narrate_check(const zero_model *model, int n_ranks)
{
    ZERO_FAIL_IF(n_ranks > ZERO_TOLD_RANKS, ZERO_ERR_UNSUPPORTED,
                 "%d ranks cannot be told number by number; at most %d can", n_ranks,
                 ZERO_TOLD_RANKS);
    ZERO_FAIL_IF(model->n_params > ZERO_NARRATE_PARAMS, ZERO_ERR_UNSUPPORTED,
                 "a model of %" PRId64
                 " parameters cannot be told number by number; at most %d parameters "
                 "can: take --model lesson --data lesson",
                 model->n_params, ZERO_NARRATE_PARAMS);
    return ZERO_OK;
}

/* ---- one instruction among the events of all ranks ---- */

void zero_tale_take(zero_tale *tale, int rank, const zero_told *events, int n)
{
    zero_told *to = &tale->list[(int64_t)rank * tale->length];
    zero_copy(to, events, n);
    for (int at = n; at < tale->length; at++) to[at].op = ZERO_TOLD_NONE;
}

int zero_tale_leader(const zero_tale *tale)
{
    int last = tale->length - 1;
    for (int r = 0; r < tale->n_ranks; r++)
        if (zero_tale_at(tale, r, last)->op != ZERO_TOLD_NONE) return r;
    return 0;
}

static bool are_alike(const zero_told *a, const zero_told *b)
{
    return a->op == b->op && a->unit == b->unit && a->part == b->part &&
           a->group == b->group && a->microbatch == b->microbatch;
}

const zero_told *zero_tale_find(const zero_tale *tale, int at, int rank)
{
    int leader = zero_tale_leader(tale), before = 0;
    const zero_told *like = zero_tale_at(tale, leader, at);
    for (int k = 0; k < at; k++) before += are_alike(zero_tale_at(tale, leader, k), like);
    for (int k = 0; k < tale->length; k++) {
        const zero_told *t = zero_tale_at(tale, rank, k);
        if (are_alike(t, like) && before-- == 0) return t;
    }
    return NULL;
}

const zero_told *zero_tale_reduce(const zero_tale *tale, int rank, const zero_told *wait)
{
    const zero_told *last = NULL;
    for (int k = 0; k < tale->length && k < wait->at; k++) {
        const zero_told *t = zero_tale_at(tale, rank, k);
        if (t->op == ZERO_OP_REDUCE && t->group == wait->group) last = t;
    }
    return last;
}

/* ---- the tree ---- */

/* "abca"; other tokens than letters are shown as numbers, since their texts may have any
 * bytes. */
static json_t *tokens_tree(const zero_tokenizer *tok, const zero_told *t)
{
    char text[ZERO_NARRATE_WIDTH];
    int at = 0;
    if (t->tokens[0] < 0) return json_null();
    for (int k = 0; k < ZERO_TOLD_TOKENS && t->tokens[k] >= 0; k++) {
        int32_t token = (int32_t)t->tokens[k];
        bool is_one =
            tok && token < tok->vocab && tok->starts[token + 1] - tok->starts[token] == 1;
        unsigned char c = is_one ? tok->bytes[tok->starts[token]] : 0;
        if (c >= ' ' && c < 0x7f)
            at += snprintf(text + at, sizeof text - (size_t)at, "%c", c);
        else
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", k > 0 ? " " : "",
                           token);
    }
    return json_string(text);
}

/* The terms of a sum as its owner waits for it: "-0.0132", "+ 0.0417", ... */
static json_t *terms_tree(const zero_tale *tale, const zero_told *t)
{
    json_t *terms = json_array();
    for (int r = 0; r < tale->n_ranks && t->op == ZERO_OP_REDUCE_WAIT; r++) {
        const zero_told *given = zero_tale_reduce(tale, r, t);
        if (!given || given->tp != t->tp || given->numbers[t->shard].at < 0) continue;
        double x = given->numbers[t->shard].value;
        bool is_first = json_array_size(terms) == 0;
        json_array_append_new(terms, json_sprintf("%s%.4g",
                                                  is_first  ? ""
                                                  : x < 0.0 ? "- "
                                                            : "+ ",
                                                  is_first ? x : fabs(x)));
    }
    return terms;
}

static json_t *event_tree(const zero_narrator *n, const zero_tale *tale, const zero_told *t)
{
    json_t *numbers = json_array();
    bool is_agreed = t->op == ZERO_OP_LOSS || t->op == ZERO_OP_OVERFLOW;
    for (int k = 0; k < ZERO_TOLD_RANKS; k++) {
        const zero_told_number *x = &t->numbers[k];
        /* No value, which is NULL here, if the number is not finite. */
        json_array_append_new(
            numbers,
            x->at < 0
                ? json_null()
                : json_pack("{s:I,s:o*,s:o}", "at", x->at, "value", json_real(x->value),
                            "said", json_sprintf(is_agreed ? "%.6g" : "%.4g", x->value)));
    }
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:b,s:b,s:b,s:o,s:o,s:O}", "rank", t->rank, "tp",
        t->tp, "begin", t->begin, "last", (t->end - 1), "real", t->real, "bytes", t->bytes,
        "sample", t->sample, "text", tokens_tree(n->tokenizer, t), "loss", t->is_loss != 0,
        "gradient", t->is_gradient != 0, "done", t->done != 0, "terms", terms_tree(tale, t),
        "numbers", numbers, "own", json_array_get(numbers, (size_t)t->shard));
}

static json_t *instruction_tree(const zero_narrator *n, const zero_tale *tale, int at)
{
    const zero_told *t = zero_tale_at(tale, zero_tale_leader(tale), at),
                    *found[ZERO_TOLD_RANKS];
    const char *unit = t->unit >= 0 ? n->model->units[t->unit].name : NULL;
    const char *group = t->group >= 0 ? n->model->groups[t->group].name : "";
    /* "block 0"; "block 0.1" for a part of its pass */
    bool is_part = unit && t->part != ZERO_PART_ALL && t->op != ZERO_OP_JOIN &&
                   t->op != ZERO_OP_JOIN_WAIT;
    json_t *operand = is_part ? json_sprintf("%.20s.%" PRId64, unit, t->part)
                              : json_sprintf("%.20s", unit ? unit : group);
    /* In stage 0 ranks gather sums of gradients: they all update everything. */
    const char *meaning = !t->is_gradient ? zero_ops[t->op].meaning
                          : t->op == ZERO_OP_GATHER
                              ? "begins to collect the sums of a group from their owners"
                              : "waits until the group's gradient is whole";
    json_t *ranks = json_array();
    int64_t tp = 0;
    for (int r = 0; r < tale->n_ranks; r++) {
        found[r] = zero_tale_find(tale, at, r);
        if (zero_tale_at(tale, r, 0)->tp > tp) tp = zero_tale_at(tale, r, 0)->tp;
        if (found[r]) json_array_append_new(ranks, event_tree(n, tale, found[r]));
    }
    json_t *tree =
        json_pack("{s:I,s:i,s:s,s:o,s:s,s:s,s:I,s:i,s:o,s:o}", "step", t->step, "number",
                  at + 1, "op", zero_op_name((zero_op)t->op), "operand", operand, "meaning",
                  meaning, "group", group, "T", tp + 1, "first", tale->first, "lead",
                  event_tree(n, tale, t), "ranks", ranks);
    /* The bytes that ranks send to each other, by message or because the other reads
     * their memory. */
    json_t *senders = json_array();
    int64_t equal = -2; /* none yet; -1: they differ */
    for (int from = 0; from < tale->n_ranks; from++) {
        json_t *to_ranks = json_array();
        for (int to = 0; to < ZERO_TOLD_RANKS; to++) {
            const int here = to - tale->first; /* or in another stage */
            const bool is_here = here >= 0 && here < tale->n_ranks;
            int64_t bytes = found[from] ? found[from]->sent_to[to] : 0;
            if (is_here && found[here]) bytes += found[here]->read_from[tale->first + from];
            if (is_here && from != here) equal = equal == -2 || equal == bytes ? bytes : -1;
            if (bytes > 0) zero_put_item(to_ranks, "{s:i,s:I}", "rank", to, "bytes", bytes);
        }
        if (json_array_size(to_ranks) > 0)
            zero_put_item(senders, "{s:i,s:O}", "rank", tale->first + from, "to", to_ranks);
        json_decref(to_ranks);
    }
    zero_put_whole(tree, "equal", equal == -2 ? 0 : equal);
    zero_put_whole(tree, "others", tale->n_ranks - 1);
    json_object_set_new(tree, "senders", senders);
    return tree;
}

json_t *zero_narrate_tree(const zero_narrator *n, const zero_tale *tale)
{
    json_t *step = json_array();
    int leader = zero_tale_leader(tale);
    for (int at = 0; at < tale->length; at++)
        if (zero_tale_at(tale, leader, at)->op != ZERO_TOLD_NONE)
            json_array_append_new(step, instruction_tree(n, tale, at));
    return step;
}

/* ---- words ---- */

enum { INDENT = 6 };

/* Blanks of a form's own text are written as ~ where no line may be broken; those of the
 * tree's texts never break a line. */
#define KEPT  '\1' /* a blank */
#define TILDE '\2' /* the tree's own ~ */

static void put_kept(const char *text, FILE *out)
{
    for (; *text; text++) fputc(*text == ' ' ? KEPT : *text == '~' ? TILDE : *text, out);
}

void zero_wrap(const char *text, size_t length, int column, int indent, int width,
               FILE *out)
{
    const char *end = text + length;
    for (bool is_first = true;; is_first = false) {
        int word = 0;
        while (text < end && strchr(" \n", *text)) text++;
        while (text + word < end && !strchr(" \n", text[word])) word++;
        if (word == 0) break;
        if (!is_first && column + 1 + word > width)
            column = fprintf(out, "\n%*s", indent, "") - 1;
        else if (!is_first)
            column += fprintf(out, " ");
        column += word;
        for (; word > 0; word--, text++) fputc(*text == KEPT ? ' ' : *text, out);
    }
    fputc('\n', out);
}

zero_status zero_narrate_instruction(const json_t *instruction, FILE *out)
{
    const char *operand = zero_get_string(instruction, "operand");
    const char *meaning = zero_get_string(instruction, "meaning");
    ZERO_FREED char *text = NULL;
    int column =
        fprintf(out, "%4d  %s%s%s: ", (int)zero_get_whole(instruction, "number"),
                zero_get_string(instruction, "op"), operand[0] ? " " : "", operand);
    zero_wrap(meaning, strlen(meaning), column, INDENT, ZERO_NARRATE_WIDTH, out);
    ZERO_TRY(zero_form_text(zero_embedded_text(zero_narrate_texts, "narrate"),
                            "instruction", instruction, put_kept, &text));
    /* The lines of the form; a line that is empty, and a comma that ends one, are left
     * out. */
    for (char *c = text; *c; c++) *c = *c == '~' ? KEPT : *c == TILDE ? '~' : *c;
    for (char *line = text; *line;) {
        size_t length = strcspn(line, "\n"), n = length;
        while (n > 0 && strchr(", ", line[n - 1])) n--;
        if (n > 0) fprintf(out, "%*s", INDENT, "");
        if (n > 0) zero_wrap(line, n, INDENT, INDENT + 2, ZERO_NARRATE_WIDTH, out);
        line += length + (line[length] == '\n');
    }
    return ZERO_OK;
}

zero_status zero_narrate_step(const json_t *step, FILE *out)
{
    const json_t *first = json_array_get(step, 0);
    json_t *instruction;
    size_t at;
    int n = (int)zero_get_whole(first, "others") + 1;
    fprintf(out, "step %" PRId64 ", told by %d rank%s\n", zero_get_whole(first, "step"), n,
            n == 1 ? "" : "s");
    json_array_foreach(step, at, instruction)
    {
        ZERO_TRY(zero_narrate_instruction(instruction, out));
    }
    return ZERO_OK;
}
