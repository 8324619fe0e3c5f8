#include "cli/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"

zero_status zero_words_add(zero_words *words, const char *word)
{
    char *copy = strdup(word);
    if (!copy || !zero_grow(words->words, words->n + 1, &words->room)) {
        free(copy);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the words of a command");
    }
    words->words[words->n++] = copy;
    words->words[words->n] = NULL;
    return ZERO_OK;
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
    return zero_fail(
        ZERO_ERR_INVALID,
        "--%s: %c would need a shell, and none reads this line: put it in "
        "single quotes if it belongs to a word, or give sh -c 'exec LINE \"$@\"' "
        "sh, where \"$@\" is what the line starts",
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
    if (!*s->at)
        return zero_fail(ZERO_ERR_INVALID, "--%s: the quote %c has no end", s->option,
                         quote);
    s->at++;
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

zero_status zero_words_split(zero_words *words, const char *option, const char *line)
{
    splitter s = {.option = option, .at = line};
    zero_status st = ZERO_OK;
    for (s.at += strspn(s.at, BLANKS); *s.at && st == ZERO_OK;
         s.at += strspn(s.at, BLANKS)) {
        s.word.len = 0;
        st = take_word(&s);
        if (st == ZERO_OK) st = zero_words_add(words, (const char *)s.word.bytes);
    }
    zero_bytes_destroy(&s.word);
    return st;
}

/* ---- the number of ranks ---- */

int zero_words_fill(zero_words *words, int number)
{
    int n = 0;
    for (int64_t i = 0; i < words->n; i++)
        for (const char *at; (at = strstr(words->words[i], "{}")); n++) {
            const char *word = words->words[i];
            size_t size = strlen(word) + 16;
            char *filled = malloc(size);
            if (!filled) return -1;
            snprintf(filled, size, "%.*s%d%s", (int)(at - word), word, number, at + 2);
            free(words->words[i]);
            words->words[i] = filled;
        }
    return n;
}

/* ---- for a shell ---- */

zero_status zero_words_quote(const char *word, zero_bytes *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-_=+./:,@%";
    if (*word && strspn(word, plain) == strlen(word))
        return zero_bytes_append(text, word, strlen(word));
    ZERO_TRY(zero_bytes_append(text, "'", 1));
    for (; *word; word++) {
        bool is_control = (unsigned char)*word < 0x20 || *word == 0x7f;
        ZERO_TRY(*word == '\'' ? zero_bytes_append(text, "'\\''", 4)
                               : zero_bytes_append(text, is_control ? "?" : word, 1));
    }
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
