#include "data/stories.h"

/* An expectation over a set of variables and their ancestors; all others are skipped. */
typedef struct walk walk;
struct walk {
    const zero_grammar *g;
    uint64_t set;
    int fixed, fixed_option; /* this variable takes only this value; -1: none is fixed */
    int options[ZERO_STORY_VARIABLES];
    double (*value)(const walk *w);
    /* for value() */
    const zero_tokenizer *tok;
    zero_story_text chunk;
    int variable;
    bool first; /* the chunk begins the story */
};

/* Parents come before children, so one pass from the back finds all ancestors. */
static uint64_t with_ancestors(const zero_grammar *g, uint64_t set)
{
    for (int v = g->n - 1; v >= 0; v--)
        if (set >> v & 1 && g->nodes[v].parent >= 0)
            set |= UINT64_C(1) << g->nodes[v].parent;
    return set;
}

static double share(const walk *w, int v, int option)
{
    int parent = w->g->nodes[v].parent;
    return zero_grammar_probability(w->g, v, option, parent < 0 ? -1 : w->options[parent]);
}

/* E[value], where the variables before v are bound, with probability p. */
static double expect(walk *w, int v, double p)
{
    while (v < w->g->n && !(w->set >> v & 1)) v++;
    if (v == w->g->n) return p * w->value(w);
    double sum = 0.0;
    for (int i = 0; i < w->g->nodes[v].n_options; i++) {
        double here = v == w->fixed && i != w->fixed_option ? 0.0 : share(w, v, i);
        if (here == 0.0) continue;
        w->options[v] = i;
        sum += expect(w, v + 1, p * here);
    }
    return sum;
}

static double surprise(const walk *w)
{
    return -log(share(w, w->variable, w->options[w->variable]));
}

/* Our own tokenizers need no memory for chunks and have no patterns: they cannot fail. */
static double length_of(const zero_tokenizer *tok, const char *text, int len)
{
    int32_t tokens[ZERO_STORY_MAX];
    int64_t n = 0;
    zero_status st =
        zero_tokenizer_encode(tok, (const unsigned char *)text, (size_t)len, tokens, &n);
    assert(st == ZERO_OK);
    (void)st;
    return (double)n;
}

static double count_tokens(const walk *w)
{
    char text[ZERO_STORY_MAX];
    int used = 0;
    if (!w->first) text[used++] = ' ';
    used += zero_grammar_expand(w->g, w->chunk, w->options, text + used,
                                ZERO_STORY_MAX - used, NULL);
    return length_of(w->tok, text, used);
}

/* The end of the chunk at `at`: the next blank outside of a slot. */
static const char *chunk_end(const char *at, const char *end)
{
    for (bool slot = false; at < end && (slot || *at != ' '); at++)
        slot = *at == '{' || (slot && *at != '}');
    return at;
}

/* Expected tokens that one template of one line adds to a story. */
static double template_tokens(const zero_grammar *g, const zero_tokenizer *tok, int line,
                              int option)
{
    double sum = 0.0;
    zero_story_text text = g->nodes[line].options[option].forms[0];
    const char *end = text.at + text.len;
    for (const char *at = text.at; at < end; at++) {
        const char *stop = chunk_end(at, end);
        walk w = {.g = g, .fixed = line, .fixed_option = option, .value = count_tokens};
        w.tok = tok;
        w.chunk = (zero_story_text){at, (int)(stop - at)};
        w.first = line == g->n_cast && at == text.at;
        w.set = UINT64_C(1) << line;
        zero_grammar_expand(g, w.chunk, NULL, NULL, 0, &w.set);
        w.set = with_ancestors(g, w.set);
        sum += expect(&w, 0, 1.0);
        at = stop;
    }
    return sum;
}

zero_stories_entropy zero_stories_measure(const zero_stories *stories,
                                          const zero_tokenizer *tok)
{
    const zero_grammar *g = stories->grammar;
    double n = length_of(tok, "\n\n", 2);
    for (int v = g->n_cast; v < g->n; v++)
        for (int i = 0; i < g->nodes[v].n_options; i++) n += template_tokens(g, tok, v, i);
    double h = 0.0;
    for (int v = 0; v < g->n; v++) {
        walk w = {.g = g, .fixed = -1, .value = surprise, .variable = v};
        w.set = with_ancestors(g, UINT64_C(1) << v);
        h += expect(&w, 0, 1.0);
    }
    return (zero_stories_entropy){h, n, h / n};
}
