#include "cli/child_log.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/legible.h"
#include "io/file.h"

#define LINES 8
#define BYTES 4096 /* in which they are looked for */

/* The end of the file, as text; empty if it cannot be read. */
static size_t read_end(const char *path, char text[BYTES + 1])
{
    zero_file file;
    size_t n = 0;
    text[0] = '\0';
    if (zero_file_open(path, &file) != ZERO_OK) return 0;
    uint64_t from = file.bytes > BYTES ? file.bytes - BYTES : 0;
    zero_status st = zero_file_read_some(&file, from, text, BYTES, &n);
    zero_file_close(&file);
    if (st != ZERO_OK) n = 0;
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\0') text[i] = ' '; /* Open MPI 5 ends its texts with them */
    text[n] = '\0';
    return n;
}

static const char *find_last_lines(const char *text, size_t n)
{
    const char *at = text + n;
    int lines = 0;
    while (at > text && !(at[-1] == '\n' && at < text + n && ++lines == LINES)) at--;
    return at;
}

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

/* Returns the line after this one, or NULL after the last. */
static const char *next(const char *line)
{
    const char *end = strchr(line, '\n');
    return end && end[1] ? end + 1 : NULL;
}

void zero_child_log_tell(const char *path, char message[ZERO_CHILD_MESSAGE])
{
    char text[BYTES + 1];
    size_t n = read_end(path, text);
    message[0] = '\0';
    for (const char *line = text; line; line = next(line))
        if (begins(line, "zero: ") && !begins(line, "zero: note: ") &&
            !begins(line, "zero: warning: "))
            zero_legible(line + strlen("zero: "), strcspn(line, "\n") - strlen("zero: "),
                         message, ZERO_CHILD_MESSAGE);
    fprintf(stderr, n > 0 ? "  the last lines of %s:\n" : "  %s is empty\n",
            ZERO_SHOWN(path));
    for (const char *line = n > 0 ? find_last_lines(text, n) : NULL; line;
         line = next(line)) {
        char shown[ZERO_SHOWN_BYTES];
        zero_legible(line, strcspn(line, "\n"), shown, sizeof shown);
        fprintf(stderr, "  | %s\n", shown);
    }
}
