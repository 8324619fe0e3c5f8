/* Tokenizers of characters, for --tokenizer char.
 *
 * A character is a Unicode code point in UTF-8. The vocabulary of a text is the ascending
 * list of those that occur in it, and a character's place there is its token:
 * sorted(set(text)) in nanoGPT's data/shakespeare_char/prepare.py. Its tokenizer.json is
 * WordLevel, whose words are the characters. */

#include "base/grow.h"
#include "base/utf8.h"
#include "data/tokenizer_json.h"
#include "io/json_input.h"

/* Characters in ascending order, at most ZERO_VOCAB_MAX. */
static zero_status make(zero_tokenizer *tok, const uint32_t *characters, int32_t n)
{
    ZERO_AT_END(zero_tokenizer_destroy)
    zero_tokenizer made = {
        .name = "char", .vocab = n, .characters = true, .end_of_text = -1};
    ZERO_TRY(zero_new(&made.starts, n + 1, "characters"));
    ZERO_TRY(zero_new(&made.bytes, 4 * n, "bytes of characters"));
    for (int32_t i = 0; i < n; i++) {
        unsigned char *at = made.bytes + made.starts[i];
        made.starts[i + 1] = made.starts[i] + (uint32_t)zero_utf8_write(characters[i], at);
    }
    ZERO_TRY(zero_tokenizer_index_texts(&made, NULL));
    ZERO_GIVE(tok, made);
    return ZERO_OK;
}

/* ---- of a text ---- */

enum { CODE_POINTS = 0x110000 };

zero_status zero_tokenizer_learn_characters(zero_tokenizer *tok, const unsigned char *text,
                                            size_t len)
{
    ZERO_FREED bool *occurs = NULL;
    ZERO_FREED uint32_t *list = NULL;
    int32_t n = 0, at = 0;
    ZERO_TRY(zero_new(&occurs, CODE_POINTS, "possible characters"));
    /* Marks each character that occurs, and counts them. */
    for (size_t place = 0, bytes; place < len; place += bytes) {
        uint32_t c = 0;
        bytes = zero_utf8_read(text + place, len - place, &c);
        ZERO_FORMAT_IF(bytes == 0,
                       "--tokenizer char: the text is not UTF-8 at byte %zu (0x%02x); "
                       "--tokenizer byte takes any bytes",
                       place, text[place]);
        ZERO_FORMAT_IF(c == 0,
                       "--tokenizer char: the text has a NUL at byte %zu, which the "
                       "tokenizer's file cannot hold; --tokenizer byte takes any bytes",
                       place);
        n += !occurs[c];
        occurs[c] = true;
    }
    ZERO_FORMAT_IF(n > ZERO_VOCAB_MAX,
                   "--tokenizer char: the text has %d different characters, more than %d; "
                   "use --tokenizer byte or bpe:N",
                   n, ZERO_VOCAB_MAX);
    ZERO_FORMAT_IF(n == 0, "a tokenizer has 1 to %d characters, not 0", ZERO_VOCAB_MAX);
    ZERO_TRY(zero_new(&list, n, "characters"));
    for (uint32_t c = 0; c < CODE_POINTS; c++)
        if (occurs[c]) list[at++] = c;
    return make(tok, list, n);
}

/* ---- files ---- */

bool zero_tokenizer_has_characters(const json_t *root)
{
    const char *type = zero_get_string(json_object_get(root, "model"), "type");
    return type && zero_same_text(type, "WordLevel");
}

zero_status zero_tokenizer_take_characters(const char *path, const json_t *root,
                                           zero_tokenizer *out)
{
    const json_t *model = NULL, *vocab = NULL;
    ZERO_FREED uint32_t *list = NULL;
    ZERO_TRY(zero_json_object(path, root, "model", &model));
    ZERO_TRY(zero_json_object(path, model, "vocab", &vocab));
    /* Only files as this program writes them. */
    json_auto_t *expected =
        zero_tokenizer_describe(ZERO_FORM_CHARACTERS, json_incref((json_t *)vocab), NULL);
    ZERO_TRY(zero_allocated(expected, "%.500s: no memory to check it", path));
    ZERO_FAIL_IF(!json_equal(expected, root), ZERO_ERR_UNSUPPORTED,
                 "%.500s: \"model\": WordLevel is not supported, but for the tokenizers of "
                 "characters that this program writes",
                 path);
    const size_t n = json_object_size(vocab);
    ZERO_FORMAT_IF(n < 1 || n > ZERO_VOCAB_MAX,
                   "%.500s: \"vocab\": expected 1 to %d characters, found %zu", path,
                   ZERO_VOCAB_MAX, n);
    ZERO_TRY(zero_new(&list, n, "characters"));
    /* Lists the characters by their ids. */
    const char *text, *wrong = NULL;
    char last[5] = "";
    json_t *value;
    json_object_foreach((json_t *)vocab, text, value)
    {
        const size_t len = strlen(text);
        uint32_t c = 0;
        const bool is_one =
            len > 0 && zero_utf8_read((const unsigned char *)text, len, &c) == len;
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (!is_one || id < 0 || (size_t)id >= n)
            wrong = text;
        else
            list[id] = c;
    }
    for (size_t i = 0; !wrong && i < n; i++) {
        if (list[i] > (i > 0 ? list[i - 1] : 0)) continue;
        zero_utf8_write(list[i], (unsigned char *)last);
        wrong = last;
    }
    ZERO_FORMAT_IF(
        wrong,
        "%.500s: \"vocab\": expected characters in ascending order with the ids 0 "
        "to %zu, each once: \"%s\" does not fit",
        path, n - 1, ZERO_SHOWN_SHORT(wrong));
    return make(out, list, (int32_t)n);
}
