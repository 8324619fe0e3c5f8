/* The files that transformers reads beside the tensors and the tokenizer's own:
 * config.json, generation_config.json and tokenizer_config.json, written. */
#include <ctype.h>

#include "checkpoint/hugging_face.h"

/* Numbers have 15 digits, which any double keeps. */
zero_status zero_hugging_face_print(const char *name, json_t *root, zero_bytes *out)
{
    ZERO_FREED char *text =
        root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(root);
    ZERO_TRY(zero_allocated(text, "no memory for %s", name));
    ZERO_TRY(zero_bytes_append(out, text, strlen(text)));
    return zero_bytes_append(out, "\n", 1);
}

zero_status zero_hugging_face_write_config(const zero_hugging_face_export *e,
                                           zero_bytes *out)
{
    json_t *root;
    ZERO_TRY(zero_hugging_face_make_config(e, &root));
    return zero_hugging_face_print(ZERO_HUGGING_FACE_CONFIG, root, out);
}

/* NULL: it was not kept. */
static const char *kept_text(const zero_hugging_face_export *e, const char *name)
{
    return zero_get_string(e->kept, name);
}

zero_status zero_hugging_face_write_generation(const zero_hugging_face_export *e,
                                               zero_bytes *out)
{
    static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    const char *text = kept_text(e, ZERO_HUGGING_FACE_GENERATION);
    json_t *root, *config;
    if (text) return zero_bytes_append(out, text, strlen(text));
    ZERO_TRY(zero_hugging_face_make_config(e, &config));
    root = json_object();
    for (int i = 0; root && i < ZERO_COUNT(keys); i++)
        if (json_object_get(config, keys[i]))
            json_object_set(root, keys[i], json_object_get(config, keys[i]));
    json_decref(config);
    return zero_hugging_face_print(ZERO_HUGGING_FACE_GENERATION, root, out);
}

zero_status zero_hugging_face_write_tokenizer(const zero_hugging_face_export *e,
                                              zero_bytes *out)
{
    const zero_shape *s = e->model->shape;
    const char *text = kept_text(e, ZERO_HUGGING_FACE_TOKENIZER);
    int64_t began;
    if (!text) {
        /* The class is the one that takes a tokenizer.json as it is: GPT2Tokenizer would
         * cut text by GPT-2's pattern whatever the file says. Cleaned-up blanks would not
         * be the text's. Without its inputs the class would give types of tokens, too,
         * which GPT2LMHeadModel adds to the embedding. */
        json_t *root = json_pack("{s:s, s:I, s:b, s:[s, s]}", "tokenizer_class",
                                 "PreTrainedTokenizerFast", "model_max_length",
                                 (json_int_t)s->seq, "clean_up_tokenization_spaces", 0,
                                 "model_input_names", "input_ids", "attention_mask");
        if (root && e->tokenizer->end_of_text >= 0) {
            size_t len;
            const unsigned char *end =
                zero_tokenizer_decode(e->tokenizer, e->tokenizer->end_of_text, &len);
            json_object_set_new(root, "bos_token", json_stringn((const char *)end, len));
            json_object_set_new(root, "eos_token", json_stringn((const char *)end, len));
        }
        return zero_hugging_face_print(ZERO_HUGGING_FACE_TOKENIZER, root, out);
    }
    ZERO_TRY(zero_hugging_face_lost_positions(e->kept, s, &began));
    if (!kept_text(e, ZERO_HUGGING_FACE_CONFIG)) began = s->seq; /* another model's */
    /* transformers' tokenizer_config.json may have 10^30 as model_max_length, which no
     * strict reader takes. So a text that was kept stays as it is, but for that number
     * if the model has fewer positions than it began with. */
    static const char key[] = "\"model_max_length\"";
    char number[32];
    size_t len = 0, n = (size_t)zero_print(number, "%" PRId64, s->seq);
    /* Quotes within texts have a backslash before them, so they do not end the key. */
    const char *at = began > 0 ? strstr(text, key) : NULL;
    if (at) {
        for (at += sizeof key - 1; isspace((unsigned char)*at) || *at == ':'; at++) {
        }
        len = strspn(at, "0123456789.eE+");
    }
    if (len == 0 || strtod(at, NULL) <= (double)s->seq)
        return zero_bytes_append(out, text, strlen(text));
    ZERO_TRY(zero_bytes_append(out, text, (size_t)(at - text)));
    ZERO_TRY(zero_bytes_append(out, number, n));
    return zero_bytes_append(out, at + len, strlen(at + len));
}
