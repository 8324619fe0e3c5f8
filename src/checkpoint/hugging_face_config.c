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

/* The same under two names: transformers' attributes are not called as GPT-2's keys are. */
static zero_status read_named(const char *path, const json_t *root, const char *key,
                              const char *attribute, int64_t *value)
{
    int64_t other = 0;
    ZERO_TRY(read_whole(path, root, key, value));
    ZERO_TRY(read_whole(path, root, attribute, &other));
    if (*value > 0 && other > 0 && *value != other)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"%s\" is %" PRId64
                         ", but \"%s\", which means the same, is %" PRId64,
                         path, key, *value, attribute, other);
    if (other > 0) *value = other;
    return ZERO_OK;
}

static zero_status expect_flag(const char *path, const json_t *root, const char *key,
                               bool expected)
{
    bool found = expected;
    if (json_object_get(root, key)) ZERO_TRY(zero_json_flag(path, root, key, &found));
    if (found == expected) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_UNSUPPORTED,
        "%s: \"%s\" is %s: this program computes GPT-2 as it was released, with %s", path,
        key, found ? "true" : "false", expected ? "true" : "false");
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
    return zero_fail(
        ZERO_ERR_UNSUPPORTED,
        "%s: \"%s\" is \"%s\": this program computes GPT-2 as it was released, with \"%s\"",
        path, key, zero_json_shown(found, shown), words[0]);
}

static zero_status check_calculation(const char *path, const json_t *root)
{
    /* Three names of one approximation by tanh. */
    static const char *const gelu[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", NULL};
    double eps = 1e-5;
    /* Old files have only the class: "architectures": ["GPT2LMHeadModel"]. */
    const json_t *class = json_array_get(json_object_get(root, "architectures"), 0);
    const char *type = json_string_value(json_object_get(root, "model_type"));
    char shown[ZERO_JSON_SHOWN];
    if (!type) type = json_string_value(class);
    if (type && strcmp(type, "gpt2") != 0 && strncmp(type, "GPT2", 4) != 0)
        return zero_fail(
            ZERO_ERR_UNSUPPORTED,
            "%s: describes a model of the type %s: this program computes GPT-2 alone", path,
            zero_json_shown(type, shown));
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

static zero_status read_shape(const char *path, const json_t *root, zero_shape *shape)
{
    zero_shape s = {0};
    int64_t inner = 0;
    ZERO_TRY(read_named(path, root, "n_layer", "num_hidden_layers", &s.layers));
    ZERO_TRY(read_named(path, root, "n_head", "num_attention_heads", &s.heads));
    ZERO_TRY(read_named(path, root, "n_embd", "hidden_size", &s.hidden));
    ZERO_TRY(read_named(path, root, "n_positions", "max_position_embeddings", &s.seq));
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

int64_t zero_hugging_face_positions(const json_t *root)
{
    static const char *const keys[] = {"n_positions", "max_position_embeddings"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        int64_t n = json_integer_value(json_object_get(root, keys[i]));
        if (n > 0) return n;
    }
    return 0;
}

zero_status zero_hugging_face_read_config(const char *path, const zero_bytes *text,
                                          zero_shape *shape)
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

/* Numbers that differ, as options that give what was found, and as words for what was
 * wanted. */
struct differences {
    char found[256], wanted[256];
};

/* Zeros in `found` are unknown. */
static bool differ(const zero_shape *found, const zero_shape *wanted, struct differences *d)
{
    const struct {
        const char *option;
        int64_t found, wanted;
    } all[] = {{"--layers", found->layers, wanted->layers},
               {"--hidden", found->hidden, wanted->hidden},
               {"--heads", found->heads, wanted->heads},
               {"--seq", found->seq, wanted->seq},
               {"--vocab", found->vocab, wanted->vocab}};
    *d = (struct differences){.found = ""};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t n = strlen(d->found), k = strlen(d->wanted);
        if (all[i].found == 0 || all[i].found == all[i].wanted) continue;
        snprintf(d->found + n, sizeof d->found - n, " %s %" PRId64, all[i].option,
                 all[i].found);
        snprintf(d->wanted + k, sizeof d->wanted - k, "%s%s %" PRId64, k > 0 ? ", " : "",
                 all[i].option + 2, all[i].wanted);
    }
    return d->found[0] != '\0';
}

zero_status zero_hugging_face_compare(const char *path, const zero_shape *found,
                                      const zero_shape *wanted)
{
    struct differences d;
    zero_shape read = *found;
    if (wanted->seq < read.seq) read.seq = 0; /* the first positions are read */
    if (!differ(&read, wanted, &d)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s holds a GPT-2 of another shape than this run's (%s): give%s, or "
                     "the --model that has all of it",
                     path, d.wanted, d.found);
}

zero_status zero_hugging_face_check_config(const char *path, const char *weights,
                                           const zero_shape *said,
                                           const zero_shape *tensors)
{
    struct differences d;
    zero_shape found = *said;
    found.heads = 0; /* tensors do not show them */
    if (!differ(&found, tensors, &d)) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s describes another model (%s) than that of the tensors in %s (%s): "
                     "files of two models, or not all files of one",
                     path, d.found + 1, weights, d.wanted);
}
