/* Patterns that are matched by loops cut texts as their regular expressions do. */

#include "support/test.h"

#include "base/fail.h"
#include "base/rng.h"
#include "data/pattern.h"

enum { PARTS = 24, ROOM = 4 * PARTS, TEXTS = 40000 };

/* Letters of contractions and others, white space, digits, marks; then what is not ASCII: letters,
 * one that folds to s, blanks, a line's end, a digit, a mark, and bytes that are not UTF-8. */
static const char *const alphabet[] = {
    "a",
    "T",
    "s",
    "S",
    "'",
    "'",
    "r",
    "e",
    "E",
    "v",
    "l",
    " ",
    " ",
    " ",
    "\n",
    "\n",
    "\r",
    "\t",
    "\v",
    "1",
    "2",
    "3",
    ".",
    "(",
    "\x1c",
    "\x7f",
    "é",
    "ß",
    "ſ",
    "\xc2\xa0",
    "\xe2\x80\x83",
    "\xc2\x85",
    "٣",
    "…",
    "\xff",
    "\xc3",
};
enum { LETTERS = COUNT(alphabet), ASCII = 26 };

static size_t draw(zero_rng *rng, uint64_t text, unsigned char out[ROOM])
{
    size_t len = 0;
    const uint64_t most = zero_rng_bits(rng, text * 64 + 63) % PARTS;
    const uint64_t kinds = text % 3 == 0 ? LETTERS : ASCII;
    for (uint64_t i = 0; i < most; i++) {
        const char *part = alphabet[zero_rng_bits(rng, text * 64 + i) % kinds];
        memcpy(out + len, part, strlen(part));
        len += strlen(part);
    }
    return len;
}

/* The lengths of pieces. */
typedef struct {
    size_t n, lengths[ROOM];
} pieces;

static zero_status note(void *arg, const unsigned char *piece, size_t len)
{
    pieces *p = arg;
    (void)piece;
    p->lengths[p->n++] = len;
    return ZERO_OK;
}

static pieces cut(zero_pattern *pattern, const unsigned char *text, size_t len)
{
    pieces p = {0};
    assert_ok(zero_pattern_split(&pattern, 1, text, len, note, &p));
    return p;
}

static zero_pattern *compiled(const char *regex)
{
    zero_pattern *p = NULL;
    assert_ok(zero_pattern_compile("test", regex, &p));
    return p;
}

/* Within a group the same expression is one that the loops do not know. */
static void check(const char *regex)
{
    char group[512];
    unsigned char text[ROOM];
    zero_rng rng = {.seed = 11, .purpose = ZERO_RNG_TEST};
    snprintf(group, sizeof group, "(?:%s)", regex);
    zero_pattern *known = compiled(regex), *other = compiled(group);
    assert_true(zero_pattern_is_known(known) && !zero_pattern_is_known(other));
    for (uint64_t i = 0; i < TEXTS; i++) {
        const size_t len = draw(&rng, i, text);
        const pieces got = cut(known, text, len), want = cut(other, text, len);
        if (got.n != want.n || memcmp(&got, &want, sizeof got) != 0)
            fail_msg("text %d of %zu bytes: %zu pieces instead of %zu", (int)i, len, got.n,
                     want.n);
    }
    zero_pattern_destroy(known);
    zero_pattern_destroy(other);
}

TEST(gpt2s_pieces_are_those_of_its_expression)
{
    check(ZERO_PATTERN_GPT2);
}

TEST(llama3s_pieces_are_those_of_its_expression)
{
    check(ZERO_PATTERN_LLAMA3);
}
