#include "cli/topics.h"

#include <string.h>

#include "base/embedded.h"
#include "zero/version.h"

extern const zero_embedded zero_topic_files[];

const char *zero_topic_text(const char *name)
{
    return zero_embedded_text(zero_topic_files, name);
}

const char *zero_topic_at(int i)
{
    return zero_topic_files[i].name;
}

static int title_length(const char *text)
{
    return (int)strcspn(text, "\n");
}

void zero_topics_show(FILE *out)
{
    for (const zero_embedded *t = zero_topic_files; t->name; t++)
        fprintf(out, "  %-13s %.*s\n", t->name, title_length(t->text), t->text);
}

/* troff takes a bare dash for a hyphen, and a dot or a quote that begins a line for a
 * command. */
static void put_as_it_stands(const char *text, FILE *out)
{
    bool begins = true;
    for (; *text; begins = *text++ == '\n') {
        if (begins && (*text == '.' || *text == '\'')) fputs("\\&", out);
        if (*text == '-' || *text == '\\') fputc('\\', out);
        fputc(*text == '\\' ? 'e' : *text, out);
    }
}

void zero_topic_show(const char *name, bool man, FILE *out)
{
    const char *text = zero_topic_text(name);
    if (!man) {
        fputs(text, out);
        return;
    }
    fprintf(out, ".TH ZERO\\-%s 7 \"\" \"zero %s\" \"zero\"\n.SH NAME\nzero\\-%s \\- ",
            name, zero_version(), name);
    fprintf(out, "%.*s\n.SH DESCRIPTION\n.nf\n", title_length(text), text);
    put_as_it_stands(text + title_length(text) + 2, out);
    fputs(".fi\n.SH SEE ALSO\n.BR zero (1)\n", out);
}
