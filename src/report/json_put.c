#include "report/json_put.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/legible.h"

zero_status zero_json_print(json_t *object, size_t flags, FILE *out)
{
    char *text = object ? json_dumps(object, flags) : NULL;
    json_decref(object);
    if (!text) return zero_fail(ZERO_ERR_NOMEM, "no memory to print JSON");
    zero_legible_print_json(text, out);
    fputc('\n', out);
    free(text);
    return ZERO_OK;
}
