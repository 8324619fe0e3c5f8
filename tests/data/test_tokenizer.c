

#include "support/test.h"

#include "base/rng.h"
#include "data/bpe.h"
#include "data/piece.h"
#include "data/tokenizer.h"
#include "support/encode_test.h"
#include "support/within.h"

static const char fable[] =
    "The fox saw the grapes. The grapes hung high, and the fox jumped, and jumped again; "
    "but "
    "the grapes hung too high. \"They are sour,\" said the fox, \"12 or 120 of them, all "
    "of "
    "them sour.\" And the fox went home to the other foxes.\n\nFoxes, foxes, foxes!\n";

static zero_tokenizer learn(const char *spec, const void *text, size_t len)
{
    zero_tokenizer tok;
    assert_ok(zero_tokenizer_init(1, &tok, spec, text, len));
    return tok;
}

TEST(any_bytes_come_back)
{
    enum { LEN = 20000 }; /* long enough for the encoder's cache */
    unsigned char text[LEN];
    zero_rng rng = {.seed = 5, .purpose = ZERO_RNG_TEST};
    zero_tokenizer toks[] = {learn("byte", NULL, 0),
                             learn("bpe:290", fable, strlen(fable))};
    for (size_t t = 0; t < 2; t++)
        /* The second alphabet is small and has many blanks, so merges and runs happen. */
        for (int alphabet = 0; alphabet < 2; alphabet++) {
            for (size_t i = 0; i < LEN; i++) {
                uint64_t bits = zero_rng_bits(&rng, i);
                text[i] = alphabet == 0 ? (unsigned char)bits
                                        : (unsigned char)"the fox  \n 1"[bits % 12];
            }
            for (size_t len = 0; len < 300; len++)
                assert_round_trip(&toks[t], text + len, len);
            assert_round_trip(&toks[t], text, LEN);
        }
    for (size_t t = 0; t < 2; t++) zero_tokenizer_destroy(&toks[t]);
}

TEST(every_byte_is_a_token_of_its_own)
{
    zero_tokenizer tok = learn("bpe:290", fable, strlen(fable));
    for (int32_t c = 0; c < 256; c++) {
        int32_t token;
        size_t len;
        unsigned char byte = (unsigned char)c;
        assert_int_equal(encoded(&tok, &byte, 1, &token), 1);
        assert_int_equal(token, c);
        assert_int_equal(*zero_tokenizer_decode(&tok, c, &len), c);
        assert_int_equal(len, 1);
    }
    zero_tokenizer_destroy(&tok);
}

TEST(an_empty_text_has_no_tokens)
{
    int32_t token;
    zero_tokenizer tok = learn("bpe:257", fable, strlen(fable));
    assert_int_equal(encoded(&tok, (const unsigned char *)"", 0, &token), 0);
    zero_tokenizer_destroy(&tok);
}

TEST(words_of_utf8_become_one_token)
{
    const char *text = "Grüße Grüße Grüße grüßen 日本語 日本語 日本語 日本語 日本語";
    zero_tokenizer tok = learn("bpe:270", text, strlen(text));
    int32_t tokens[64];
    const char *word = " 日本語";
    assert_round_trip(&tok, (const unsigned char *)text, strlen(text));
    assert_int_equal(encoded(&tok, (const unsigned char *)word, strlen(word), tokens), 1);
    zero_tokenizer_destroy(&tok);
}

TEST(pieces_are_words_with_their_blank)
{
    const char *text = "Hi, you  2x  \n Z\n\nA";
    const char *pieces[] = {"Hi", ",", " you", " ", " 2", "x", "  \n", " Z", "\n\n", "A"};
    size_t at = 0, n = 0;
    for (; at < strlen(text); n++) {
        size_t end = zero_piece_end((const unsigned char *)text, strlen(text), at);
        assert_int_equal(end - at, strlen(pieces[n]));
        assert_memory_equal(text + at, pieces[n], end - at);
        at = end;
    }
    assert_int_equal(n, sizeof pieces / sizeof pieces[0]);
}

TEST(no_piece_is_longer_than_the_limit)
{
    unsigned char text[1000];
    for (int c = 0; c < 256; c += 16) {
        memset(text, c, sizeof text);
        for (size_t at = 0, end; at < sizeof text; at = end) {
            end = zero_piece_end(text, sizeof text, at);
            assert_within(end - at, 1, ZERO_PIECE_MAX);
        }
    }
}

TEST(a_text_cut_between_pieces_encodes_the_same)
{
    size_t len = strlen(fable);
    const unsigned char *text = (const unsigned char *)fable;
    int32_t whole[sizeof fable], parts[sizeof fable];
    zero_tokenizer tok = learn("bpe:290", fable, len);
    int64_t n = encoded(&tok, text, len, whole);
    for (size_t cut = 0; cut < len; cut = zero_piece_end(text, len, cut)) {
        int64_t first = encoded(&tok, text, cut, parts);
        int64_t second = encoded(&tok, text + cut, len - cut, parts + first);
        assert_int_equal(first + second, n);
        assert_memory_equal(parts, whole, (size_t)n * sizeof *whole);
    }
    zero_tokenizer_destroy(&tok);
}

/* ---- learning, against the definition: all pairs are counted for every merge ---- */

typedef struct {
    int32_t ids[2048]; /* the text; -1 between pieces */
    int n;
} slow_text;

