#include "report/json_put.h"

#include "base/embedded.h"
#include "base/legible.h"
#include "facts/form.h"

extern const zero_embedded zero_report_forms[];

zero_status zero_json_print(json_t *object, size_t flags, FILE *out)
{
    char *text = object ? json_dumps(object, flags) : NULL;
    json_decref(object);
    ZERO_FAIL_IF(!text, ZERO_ERR_NOMEM, "no memory to print JSON");
    zero_legible_print_json(text, out);
    fputc('\n', out);
    free(text);
    return ZERO_OK;
}

zero_status zero_report_print(const char *section, json_t *facts, FILE *out)
{
    const char *forms = zero_embedded_text(zero_report_forms, "report");
    ZERO_FAIL_IF(!facts, ZERO_ERR_NOMEM, "no memory for the form %s", section);
    zero_status st = zero_form_print(forms, section, facts, zero_legible_print, out);
    json_decref(facts);
    return st;
}
