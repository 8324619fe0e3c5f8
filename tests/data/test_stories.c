#include <ctype.h>

#include "support/test.h"

#include "data/stories.h"
#include "io/checksum.h"
#include "support/encode_test.h"
#include "support/within.h"

static zero_stories stories_of(uint64_t seed)
{
    zero_stories stories;
    assert_ok(zero_stories_init(&stories, seed));
    return stories;
}

static zero_bytes told(uint64_t seed, size_t bytes, int64_t *n, double *cost)
{
    zero_bytes text = {0};
    zero_stories stories = stories_of(seed);
    assert_ok(zero_stories_fill(&stories, bytes, &text, n, cost));
    zero_stories_destroy(&stories);
    return text;
}

/* ---- memory ---- */

TEST(the_last_story_needs_no_room_beyond_its_own)
{
    for (size_t bytes = 1; bytes < 40000; bytes += 997) {
        int64_t n;
        double cost;
        zero_bytes text = told(7, bytes, &n, &cost);
        assert_true(text.len >= bytes && text.room <= bytes + ZERO_STORY_MAX);
        zero_bytes_destroy(&text);
    }
}

/* ---- determinism ---- */

TEST(the_same_seed_tells_the_same_stories)
{
    int64_t n, m;
    double cost, other_cost;
    zero_bytes a = told(7, 50000, &n, &cost), b = told(7, 50000, &m, &other_cost);
    assert_true(a.len == b.len && n == m && cost == other_cost);
    assert_memory_equal(a.bytes, b.bytes, a.len);
    zero_bytes_destroy(&b);
    b = told(8, 50000, &m, &other_cost);
    assert_memory_not_equal(a.bytes, b.bytes, 1000);
    zero_bytes_destroy(&b);
    zero_bytes_destroy(&a);
}

/* Digests of runs rest on these bytes: another word, weight or order is another text. */
TEST(the_text_of_a_seed_is_a_promise)
{
    int64_t n;
    double cost;
    char sum[ZERO_CHECKSUM];
    zero_bytes text = told(1337, 50000, &n, &cost);
    zero_checksum(text.bytes, text.len, sum);
    assert_string_equal(sum, "f00bf6c2eb7397e725dcb7b0c018b8e4");
    zero_bytes_destroy(&text);
}

TEST(a_larger_text_begins_with_the_smaller_one)
{
    int64_t n, m;
    double cost;
    zero_bytes small = told(7, 1000, &n, &cost), large = told(7, 30000, &m, &cost);
    assert_true(small.len >= 1000 && small.len < large.len && n < m);
    assert_memory_equal(small.bytes, large.bytes, small.len);
    zero_bytes_destroy(&large);
    zero_bytes_destroy(&small);
}

TEST(no_story_is_told_twice)
{
    enum { STORIES = 100 };
    static char texts[STORIES][ZERO_STORY_MAX];
    int len[STORIES];
    double cost;
    zero_stories stories = stories_of(7);
    for (int k = 0; k < STORIES; k++) {
        len[k] = zero_stories_tell(&stories, k, texts[k], &cost);
        for (int i = 0; i < k; i++)
            assert_false(len[i] == len[k] &&
                         memcmp(texts[i], texts[k], (size_t)len[k]) == 0);
    }
    zero_stories_destroy(&stories);
}

TEST(stories_are_paragraphs_between_empty_lines)
{
    int64_t n, found = 0;
    double cost;
    zero_bytes text = told(3, 100000, &n, &cost);
    assert_int_equal(text.bytes[text.len - 1], '\n');
    for (size_t i = 0; i < text.len; i++) {
        if (text.bytes[i] != '\n') continue;
        assert_int_equal(text.bytes[++i], '\n');
        assert_true(i + 1 == text.len || isupper(text.bytes[i + 1]) ||
                    text.bytes[i + 1] == '"');
        found++;
    }
    assert_int_equal(found, n);
    zero_bytes_destroy(&text);
}

