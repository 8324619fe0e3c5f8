/* Sources of text: files, generated stories, the lesson, this program's own files. */

#include "base/quantity.h"
#include "data/encode.h"
#include "data/opening.h"
#include "data/self_text.h"
#include "data/tokenizer_find.h"

/* 1.3 M training tokens of bpe:512 (2.4 bytes each): more than the demo reads. */
#define STORIES_DEFAULT 3600000
#define STORIES_MOST    INT64_C(1000000000000)

enum { LESSON_WORD = 4, LESSON_TIMES = 32 };

/* Finds the name of the tokenizer, and checks the room for a text of `bytes` before it is
 * read or made. */
static zero_status begin(zero_opening *o, uint64_t bytes, const char *fallback,
                         const char **name)
{
    const zero_tokens_format text = {ZERO_TOKENS_TEXT, 1, false};
    /* Tokens of another tokenizer mean nothing to weights that were imported. */
    *name = o->from->tokenizer  ? o->from->tokenizer
            : o->from->imported ? o->from->imported
                                : fallback;
    char named[ZERO_TOKENIZER_NAMED] = "";
    if ((*name)[0] == '\0') {
        if (o->from->imported_from)
            zero_tokenizer_name_stranger(o->from->imported_from, named);
        return zero_fail(
            ZERO_ERR_INVALID,
            "--data %.200s is text, and beside the model's weights there is no tokenizer "
            "(" ZERO_TOKENIZER_FILES
            "), so its tokens would not be the model's: put the model's tokenizer there, "
            "give it as --tokenizer FILE, or give token files%s",
            o->from->data, named);
    }
    return zero_opening_begin(o, text, bytes, zero_same_text(*name, "byte"));
}

/* No token crosses the border between training and validation. */
static zero_status encode_both(const zero_material *text, const zero_tokenizer *tokenizer,
                               int threads, zero_material *tokens)
{
    zero_bytes first = {.bytes = text->all.bytes, .len = text->n_train};
    zero_bytes rest = {.bytes = text->all.bytes + text->n_train,
                       .len = text->all.len - text->n_train};
    ZERO_TRY(zero_encode_text(tokenizer, &first, threads, &tokens->all));
    tokens->n_train = tokens->all.len;
    zero_status st = zero_encode_text(tokenizer, &rest, threads, &tokens->all);
    return st == ZERO_ERR_INVALID ? zero_fail(st, "--val-data: %s", zero_last_error()) : st;
}

static void destroy_material(zero_material *m)
{
    zero_bytes_destroy(&m->all);
}
static zero_status encode(const zero_opening *o, const zero_tokenizer *tokenizer,
                          zero_material *tokens)
{
    const size_t len = o->read.all.len, room = o->read.all.most;
    const size_t left = room > len ? room - len : 1;
    if (room > 0) tokens->all.most = left;
    zero_status st = encode_both(&o->read, tokenizer, o->from->threads, tokens);
    if (st != ZERO_ERR_NOMEM || room == 0) return st;
    return zero_fail(
        ZERO_ERR_NOMEM,
        "the tokens of %.1f MiB of text need more than the %.1f MiB of memory that are "
        "left beside it; give less data, or start on nodes with more memory",
        (double)len / 0x1p20, (double)left / 0x1p20);
}

static zero_status finish(zero_opening *o, const char *name, zero_corpus *corpus)
{
    size_t bytes = o->read.n_train = o->read.all.len;
    ZERO_TRY(zero_opening_read_validation(o, (zero_tokens_limit){0}));
    ZERO_TRY(zero_opening_learn(o, name, corpus));
    const zero_tokenizer *tok = corpus->tokenizer;
    /* Texts of a corpus are joined and cut into windows, so nothing stands around them. */
    if (tok->around[0])
        zero_listener_tell(
            &o->from->listener,
            "the tokenizer %s puts tokens around a text (%s); the texts of --data get none",
            tok->name, tok->around);
    if (zero_tokenizer_is_bytes(tok)) { /* the bytes are the tokens */
        zero_opening_adopt(o, &o->read, 1, corpus);
    } else {
        ZERO_AT_END(destroy_material) zero_material tokens = {.is_split = o->read.is_split};
        ZERO_TRY(encode(o, tok, &tokens));
        zero_opening_adopt(o, &tokens, zero_encode_width(tok), corpus);
    }
    ZERO_TRY(zero_opening_widen(o, corpus));
    zero_print(corpus->description, "%.100s, %zu bytes, %" PRId64 " tokens (%s)",
               o->from->data, bytes,
               corpus->has_validation ? corpus->n_train : corpus->n_tokens,
               corpus->tokenizer->name);
    return ZERO_OK;
}

