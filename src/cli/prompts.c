#include "cli/prompts.h"

#include "cli/machine.h"
#include "data/stranger.h"
#include "math/backends.h"
#include "sharding/stages.h"

static const zero_option rows[] = {
#include "cli/options/generate.rows"
};

const zero_option_table zero_generate_table = {.rows = rows};

static zero_status read_ids(const char *text, int32_t *ids, int64_t *n)
{
    *n = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        long id = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
        ZERO_INVALID_IF(id < 0 || id > INT32_MAX || errno || (*end != ',' && *end != '\0'),
                        "--prompt-tokens %.80s: expected ids with commas between "
                        "them, as in 1,2,3; found '%.20s'",
                        text, at);
        if (ids) ids[*n] = (int32_t)id;
        ++*n;
        at = end;
        if (*at == '\0') return ZERO_OK;
    }
}

zero_status zero_generate_options_check(void *options, const zero_options *given)
{
    zero_generate_options *o = options;
    int64_t n;
    o->config.backend = zero_backend_name_at(0);
    o->checkpoint = given->operands[0];
    zero_tp_take_defaults(&o->config.tp, false, 0);
    return o->prompt_tokens ? read_ids(o->prompt_tokens, NULL, &n) : ZERO_OK;
}

#define MOST_BYTES (UINT64_C(1) << 26) /* of the file */
#define NO_PROMPT  "\n\n"              /* an empty line, after which a text begins */

/* ---- the file ---- */

static zero_status read_file(const char *path, char **lines, size_t *bytes)
{
    ZERO_AT_END(zero_file_close) zero_file file = {0};
    ZERO_TRY(zero_file_open(path, &file));
    ZERO_INVALID_IF(file.bytes > MOST_BYTES,
                    "--prompts %.200s: %" PRIu64 " bytes, expected at most %" PRIu64, path,
                    file.bytes, MOST_BYTES);
    *bytes = (size_t)file.bytes;
    *lines = malloc(*bytes + 1);
    ZERO_FAIL_IF(!*lines, ZERO_ERR_NOMEM, "no memory for prompts");
    ZERO_TRY(zero_file_read(&file, 0, *lines, *bytes));
    const unsigned char *text = (const unsigned char *)*lines;
    const size_t first = zero_min_size(*bytes, ZERO_STRANGER_BYTES);
    const size_t mark = zero_stranger_mark(text, first); /* no prompt begins with it */
    ZERO_TRY(zero_stranger_check(path, text, first, true, "plain text"));
    if (zero_stranger_is_binary(text, first)) return zero_stranger_refuse_binary(path);
    *bytes -= mark;
    memmove(*lines, *lines + mark, *bytes);
    return ZERO_OK;
}

zero_status zero_prompts_read(zero_comm *world, const char *file, char **lines,
                              size_t *bytes)
{
    zero_status st = ZERO_OK;
    *lines = NULL;
    *bytes = 0;
    if (!file) return ZERO_OK;
    if (zero_comm_is_root(world)) st = read_file(file, lines, bytes);
    ZERO_TRY(zero_agree(world, st));
    ZERO_TRY(zero_comm_broadcast(world, 0, bytes, sizeof *bytes));
    if (!*lines) *lines = malloc(*bytes + 1);
    st = *lines ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for prompts");
    ZERO_TRY(zero_agree(world, st));
    return zero_comm_broadcast(world, 0, *lines, *bytes);
}

/* ---- one text ---- */

/* A prompt as it was given: by an option, or in a line of a file. */
typedef struct {
    const char *text;
    size_t bytes;
    int64_t line; /* from 1; 0: of the command line */
} prompt;

static const char *name_of(const prompt *p, char room[32])
{
    if (p->line == 0) return "--prompt";
    snprintf(room, 32, "--prompts, line %" PRId64, p->line);
    return room;
}

static zero_status check_ids(const zero_prompts_reader *r, const zero_text *t)
{
    for (int64_t i = 0; i < t->n_known; i++)
        ZERO_INVALID_IF(
            t->tokens[i] >= r->vocab,
            "--prompt-tokens: id %d is beyond the model's vocabulary of %" PRId64,
            t->tokens[i], r->vocab);
    return ZERO_OK;
}