/* ---- language ---- */

/* Sets `word` to the next run of letters in lower case; returns its end, or NULL. */
static const unsigned char *next_word(const unsigned char *at, const unsigned char *end,
                                      char word[32])
{
    int n = 0;
    while (at < end && !isalpha(*at)) at++;
    if (at == end) return NULL;
    for (; at < end && isalpha(*at); at++) {
        assert_true(n < 31);
        word[n++] = (char)tolower(*at);
    }
    word[n] = '\0';
    return at;
}

TEST(there_are_400_to_600_words)
{
    static char words[1000][32];
    char word[32];
    int64_t n;
    int n_words = 0;
    double cost;
    zero_bytes text = told(1, 2000000, &n, &cost);
    const unsigned char *at = text.bytes, *end = text.bytes + text.len;
    while ((at = next_word(at, end, word))) {
        int i = 0;
        while (i < n_words && strcmp(words[i], word) != 0) i++;
        if (i < n_words) continue;
        assert_true(n_words < 1000);
        strcpy(words[n_words++], word);
    }
    print_message("%d words, %.0f bytes per story\n", n_words,
                  (double)text.len / (double)n);
    assert_within(n_words, 400, 600);
    zero_bytes_destroy(&text);
}

TEST(articles_fit_their_words)
{
    /* Words whose sound and first letter disagree: the engine looks at the letter only. */
    static const char *const traps[] = {"hon", "hour", "heir", "uni",
                                        "use", "eu",   "one",  "once"};
    char before[32] = "", word[32];
    int64_t n;
    double cost;
    zero_bytes text = told(2, 1000000, &n, &cost);
    const unsigned char *at = text.bytes, *end = text.bytes + text.len;
    for (; (at = next_word(at, end, word)); strcpy(before, word)) {
        if (strcmp(before, "a") != 0 && strcmp(before, "an") != 0) continue;
        assert_int_equal(strchr("aeiou", word[0]) != NULL, before[1] == 'n');
        for (size_t i = 0; i < COUNT(traps); i++)
            assert_true(strncmp(word, traps[i], strlen(traps[i])) != 0);
    }
    zero_bytes_destroy(&text);
}

TEST(punctuation_and_capitals_are_in_order)
{
    int64_t n;
    double cost;
    int quotes = 0;
    zero_bytes text = told(4, 1000000, &n, &cost);
    for (size_t i = 2; i + 2 < text.len; i++) {
        const unsigned char *c = text.bytes + i;
        assert_true(*c == '\n' || (*c >= ' ' && *c < 127));
        assert_null(memchr("{}|*>", *c, 5));
        assert_false(*c == ' ' && strchr(" ,.!?:\n", c[1]));
        if (*c == '"') quotes++;
        if (*c == '\n') assert_int_equal(quotes % 2, 0);
        bool ends = strchr(".!?", *c) && c[1] == ' ';
        if (ends) assert_true(isupper(c[2]) || c[2] == '"');
    }
    zero_bytes_destroy(&text);
}

/* ---- the derivation can be read back ---- */

/* A template as a sequence of parts, each of which is one of several texts. Parts are taken as
 * independent and conditions are ignored, so this language contains the true one. */
enum { PARTS = 40, CHOICES = ZERO_STORY_OPTIONS, PART_TEXT = 64 };

typedef struct {
    int n_texts;
    char texts[CHOICES][PART_TEXT];
} part;

typedef struct {
    int n;
    part parts[PARTS];
} pattern;

static void add_text(part *p, const char *text, int len)
{
    assert_true(len > 0 && len < PART_TEXT);
    for (int i = 0; i < p->n_texts; i++)
        if ((int)strlen(p->texts[i]) == len && memcmp(p->texts[i], text, (size_t)len) == 0)
            return;
    memcpy(p->texts[p->n_texts], text, (size_t)len);
    p->texts[p->n_texts++][len] = '\0';
}