/* ---- stories ---- */

bool zero_opening_is_stories(const char *spec)
{
    return zero_same_text(spec, "stories") || strncmp(spec, "stories:", 8) == 0;
}

/* ---- the others ---- */

/* "abcabcdbcdecdefd...habh", again and again: each letter, the two after it, and the letter
 * again. */
static zero_status write_lesson(zero_bytes *text)
{
    static const int after[LESSON_WORD] = {0, 1, 2, 0};
    unsigned char letters[ZERO_LESSON_LETTERS * LESSON_WORD];
    for (int i = 0; i < ZERO_LESSON_LETTERS * LESSON_WORD; i++)
        letters[i] = (unsigned char)('a' + (i / LESSON_WORD + after[i % LESSON_WORD]) %
                                               ZERO_LESSON_LETTERS);
    for (int i = 0; i < LESSON_TIMES; i++)
        ZERO_TRY(zero_bytes_append(text, letters, sizeof letters));
    return ZERO_OK;
}

static zero_status read_files(zero_opening *o)
{
    const zero_files *files = &o->data.files;
    ZERO_TRY(zero_material_read(&o->read, &o->data, 0, files->n, (zero_tokens_limit){0}));
    ZERO_FORMAT_IF(o->read.all.len == 0, "%s: nothing to train on: %s empty", o->from->data,
                   files->n == 1 ? "the file is" : "all of its files are");
    return ZERO_OK;
}

zero_status zero_opening_take_text(zero_opening *o, zero_corpus *corpus)
{
    const char *data = o->from->data, *name;
    const bool is_lesson = zero_same_text(data, "lesson"),
               is_self = zero_same_text(data, "self");
    const uint64_t lesson = ZERO_LESSON_LETTERS * LESSON_WORD * LESSON_TIMES;
    zero_bytes *all = &o->read.all;
    if (zero_opening_is_stories(data)) {
        const char *colon = strchr(data, ':');
        int64_t size = STORIES_DEFAULT, n_stories;
        double cost;
        ZERO_AT_END(zero_stories_destroy) zero_stories stories = {0};
        ZERO_INVALID_IF(colon && (!zero_quantity_whole(colon + 1, &size) || size < 1 ||
                                  size > STORIES_MOST),
                        "--data %s: expected stories:SIZE with a size in bytes from 1 to "
                        "1000G, as in stories:4M or stories:4MiB",
                        data);
        ZERO_TRY(zero_stories_init(&stories, o->from->seed));
        ZERO_TRY(begin(o, (size_t)size, ZERO_STORIES_TOKENIZER, &name));
        ZERO_TRY(
            zero_stories_fill(&stories, (size_t)size, &o->read.all, &n_stories, &cost));
        ZERO_TRY(finish(o, name, corpus));
        /* Patterns may join what the measure counts apart, such as a full stop and a line's
         * end. */
        corpus->has_entropy =
            corpus->tokenizer->n_patterns == 0 && !corpus->tokenizer->has_marks;
        if (corpus->has_entropy)
            corpus->entropy = zero_stories_measure(&stories, corpus->tokenizer);
        zero_print(corpus->description, "%" PRId64 " stories, %" PRId64 " tokens (%s)",
                   n_stories, corpus->has_validation ? corpus->n_train : corpus->n_tokens,
                   corpus->tokenizer->name);
        return ZERO_OK;
    }
    ZERO_TRY(begin(o,
                   is_lesson ? lesson
                   : is_self ? zero_self_len
                             : o->data.bytes,
                   is_lesson ? ZERO_LESSON_TOKENIZER : "byte", &name));
    ZERO_TRY(is_lesson ? write_lesson(all)
             : is_self ? zero_bytes_append(all, zero_self_text, zero_self_len)
                       : read_files(o));
    return finish(o, name, corpus);
}
