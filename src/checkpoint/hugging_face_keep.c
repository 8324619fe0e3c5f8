/* What lies beside weights and no computation needs, as texts by the names of their files. */
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

/* The tokenizer itself is a file of a checkpoint. */
static const char *const names[] = {
    ZERO_HUGGING_FACE_CONFIG,  ZERO_HUGGING_FACE_GENERATION, ZERO_HUGGING_FACE_TOKENIZER,
    "special_tokens_map.json", "added_tokens.json",          "chat_template.jinja",
    "chat_template.json"};

enum { N_NAMES = sizeof names / sizeof names[0], MOST = 4 << 20 }; /* bytes of one */

static zero_status keep_text(const char *path, const char *name, const zero_bytes *text,
                             json_t *kept)
{
    json_t *value = memchr(text->bytes, '\0', text->len)
                        ? NULL
                        : json_stringn((const char *)text->bytes, text->len);
    if (!value)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected text in UTF-8, which checkpoints can keep", path);
    if (json_object_set_new(kept, name, value) == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory to keep %s", path);
}

static zero_status keep_file(const zero_hugging_face_found *found, const char *name,
                             json_t *kept)
{
    char path[ZERO_STORAGE_FILE_PATH];
    zero_bytes text = {0};
    zero_hugging_face_beside(found, name, path);
    if (access(path, F_OK) != 0) return ZERO_OK;
    zero_status st = zero_bytes_read_at_most(&text, path, MOST);
    if (st == ZERO_OK && text.len > 0) st = keep_text(path, name, &text, kept);
    zero_bytes_destroy(&text);
    return st;
}

zero_status zero_hugging_face_keep(const zero_hugging_face_found *found, json_t **kept)
{
    json_t *made = json_object();
    zero_status st =
        made ? ZERO_OK
             : zero_fail(ZERO_ERR_NOMEM, "no memory to keep what is beside weights");
    for (int i = 0; st == ZERO_OK && i < N_NAMES; i++)
        st = keep_file(found, names[i], made);
    if (st == ZERO_OK && json_object_size(made) > 0)
        *kept = made;
    else
        json_decref(made);
    return st;
}

zero_status zero_hugging_face_check_kept(const char *path, const json_t *kept)
{
    ZERO_TRY(zero_json_only(path, kept, N_NAMES, names));
    for (int i = 0; i < N_NAMES; i++) {
        const char *text;
        if (!json_object_get(kept, names[i])) continue;
        ZERO_TRY(zero_json_text(path, kept, names[i], &text));
        if (strlen(text) > MOST)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: \"%s\": expected at most %d bytes, found %zu", path,
                             names[i], MOST, strlen(text));
    }
    return ZERO_OK;
}

zero_status zero_hugging_face_kept_config(const json_t *kept, json_t **root)
{
    json_t *parsed = NULL;
    const char *name = ZERO_HUGGING_FACE_CONFIG;
    const char *text = json_string_value(json_object_get(kept, name));
    if (text)
        ZERO_TRY(zero_json_parse("the kept config.json", text, strlen(text), &parsed));
    *root = parsed;
    return ZERO_OK;
}
