#include "pages/forms.h"

#include <string.h>

#include "base/embedded.h"
#include "base/legible.h"

extern const zero_embedded zero_page_forms[];

zero_status zero_print_form(const char *file, const char *section, const json_t *tree,
                            zero_put_text *put, FILE *out)
{
    return zero_form_print(zero_embedded_text(zero_page_forms, file), section, tree, put,
                           out);
}

void zero_csv_text(const char *text, FILE *out)
{
    bool is_quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (is_quoted) fputc('"', out);
    for (size_t n; *text; text += n) {
        char shown[ZERO_SHOWN_BYTES];
        n = *text == '"' ? 1 : zero_legible(text, strcspn(text, "\""), shown, sizeof shown);
        fputs(*text == '"' ? "\"\"" : shown, out);
    }
    if (is_quoted) fputc('"', out);
}