static void read_pattern(const zero_grammar *g, zero_story_text text, pattern *p)
{
    *p = (pattern){0};
    for (const char *at = text.at, *end = text.at + text.len; at < end;) {
        assert_true(p->n < PARTS);
        part *next = &p->parts[p->n++];
        const char *stop = memchr(at, '{', (size_t)(end - at));
        if (!stop) stop = end;
        if (*at == '{') {
            zero_slot slot;
            int options[ZERO_STORY_VARIABLES] = {0};
            char word[PART_TEXT];
            stop = zero_grammar_slot(g, at, &slot);
            zero_story_text here = {at, (int)(stop - at)};
            int *option = &options[slot.variable];
            for (; *option < g->nodes[slot.variable].n_options; ++*option)
                add_text(next, word,
                         zero_grammar_expand(g, here, options, word, PART_TEXT, NULL));
        } else {
            add_text(next, at, (int)(stop - at));
        }
        at = stop;
    }
}

/* True if a text of a's parts from i on begins or equals `rest` plus a text of b's parts from k
 * on, or the other way round. `rest` is the part of b's text beyond a's. */
static bool can_meet(const pattern *a, int i, const char *rest, const pattern *b, int k)
{
    if (i == a->n) return true; /* a's text is over and b's begins with it */
    for (int t = 0; t < a->parts[i].n_texts; t++) {
        const char *text = a->parts[i].texts[t];
        size_t len = strlen(text), ahead = strlen(rest);
        if (memcmp(text, rest, len < ahead ? len : ahead) != 0) continue;
        if (len <= ahead ? can_meet(a, i + 1, rest + len, b, k)
                         : can_meet(b, k, text + ahead, a, i + 1))
            return true;
    }
    return false;
}

/* True if two texts of one template meet that are equal up to a part and differ there. */
static bool meets_itself(const pattern *p)
{
    for (int i = 0; i < p->n; i++)
        for (int s = 0; s < p->parts[i].n_texts; s++)
            for (int t = 0; t < p->parts[i].n_texts; t++) {
                const char *shorter = p->parts[i].texts[s], *longer = p->parts[i].texts[t];
                size_t len = strlen(shorter);
                if (s != t && strncmp(shorter, longer, len) == 0 &&
                    can_meet(p, i + 1, longer + len, p, i + 1))
                    return true;
            }
    return false;
}

TEST(each_line_can_be_told_from_all_others)
{
    pattern *a = malloc(sizeof *a), *b = malloc(sizeof *b);
    zero_stories stories = stories_of(0);
    const zero_grammar *g = stories.grammar;
    assert_true(a && b);
    for (int v = g->n_cast; v < g->n; v++)
        for (int i = 0; i < g->nodes[v].n_options; i++) {
            read_pattern(g, g->nodes[v].options[i].forms[0], a);
            assert_false(meets_itself(a));
            for (int k = 0; k < g->nodes[v].n_options; k++) {
                read_pattern(g, g->nodes[v].options[k].forms[0], b);
                if (i != k) assert_false(can_meet(a, 0, "", b, 0));
            }
        }
    zero_stories_destroy(&stories);
    free(b);
    free(a);
}

/* True if every template of this line names the variable by its first form. */
static bool always_names(const zero_grammar *g, int line, int variable)
{
    for (int i = 0; i < g->nodes[line].n_options; i++) {
        zero_story_text text = g->nodes[line].options[i].forms[0];
        bool named = false;
        for (const char *at = text.at, *end = at + text.len; at < end;) {
            zero_slot slot;
            if (*at != '{') {
                at++;
                continue;
            }
            at = zero_grammar_slot(g, at, &slot);
            named = named || (slot.variable == variable && slot.form == 0);
        }
        if (!named) return false;
    }
    return true;
}

