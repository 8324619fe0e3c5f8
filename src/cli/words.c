#include "cli/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"

/* Takes over `word`; NULL: there was no memory for it. */
static zero_status take(zero_words *w, char *word)
{
    char **larger = word ? zero_grow(w->words, w->n + 1, &w->room, sizeof *w->words) : NULL;
    if (!larger) {
        free(word);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the words of a command");
    }
    w->words = larger;
    w->words[w->n++] = word;
    w->words[w->n] = NULL;
    return ZERO_OK;
}

zero_status zero_words_add(zero_words *words, const char *word)
{
    return take(words, strdup(word));
}

void zero_words_destroy(zero_words *words)
{
    for (int64_t i = 0; i < words->n; i++) free(words->words[i]);
    free(words->words);
    *words = (zero_words){0};
}

/* ---- splitting a line ---- */

#define BLANKS     " \t\n"
#define SHELLS     "$`*?[~|&;<>()"
#define SHELLS_TOO "$`" /* in double quotes */

typedef struct {
    const char *option, *at;
    zero_bytes word;
} splitter;

static zero_status refuse(const splitter *s, char c)
{
    return zero_fail(ZERO_ERR_INVALID,
                     "--%s: %c would need a shell, and none reads this line: put it in "
                     "single quotes if it belongs to a word, or give sh -c 'exec LINE "
                     "\"$@\"' sh, where \"$@\" is what the line starts",
                     s->option, c);
}

static zero_status take_character(splitter *s)
{
    return zero_bytes_append(&s->word, s->at++, 1);
}

/* Takes the text in quotes, and both quotes. */
static zero_status take_quoted(splitter *s)
{
    char quote = *s->at++;
    while (*s->at && *s->at != quote) {
        if (quote == '"' && strchr(SHELLS_TOO, *s->at)) return refuse(s, *s->at);
        if (quote == '"' && *s->at == '\\' && s->at[1] && strchr("\"\\$`", s->at[1]))
            s->at++;
        ZERO_TRY(take_character(s));
    }
    if (!*s->at++)
        return zero_fail(ZERO_ERR_INVALID, "--%s: the quote %c has no end", s->option,
                         quote);
    return ZERO_OK;
}

/* The word at s->at, up to the next blank outside of quotes. */
static zero_status take_word(splitter *s)
{
    while (*s->at && !strchr(BLANKS, *s->at)) {
        if (*s->at == '\'' || *s->at == '"') {
            ZERO_TRY(take_quoted(s));
            continue;
        }
        if (strchr(SHELLS, *s->at)) return refuse(s, *s->at);
        if (*s->at == '\\' && s->at[1]) s->at++;
        ZERO_TRY(take_character(s));
    }
    return zero_bytes_append(&s->word, "", 1);
}

static zero_status split(zero_words *words, splitter *s)
{
    for (s->at += strspn(s->at, BLANKS); *s->at; s->at += strspn(s->at, BLANKS)) {
        s->word.len = 0;
        ZERO_TRY(take_word(s));
        ZERO_TRY(zero_words_add(words, (const char *)s->word.bytes));
    }
    return ZERO_OK;
}

zero_status zero_words_split(zero_words *words, const char *option, const char *line)
{
    splitter s = {.option = option, .at = line};
    zero_status st = split(words, &s);
    zero_bytes_destroy(&s.word);
    return st;
}

/* ---- the number of ranks ---- */

/* The word with the number in place of its first {}, from `at` on; NULL without memory. */
static char *fill(const char *word, const char *at, int number)
{
    size_t size = strlen(word) + 16;
    char *filled = malloc(size);
    if (filled) snprintf(filled, size, "%.*s%d%s", (int)(at - word), word, number, at + 2);
    return filled;
}

int zero_words_fill(zero_words *words, int number)
{
    int n = 0;
    for (int64_t i = 0; i < words->n; i++)
        for (const char *at; (at = strstr(words->words[i], "{}")); n++) {
            char *filled = fill(words->words[i], at, number);
            if (!filled) return -1;
            free(words->words[i]);
            words->words[i] = filled;
        }
    return n;
}

/* ---- for a shell ---- */

static zero_status quote_character(zero_bytes *text, char c)
{
    bool is_control = (unsigned char)c < 0x20 || (unsigned char)c == 0x7f;
    if (c == '\'') return zero_bytes_append(text, "'\\''", 4);
    return zero_bytes_append(text, is_control ? "?" : &c, 1);
}

zero_status zero_words_quote(const char *word, zero_bytes *text)
{
    /* True if a shell takes the word as it stands. */
    if (*word &&
        strspn(
            word,
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%") ==
            strlen(word))
        return zero_bytes_append(text, word, strlen(word));
    ZERO_TRY(zero_bytes_append(text, "'", 1));
    for (; *word; word++) ZERO_TRY(quote_character(text, *word));
    return zero_bytes_append(text, "'", 1);
}

zero_status zero_words_command(const char *name, int argc, char **argv, zero_bytes *text)
{
    ZERO_TRY(zero_bytes_append(text, name, strlen(name)));
    for (int i = 0; i < argc; i++) {
        ZERO_TRY(zero_bytes_append(text, " ", 1));
        ZERO_TRY(zero_words_quote(argv[i], text));
    }
    return zero_bytes_append(text, "", 1);
}