static void cut(slow_text *s, const char *text, size_t len)
{
    s->n = 0;
    for (size_t at = 0, end; at < len; at = end) {
        end = zero_piece_end((const unsigned char *)text, len, at);
        for (; at < end; at++) s->ids[s->n++] = (unsigned char)text[at];
        s->ids[s->n++] = -1;
    }
}

static int64_t count(const slow_text *s, zero_merge pair)
{
    int64_t n = 0;
    for (int i = 0; i + 1 < s->n; i++)
        n += s->ids[i] == pair.left && s->ids[i + 1] == pair.right;
    return n;
}

static int64_t best_pair(const slow_text *s, zero_merge *best)
{
    int64_t most = 0;
    for (int i = 0; i + 1 < s->n; i++) {
        zero_merge pair = {s->ids[i], s->ids[i + 1]};
        if (pair.left < 0 || pair.right < 0) continue;
        int64_t n = count(s, pair);
        bool first =
            pair.left < best->left || (pair.left == best->left && pair.right < best->right);
        if (n > most || (n == most && first)) *best = pair;
        if (n > most) most = n;
    }
    return most;
}

static void join_pairs(slow_text *s, zero_merge pair, int32_t token)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        bool here = i + 1 < s->n && s->ids[i] == pair.left && s->ids[i + 1] == pair.right;
        s->ids[n++] = here ? token : s->ids[i];
        i += here;
    }
    s->n = n;
}

TEST(merges_are_those_of_counting_anew_each_time)
{
    static const char *const texts[] = {fable, "aaaa aaaaa aaaaaaa ababababa bababab", "",
                                        "ab", "abab cdcd efef"};
    for (size_t t = 0; t < COUNT(texts); t++) {
        zero_merge merges[400];
        int32_t n, i = 0;
        slow_text slow;
        const unsigned char *text = (const unsigned char *)texts[t];
        assert_ok(zero_bpe_train(text, strlen(texts[t]), 1, 400, merges, &n));
        cut(&slow, texts[t], strlen(texts[t]));
        for (zero_merge best = {0, 0}; best_pair(&slow, &best) >= 2; i++) {
            assert_true(i < n);
            assert_int_equal(merges[i].left, best.left);
            assert_int_equal(merges[i].right, best.right);
            join_pairs(&slow, best, ZERO_VOCAB_BYTES + i);
        }
        assert_int_equal(i, n);
    }
}

TEST(merges_alone_bring_a_tokenizer_back)
{
    int32_t a[sizeof fable], b[sizeof fable];
    zero_tokenizer back, tok = learn("bpe:290", fable, strlen(fable));
    assert_ok(zero_tokenizer_from_merges(&back, tok.merges, tok.vocab - 256));
    assert_string_equal(back.name, "bpe:290");
    int64_t n = encoded(&tok, (const unsigned char *)fable, strlen(fable), a);
    assert_int_equal(encoded(&back, (const unsigned char *)fable, strlen(fable), b), n);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    zero_tokenizer_destroy(&back);
    zero_tokenizer_destroy(&tok);
}

TEST(merges_from_outside_are_checked)
{
    const zero_merge later[] = {{97, 257}, {97, 98}}, twice[] = {{97, 98}, {97, 98}};
    const zero_merge negative[] = {{-1, 98}};
    zero_merge doubling[7]; /* 2, 4, ... 128 bytes */
    zero_tokenizer tok = {.vocab = 42};
    for (int32_t i = 0; i < 7; i++)
        doubling[i] = (zero_merge){i == 0 ? 97 : 255 + i, i == 0 ? 97 : 255 + i};
    assert_int_equal(zero_tokenizer_from_merges(&tok, later, 2), ZERO_ERR_FORMAT);
    assert_int_equal(zero_tokenizer_from_merges(&tok, twice, 2), ZERO_ERR_FORMAT);
    assert_int_equal(zero_tokenizer_from_merges(&tok, negative, 1), ZERO_ERR_FORMAT);
    assert_int_equal(zero_tokenizer_from_merges(&tok, doubling, 7), ZERO_ERR_FORMAT);
    assert_int_equal(zero_tokenizer_from_merges(&tok, NULL, -1), ZERO_ERR_FORMAT);
    assert_int_equal(tok.vocab, 42);
}

TEST(a_text_too_poor_names_what_it_can_give)
{
    zero_tokenizer tok;
    assert_fails(
        zero_tokenizer_init(1, &tok, "bpe:512", (const unsigned char *)"abcabc", 6),
        ZERO_ERR_INVALID, "only 2 merges");
    assert_told("bpe:258");
    assert_fails(zero_tokenizer_init(1, &tok, "bpe:512", NULL, 0), ZERO_ERR_INVALID,
                 "has no pair to merge");
    tok = learn("bpe:258", "abcabc", 6);
    zero_tokenizer_destroy(&tok);
}

TEST(unknown_tokenizers_are_refused)
{
    static const char *const specs[] = {
        "",        "bytes",  "bpe",       "bpe:",
        "bpe:256", "bpe:-5", "bpe:65537", "bpe:99999999999999",
        "bpe:512x"};
    int32_t vocab = 42;
    for (size_t i = 0; i < COUNT(specs); i++)
        assert_int_equal(zero_tokenizer_parse(specs[i], &vocab), ZERO_ERR_INVALID);
    assert_int_equal(vocab, 42);
    assert_ok(zero_tokenizer_parse("bpe:65536", &vocab));
    assert_int_equal(vocab, 65536);
}
