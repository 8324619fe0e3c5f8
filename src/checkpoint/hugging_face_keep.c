/* Files beside weights that no computation needs are kept as texts, by their names. */

#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

/* The tokenizer itself is a file of a checkpoint. */
static const char *const names[] = {
    ZERO_HUGGING_FACE_CONFIG,  ZERO_HUGGING_FACE_GENERATION, ZERO_HUGGING_FACE_TOKENIZER,
    "special_tokens_map.json", "added_tokens.json",          "chat_template.jinja",
    "chat_template.json"};

enum {
    N_NAMES = ZERO_COUNT(names),
    OF_MODEL = 2,  /* the first are the model's, the others its tokenizer's */
    MOST = 4 << 20 /* bytes of one */
};

zero_status zero_hugging_face_keep(const zero_hugging_face_found *found, bool has_model,
                                   json_t **kept)
{
    json_auto_t *made = json_object();
    ZERO_TRY(zero_allocated(made, "no memory to keep what is beside weights"));
    for (int i = has_model ? 0 : OF_MODEL; i < N_NAMES; i++) {
        char path[ZERO_STORAGE_FILE_PATH];
        ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
        zero_hugging_face_beside(found, names[i], path);
        if (zero_path_look(path) == ZERO_PATH_OF_NOTHING) continue;
        ZERO_TRY(zero_bytes_read_at_most(&text, path, MOST));
        if (text.len == 0) continue;
        bool is_text = !memchr(text.bytes, '\0', text.len);
        json_t *value = is_text ? json_stringn((const char *)text.bytes, text.len) : NULL;
        ZERO_FORMAT_IF(!value, "%s: expected text in UTF-8, which checkpoints can keep",
                       path);
        ZERO_TRY(zero_allocated(json_object_set_new(made, names[i], value) == 0,
                                "no memory to keep %s", path));
    }
    if (json_object_size(made) > 0) *kept = json_incref(made);
    return ZERO_OK;
}

zero_status zero_hugging_face_check_kept(const char *path, const json_t *kept)
{
    ZERO_TRY(zero_json_only(path, kept, N_NAMES, names));
    for (int i = 0; i < N_NAMES; i++) {
        const char *text;
        if (!json_object_get(kept, names[i])) continue;
        ZERO_TRY(zero_json_text(path, kept, names[i], &text));
        ZERO_FORMAT_IF(strlen(text) > MOST,
                       "%s: \"%s\": expected at most %d bytes, found %zu", path, names[i],
                       MOST, strlen(text));
    }
    return ZERO_OK;
}

zero_status zero_hugging_face_parse_kept(const json_t *kept, const char *name,
                                         json_t **root)
{
    char path[64];
    json_t *parsed = NULL;
    const char *text = zero_get_string(kept, name);
    zero_print(path, "the kept %s", name);
    if (text) ZERO_TRY(zero_json_parse_wide(path, text, strlen(text), &parsed));
    *root = parsed;
    return ZERO_OK;
}

/* ---- the ends of texts ---- */

enum { GPT2_END = 50256 }; /* <|endoftext|> in the vocabulary of GPT-2 */

zero_status zero_hugging_face_special(const json_t *kept, const zero_tokenizer *tok,
                                      const zero_shape *shape, const char *name,
                                      int32_t *id)
{
    const bool is_gpt2 = shape->kind == &zero_architectures[ZERO_GPT2];
    *id = -1;
    if (tok) {
        /* The token whose text a kept file calls by this name: "</s>", or {"content":
         * "</s>", ...}; -1: none. */
        static const char *const files[] = {ZERO_HUGGING_FACE_TOKENIZER,
                                            "special_tokens_map.json"};
        for (int i = 0; *id < 0 && i < ZERO_COUNT(files); i++) {
            json_auto_t *root = NULL;
            int32_t tokens[64];
            int64_t n = 0;
            ZERO_TRY(zero_hugging_face_parse_kept(kept, files[i], &root));
            const json_t *value = json_object_get(root, name);
            const char *text = json_string_value(
                json_is_object(value) ? json_object_get(value, "content") : value);
            const size_t len = text ? strlen(text) : 0;
            if (len == 0 || zero_tokenizer_most(tok, len) > sizeof tokens / sizeof *tokens)
                continue;
            ZERO_TRY(
                zero_tokenizer_encode(tok, (const unsigned char *)text, len, tokens, &n));
            if (n == 1) *id = tokens[0];
        }
    }
    if (*id >= 0 || zero_same_text(name, "pad_token")) return ZERO_OK;
    *id = tok ? tok->end_of_text : is_gpt2 && shape->vocab > GPT2_END ? GPT2_END : -1;
    return ZERO_OK;
}

zero_status zero_hugging_face_ends(const json_t *kept, const zero_tokenizer *tok,
                                   const zero_shape *shape, zero_ends *ends)
{
    static const char *const files[] = {ZERO_HUGGING_FACE_GENERATION,
                                        ZERO_HUGGING_FACE_CONFIG};
    int32_t own;
    *ends = (zero_ends){.n = 0};
    ZERO_TRY(zero_hugging_face_special(kept, tok, shape, "eos_token", &own));
    for (int i = 0; ends->n == 0 && i < ZERO_COUNT(files); i++) {
        json_auto_t *root = NULL;
        ZERO_TRY(zero_hugging_face_parse_kept(kept, files[i], &root));
        const json_t *value = json_object_get(root, "eos_token_id");
        if (value && !json_is_null(value)) {
            size_t n = json_is_array(value) ? json_array_size(value) : 1;
            for (size_t k = 0; k < n; k++) {
                const json_t *id = json_is_array(value) ? json_array_get(value, k) : value;
                int64_t token = json_integer_value(id);
                ZERO_FORMAT_IF(
                    !json_is_integer(id) || token < 0 || token > INT32_MAX || n > ZERO_ENDS,
                    "the kept %s: \"eos_token_id\": expected a token or a list of "
                    "at most %d",
                    files[i], ZERO_ENDS);
                ends->id[ends->n++] = (int32_t)token;
            }
        }
    }
    if (ends->n == 0 && own >= 0) ends->id[ends->n++] = own;
    return ZERO_OK;
}
