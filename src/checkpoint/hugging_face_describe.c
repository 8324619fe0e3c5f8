/* The files that transformers reads beside the tensors and the tokenizer's own:
 * config.json, generation_config.json and tokenizer_config.json, written. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

static json_t *end_of_text(const zero_shape *s, const zero_tokenizer *tok)
{
    int64_t end = zero_hugging_face_end(tok, s->vocab);
    return end >= 0 ? json_integer(end) : json_null();
}

/* A float has 9 digits, and a number of another program 15 that any double keeps. */
enum { OWN_DIGITS = 9, KEPT_DIGITS = 15 };

/* Takes the reference. */
static zero_status append(const char *name, json_t *root, size_t digits, zero_bytes *out)
{
    char *text =
        root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(digits)) : NULL;
    json_decref(root);
    zero_status st = zero_allocated(text, "no memory for %s", name);
    if (st == ZERO_OK) st = zero_bytes_append(out, text, strlen(text));
    if (st == ZERO_OK) st = zero_bytes_append(out, "\n", 1);
    free(text);
    return st;
}

/* ---- config.json ---- */

static json_t *own_config(const zero_shape *s, const zero_tokenizer *tok)
{
    double dropout = (double)s->dropout;
    return json_pack("{s:[s], s:s, s:I, s:I, s:I, s:n, s:I, s:I, s:I, s:s, s:f, s:f, s:f, "
                     "s:f, s:f, s:b, s:b, s:b, s:b, s:s, s:o, s:o}",
                     "architectures", "GPT2LMHeadModel", "model_type", "gpt2", "n_layer",
                     (json_int_t)s->layers, "n_head", (json_int_t)s->heads, "n_embd",
                     (json_int_t)s->hidden, "n_inner", "n_positions", (json_int_t)s->seq,
                     "n_ctx", (json_int_t)s->seq, "vocab_size", (json_int_t)s->vocab,
                     "activation_function", "gelu_new", "layer_norm_epsilon", 1e-5,
                     "initializer_range", 0.02, "embd_pdrop", dropout, "attn_pdrop",
                     dropout, "resid_pdrop", dropout, "scale_attn_weights", 1,
                     "scale_attn_by_inverse_layer_idx", 0, "reorder_and_upcast_attn", 0,
                     "tie_word_embeddings", 1, "torch_dtype", "float32", "bos_token_id",
                     end_of_text(s, tok), "eos_token_id", end_of_text(s, tok));
}

/* The config.json that is written, a kept one as that of the model: the caller's. */
static zero_status make_config(const zero_hugging_face_export *e, json_t **root)
{
    static const char *const ours[] = {"architectures", "model_type", "n_layer",
                                       "n_head",        "n_embd",     "n_positions",
                                       "n_ctx",         "vocab_size", "torch_dtype"};
    static const char *const others[] = {"num_hidden_layers", "num_attention_heads",
                                         "hidden_size", "max_position_embeddings", "dtype"};
    json_t *kept;
    ZERO_TRY(zero_hugging_face_kept_config(e->kept, &kept));
    json_t *own = own_config(e->model->shape, e->tokenizer);
    bool is_made = own != NULL;
    for (size_t i = 0; kept && i < sizeof others / sizeof others[0]; i++)
        json_object_del(kept, others[i]);
    for (size_t i = 0; kept && is_made && i < sizeof ours / sizeof ours[0]; i++)
        is_made = json_object_set(kept, ours[i], json_object_get(own, ours[i])) == 0;
    *root = kept ? kept : own;
    if (kept) json_decref(own);
    if (is_made) return ZERO_OK;
    json_decref(*root);
    return zero_fail(ZERO_ERR_NOMEM, "no memory for " ZERO_HUGGING_FACE_CONFIG);
}

zero_status zero_hugging_face_write_config(const zero_hugging_face_export *e,
                                           zero_bytes *out)
{
    json_t *root;
    ZERO_TRY(make_config(e, &root));
    return append(ZERO_HUGGING_FACE_CONFIG, root, e->kept ? KEPT_DIGITS : OWN_DIGITS, out);
}

