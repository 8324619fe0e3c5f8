#include "cli/words.h"

#include <stdarg.h>

#include "base/grow.h"

zero_status zero_words_add(zero_words *words, const char *fmt, ...)
{
    va_list args;
    char *copy = NULL;
    size_t size;
    FILE *out = open_memstream(&copy, &size);
    va_start(args, fmt);
    if (out) vfprintf(out, fmt, args);
    va_end(args);
    if (out) fclose(out);
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

zero_status zero_words_split(zero_words *words, const char *option, const char *line)
{
    zero_bytes word = {0};
    zero_status st = ZERO_OK;
    char quote = '\0'; /* that the text is in */
    bool has_begun = false;
    for (const char *at = line; st == ZERO_OK && (*at || has_begun); at += *at != '\0') {
        if (quote && !*at) {
            st =
                zero_fail(ZERO_ERR_INVALID, "--%s: the quote %c has no end", option, quote);
        } else if (!quote && strchr(" \t\n", *at)) { /* or the end of the line */
            st = has_begun ? zero_bytes_append(&word, "", 1) : ZERO_OK;
            if (st == ZERO_OK && has_begun)
                st = zero_words_add(words, "%s", (const char *)word.bytes);
            has_begun = false;
            word.len = 0;
        } else if (*at == quote || (!quote && strchr("'\"", *at))) {
            quote = quote ? '\0' : *at;
            has_begun = true;
        } else if (quote != '\'' && strchr(quote ? "$`" : "$`*?[~|&;<>()", *at)) {
            st = zero_fail(ZERO_ERR_INVALID,
                           "--%s: %c would need a shell, and none reads this line: put it "
                           "in single quotes if it belongs to a word, or give sh -c 'exec "
                           "LINE \"$@\"' sh, where \"$@\" is what the line starts",
                           option, *at);
        } else {
            bool escapes = *at == '\\' && at[1] &&
                           (!quote || (quote == '"' && strchr("\"\\$`", at[1])));
            at += escapes;
            st = zero_bytes_append(&word, at, 1);
            has_begun = true;
        }
    }
    zero_bytes_destroy(&word);
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
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%";
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