static bool same_name(const zero_story_option *a, const zero_story_option *b)
{
    return a->forms[0].len == b->forms[0].len &&
           (a->when < 0 || b->when < 0 || a->when == b->when) &&
           memcmp(a->forms[0].at, b->forms[0].at, (size_t)a->forms[0].len) == 0;
}

TEST(every_choice_is_written_somewhere)
{
    zero_stories stories = stories_of(0);
    const zero_grammar *g = stories.grammar;
    for (int v = 0; v < g->n_cast; v++) {
        bool named = false;
        for (int line = g->n_cast; line < g->n; line++) named |= always_names(g, line, v);
        if (!named)
            fail_msg("%.*s is not named in every story", g->nodes[v].name.len,
                     g->nodes[v].name.at);
        for (int i = 0; i < g->nodes[v].n_options; i++)
            for (int k = 0; k < i; k++)
                assert_false(same_name(&g->nodes[v].options[i], &g->nodes[v].options[k]));
    }
    zero_stories_destroy(&stories);
}

/* ---- numbers ---- */

TEST(probabilities_add_up_to_one)
{
    zero_stories stories = stories_of(0);
    const zero_grammar *g = stories.grammar;
    for (int v = 0; v < g->n; v++) {
        int parent = g->nodes[v].parent;
        int n_parents = parent < 0 ? 1 : g->nodes[parent].n_options;
        for (int value = 0; value < n_parents; value++) {
            double sum = 0.0;
            for (int i = 0; i < g->nodes[v].n_options; i++)
                sum += zero_grammar_probability(g, v, i, parent < 0 ? -1 : value);
            assert_true(fabs(sum - 1.0) < 1e-12);
        }
    }
    zero_stories_destroy(&stories);
}

typedef struct {
    double sum, squares;
    int n;
} sample;

static void add(sample *s, double x)
{
    s->sum += x;
    s->squares += x * x;
    s->n++;
}

static void assert_mean_is(const sample *s, double expected, const char *what)
{
    double mean = s->sum / s->n;
    double error = sqrt((s->squares / s->n - mean * mean) / (s->n - 1));
    print_message("%s: exact %.4f, mean of %d %.4f +- %.4f\n", what, expected, s->n, mean,
                  error);
    assert_true(error > 0.0 && fabs(mean - expected) < 4.0 * error);
}

TEST(entropy_and_tokens_are_the_means_of_a_long_sample)
{
    static const char *const specs[] = {"bpe:512", "byte", "bpe:700"};
    int64_t n;
    double cost;
    zero_bytes text = told(1, 1000000, &n, &cost);
    zero_stories stories = stories_of(2);
    for (int t = 0; t < 3; t++) {
        zero_tokenizer tok;
        sample costs = {0}, tokens = {0};
        assert_ok(zero_tokenizer_init(1, &tok, specs[t], text.bytes, text.len));
        zero_stories_entropy exact = zero_stories_measure(&stories, &tok);
        for (int64_t k = 0; k < 20000; k++) {
            char story[ZERO_STORY_MAX];
            int32_t ids[ZERO_STORY_MAX];
            int len = zero_stories_tell(&stories, k, story, &cost);
            add(&costs, cost);
            add(&tokens,
                (double)encoded(&tok, (const unsigned char *)story, (size_t)len, ids));
        }
        print_message("%s: %.4f nats per token\n", specs[t], exact.nats_per_token);
        assert_mean_is(&costs, exact.nats_per_story, "nats per story");
        assert_mean_is(&tokens, exact.tokens_per_story, "tokens per story");
        assert_true(exact.nats_per_token == exact.nats_per_story / exact.tokens_per_story);
        if (t == 0) assert_true(exact.nats_per_token > 0.45 && exact.nats_per_token < 0.65);
        zero_tokenizer_destroy(&tok);
    }
    zero_stories_destroy(&stories);
    zero_bytes_destroy(&text);
}