/* ---- the others ---- */

/* NULL: it was not kept. */
static const char *kept_text(const zero_hugging_face_export *e, const char *name)
{
    return json_string_value(json_object_get(e->kept, name));
}

zero_status zero_hugging_face_write_generation(const zero_hugging_face_export *e,
                                               zero_bytes *out)
{
    static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    const char *text = kept_text(e, ZERO_HUGGING_FACE_GENERATION);
    json_t *root, *config;
    if (text) return zero_bytes_append(out, text, strlen(text));
    ZERO_TRY(make_config(e, &config));
    root = json_object();
    for (size_t i = 0; root && i < sizeof keys / sizeof keys[0]; i++)
        if (json_object_get(config, keys[i]))
            json_object_set(root, keys[i], json_object_get(config, keys[i]));
    json_decref(config);
    return append(ZERO_HUGGING_FACE_GENERATION, root, OWN_DIGITS, out);
}

/* The class is the one that takes a tokenizer.json as it is: GPT2Tokenizer would cut text
 * by GPT-2's pattern whatever the file says. Cleaned-up blanks would not be the text's.
 * Without its inputs the class would give types of tokens, too, which GPT2LMHeadModel adds
 * to the embedding. */
static zero_status describe_tokenizer(const zero_shape *s, const zero_tokenizer *tok,
                                      zero_bytes *out)
{
    json_t *root =
        json_pack("{s:s, s:I, s:b, s:[s, s]}", "tokenizer_class", "PreTrainedTokenizerFast",
                  "model_max_length", (json_int_t)s->seq, "clean_up_tokenization_spaces", 0,
                  "model_input_names", "input_ids", "attention_mask");
    if (root && tok->end_of_text >= 0) {
        size_t len;
        const unsigned char *text = zero_tokenizer_decode(tok, tok->end_of_text, &len);
        json_object_set_new(root, "bos_token", json_stringn((const char *)text, len));
        json_object_set_new(root, "eos_token", json_stringn((const char *)text, len));
    }
    return append(ZERO_HUGGING_FACE_TOKENIZER, root, OWN_DIGITS, out);
}

/* transformers' tokenizer_config.json may have 10^30 as model_max_length, which no strict
 * reader takes. So a text that was kept stays as it is, but for that number if the model
 * has fewer positions than it began with. */
static zero_status append_shortened(const char *text, int64_t seq, zero_bytes *out)
{
    static const char key[] = "\"model_max_length\"";
    char number[32];
    size_t len = 0, n = (size_t)snprintf(number, sizeof number, "%" PRId64, seq);
    /* Quotes within texts have a backslash before them, so they do not end the key. */
    const char *at = strstr(text, key);
    if (at) {
        for (at += sizeof key - 1; isspace((unsigned char)*at) || *at == ':'; at++) {
        }
        len = strspn(at, "0123456789.eE+");
    }
    if (len == 0 || strtod(at, NULL) <= (double)seq)
        return zero_bytes_append(out, text, strlen(text));
    ZERO_TRY(zero_bytes_append(out, text, (size_t)(at - text)));
    ZERO_TRY(zero_bytes_append(out, number, n));
    return zero_bytes_append(out, at + len, strlen(at + len));
}

zero_status zero_hugging_face_write_tokenizer(const zero_hugging_face_export *e,
                                              zero_bytes *out)
{
    const zero_shape *s = e->model->shape;
    const char *text = kept_text(e, ZERO_HUGGING_FACE_TOKENIZER);
    json_t *config;
    if (!text) return describe_tokenizer(s, e->tokenizer, out);
    ZERO_TRY(zero_hugging_face_kept_config(e->kept, &config));
    int64_t positions = zero_hugging_face_positions(config);
    json_decref(config);
    return positions > s->seq ? append_shortened(text, s->seq, out)
                              : zero_bytes_append(out, text, strlen(text));
}
