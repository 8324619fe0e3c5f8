#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "io/json_input.h"

/* Getters accept by type: whole, real, flag, text, object and list. */
static int fits(const json_t *object, const char *key)
{
    int64_t whole;
    double real;
    bool flag;
    const char *text;
    const json_t *inner;
    int n = 0;
    if (zero_json_whole("f", object, key, INT64_MIN, INT64_MAX, &whole) == ZERO_OK) n++;
    if (zero_json_real("f", object, key, &real) == ZERO_OK) {
        FUZZ_LAW(isfinite(real));
        n += json_is_real(json_object_get(object, key)); /* whole numbers fit twice */
    }
    n += zero_json_flag("f", object, key, &flag) == ZERO_OK;
    n += zero_json_text("f", object, key, &text) == ZERO_OK;
    n += zero_json_object("f", object, key, &inner) == ZERO_OK;
    n += zero_json_array("f", object, key, &inner) == ZERO_OK;
    return n;
}

static void walk(json_t *value, int depth)
{
    const char *key;
    json_t *inner;
    size_t i;
    FUZZ_LAW(depth <= ZERO_JSON_DEPTH);
    json_object_foreach(value, key, inner)
    {
        FUZZ_LAW(fits(value, key) == (json_is_null(inner) ? 0 : 1));
        fuzz_check_refusal(zero_json_only("f", value, 1, &(const char *){"a"}));
        walk(inner, depth + 1);
    }
    json_array_foreach(value, i, inner) walk(inner, depth + 1);
}

/* Accepted JSON, written and read again, is equal. */
static void check_round_trip(json_t *root)
{
    json_t *back = NULL;
    char *text = json_dumps(root, JSON_ENCODE_ANY | JSON_COMPACT);
    FUZZ_LAW(text != NULL);
    FUZZ_LAW(zero_json_parse("f", text, strlen(text), &back) == ZERO_OK);
    FUZZ_LAW(json_equal(root, back));
    json_decref(back);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *root = NULL;
    zero_status st = zero_json_parse("f", data, size, &root);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    walk(root, 0);
    check_round_trip(root);
    json_decref(root);
    return 0;
}