/* `tokens` has room for the most that the bytes may have. */
static zero_status encode(const zero_prompts_reader *r, const prompt *p, zero_text *t)
{
    char room[32];
    const zero_tokenizer *tok = r->tokenizer;
    t->n_known = (int64_t)p->bytes;
    ZERO_TRY(zero_tokenizer_encode(tok, (const unsigned char *)p->text, p->bytes, t->tokens,
                                   &t->n_known));
    /* A token below 0 is a character or a byte that the tokenizer lacks. */
    for (int64_t i = 0; i < t->n_known; i++) {
        if (t->tokens[i] >= 0) continue;
        const size_t at = zero_tokenizer_span(tok, i, t->tokens);
        if (!tok->characters)
            return zero_tokenizer_refuse_byte(tok, name_of(p, room),
                                              (unsigned char)(-1 - t->tokens[i]), at);
        return zero_fail(ZERO_ERR_INVALID,
                         "%s: character %" PRId64
                         " of %.*s is not among the %d characters of the training text",
                         name_of(p, room), i + 1, p->bytes < 80 ? (int)p->bytes : 80,
                         p->text[0] == '\n' ? "an empty line" : p->text, tok->vocab);
    }
    return check_ids(r, t);
}

/* ---- all texts ---- */

static zero_status allocate(zero_prompts *p, int64_t n, int64_t tokens)
{
    p->texts = calloc((size_t)n, sizeof *p->texts);
    p->tokens = malloc((size_t)tokens * sizeof *p->tokens);
    if (p->texts && p->tokens) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for %" PRId64 " tokens", tokens);
}

static int64_t room_for(const zero_prompts_reader *r, size_t bytes)
{
    return (int64_t)zero_tokenizer_most(r->tokenizer, bytes);
}

static zero_status take_lines(const zero_prompts_reader *r, const char *lines, size_t all,
                              zero_prompts *p)
{
    const int64_t more = r->options->tokens;
    /* Without the empty lines at the end; the last line has no end of its own. */
    size_t bytes = all;
    while (bytes > 0 && (lines[bytes - 1] == '\n' || lines[bytes - 1] == '\r')) bytes--;
    int64_t n = bytes > 0;
    for (size_t i = 0; i < bytes; i++) n += lines[i] == '\n';
    ZERO_INVALID_IF(
        n == 0, "--prompts %.200s: there is no text in the file; expected one in each line",
        r->options->prompts);
    ZERO_TRY(allocate(p, n, room_for(r, bytes + (size_t)n * sizeof NO_PROMPT) + n * more));
    int32_t *room = p->tokens;
    for (const char *at = lines, *end; p->n < n; at = end + 1) {
        const size_t left = (size_t)(lines + bytes - at);
        end = memchr(at, '\n', left);
        if (!end) end = at + left;
        /* Lines may end as those of Windows do. */
        prompt line = {at, (size_t)(end - at) - (end > at && end[-1] == '\r'), p->n + 1};
        if (line.bytes == 0) {
            line = (prompt){NO_PROMPT, strlen(NO_PROMPT), line.line};
            if (p->first_empty == 0) p->first_empty = line.line;
        }
        zero_text *t = &p->texts[p->n++];
        t->tokens = room;
        ZERO_TRY(encode(r, &line, t));
        room += t->n_known + more;
    }
    return ZERO_OK;
}

static zero_status take_one(const zero_prompts_reader *r, zero_prompts *p)
{
    const zero_generate_options *o = r->options;
    const char *text = o->prompt ? o->prompt : NO_PROMPT;
    const prompt given = {text, strlen(text), 0};
    int64_t room = 0;
    if (o->prompt_tokens)
        ZERO_TRY(read_ids(o->prompt_tokens, NULL, &room));
    else
        room = room_for(r, given.bytes);
    ZERO_TRY(allocate(p, 1, room + o->tokens));
    p->n = 1;
    p->texts[0].tokens = p->tokens;
    if (!o->prompt_tokens) return encode(r, &given, &p->texts[0]);
    ZERO_TRY(read_ids(o->prompt_tokens, p->tokens, &p->texts[0].n_known));
    return check_ids(r, &p->texts[0]);
}

zero_status zero_prompts_take(const zero_prompts_reader *r, const char *lines, size_t bytes,
                              zero_prompts *prompts)
{
    ZERO_INVALID_IF(
        !r->options->prompt_tokens && !r->tokenizer,
        "%s has no tokenizer, as after training on tokens: give --prompt-tokens 1,2,3",
        r->path);
    return lines ? take_lines(r, lines, bytes, prompts) : take_one(r, prompts);
}

void zero_prompts_destroy(zero_prompts *prompts)
{
    free(prompts->texts);
    free(prompts->tokens);
    *prompts = (zero_prompts){0};
}
