/* config.json, read: what decides the calculation, except the tensors. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

/* ---- reading ---- */

/* An optional whole number, which may also be null. */
static zero_status read_whole(const char *path, const json_t *root, const char *key,
                              int64_t *value)
{
    const json_t *member = json_object_get(root, key);
    if (!member || json_is_null(member)) return ZERO_OK;
    return zero_json_whole(path, root, key, 1, INT64_C(1) << 40, value);
}

static zero_status expect_flag(const char *path, const json_t *root, const char *key,
                               bool expected)
{
    bool found = expected;
    if (json_object_get(root, key)) ZERO_TRY(zero_json_flag(path, root, key, &found));
    if (found == expected) return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "%s: \"%s\" is %s: this program computes GPT-2 as it was released, "
                     "with %s",
                     path, key, found ? "true" : "false", expected ? "true" : "false");
}

/* An optional text, one of these words; the list ends with NULL. */
static zero_status expect_text(const char *path, const json_t *root, const char *key,
                               const char *const *words)
{
    const char *found = NULL;
    char shown[ZERO_JSON_SHOWN];
    if (json_object_get(root, key)) ZERO_TRY(zero_json_text(path, root, key, &found));
    if (!found) return ZERO_OK;
    for (int i = 0; words[i]; i++)
        if (strcmp(found, words[i]) == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "%s: \"%s\" is \"%s\": this program computes GPT-2 as it was "
                     "released, with \"%s\"",
                     path, key, zero_json_shown(found, shown), words[0]);
}

static zero_status check_calculation(const char *path, const json_t *root)
{
    /* Three names of one approximation by tanh. */
    static const char *const gelu[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", NULL};
    static const char *const type[] = {"gpt2", NULL};
    double eps = 1e-5;
    ZERO_TRY(expect_text(path, root, "model_type", type));
    ZERO_TRY(expect_text(path, root, "activation_function", gelu));
    ZERO_TRY(expect_flag(path, root, "scale_attn_weights", true));
    ZERO_TRY(expect_flag(path, root, "scale_attn_by_inverse_layer_idx", false));
    ZERO_TRY(expect_flag(path, root, "tie_word_embeddings", true));
    if (json_object_get(root, "layer_norm_epsilon"))
        ZERO_TRY(zero_json_real(path, root, "layer_norm_epsilon", &eps));
    if (fabs(eps - 1e-5) <= 1e-11) return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "%s: \"layer_norm_epsilon\" is %g: this program computes with 1e-5",
                     path, eps);
}

static zero_status read_shape(const char *path, const json_t *root, zero_gpt2_shape *shape)
{
    zero_gpt2_shape s = {0};
    int64_t inner = 0;
    ZERO_TRY(read_whole(path, root, "n_layer", &s.layers));
    ZERO_TRY(read_whole(path, root, "n_head", &s.heads));
    ZERO_TRY(read_whole(path, root, "n_embd", &s.hidden));
    ZERO_TRY(read_whole(path, root, "n_positions", &s.seq));
    ZERO_TRY(read_whole(path, root, "vocab_size", &s.vocab));
    ZERO_TRY(read_whole(path, root, "n_inner", &inner));
    if (inner > 0 && inner != 4 * s.hidden)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "%s: \"n_inner\" is %" PRId64
                         ": this program's blocks have 4 n_embd = %" PRId64 " there",
                         path, inner, 4 * s.hidden);
    *shape = s;
    return ZERO_OK;
}

zero_status zero_hugging_face_read_config(const char *path, const zero_bytes *text,
                                          zero_gpt2_shape *shape)
{
    json_t *root = NULL;
    ZERO_TRY(zero_json_parse(path, text->bytes, text->len, &root));
    zero_status st = ZERO_OK;
    if (!json_is_object(root))
        st = zero_fail(ZERO_ERR_FORMAT, "%s: expected one JSON object", path);
    if (st == ZERO_OK) st = check_calculation(path, root);
    if (st == ZERO_OK) st = read_shape(path, root, shape);
    json_decref(root);
    return st;
}

/* ---- comparing ---- */

struct difference {
    const char *option;
    int64_t found, wanted;
    bool may_be_less;
};

/* Fewer positions than the file's are its first ones. */
static bool differ(const struct difference *d)
{
    bool fits = d->may_be_less && d->wanted < d->found;
    return d->found > 0 && d->found != d->wanted && !fits;
}

zero_status zero_hugging_face_compare(const char *path, const zero_gpt2_shape *found,
                                      const zero_gpt2_shape *wanted)
{
    const struct difference all[] = {{"--layers", found->layers, wanted->layers, false},
                                     {"--hidden", found->hidden, wanted->hidden, false},
                                     {"--heads", found->heads, wanted->heads, false},
                                     {"--seq", found->seq, wanted->seq, true},
                                     {"--vocab", found->vocab, wanted->vocab, false}};
    char options[256] = "", ours[256] = "";
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t n = strlen(options), k = strlen(ours);
        if (!differ(&all[i])) continue;
        snprintf(options + n, sizeof options - n, " %s %" PRId64, all[i].option,
                 all[i].found);
        snprintf(ours + k, sizeof ours - k, "%s%s %" PRId64, k > 0 ? ", " : "",
                 all[i].option + 2, all[i].wanted);
    }
    if (!options[0]) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "%s holds a GPT-2 of another shape than this run's (%s): give%s, or the "
        "--model that has all of it",
        path, ours, options);
}
