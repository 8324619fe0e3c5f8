#include "pages/forms.h"

#include "base/embedded.h"

extern const zero_embedded zero_page_forms[];

zero_status zero_text_of_form(const char *file, const char *section, const json_t *tree,
                              char **text)
{
    return zero_form_text(zero_embedded_text(zero_page_forms, file), section, tree, NULL,
                          text);
}

zero_status zero_print_form(const char *file, const char *section, const json_t *tree,
                            zero_put_text *put, FILE *out)
{
    return zero_form_print(zero_embedded_text(zero_page_forms, file), section, tree, put,
                           out);
}
