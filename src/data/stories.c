#include "data/stories.h"

#include "base/rng.h"

zero_status zero_stories_init(zero_stories *stories, uint64_t seed)
{
    zero_grammar *grammar;
    ZERO_TRY(zero_grammar_create(&grammar));
    *stories = (zero_stories){.seed = seed, .grammar = grammar};
    return ZERO_OK;
}

void zero_stories_destroy(zero_stories *stories)
{
    free(stories->grammar);
    *stories = (zero_stories){0};
}

int zero_stories_tell(const zero_stories *stories, int64_t k, char text[ZERO_STORY_MAX],
                      double *cost)
{
    const zero_grammar *g = stories->grammar;
    zero_rng rng = {
        .seed = stories->seed, .purpose = ZERO_RNG_STORIES, .sample = (uint64_t)k};
    int options[ZERO_STORY_VARIABLES], used = 0;
    *cost = 0.0;
    for (int v = 0; v < g->n; v++) {
        int parent = g->nodes[v].parent < 0 ? -1 : options[g->nodes[v].parent];
        /* The option at which the running sum of probabilities passes u. */
        double u = zero_rng_uniform(&rng, (uint64_t)v);
        double p = 0.0, sum = 0.0;
        int last = 0; /* by rounding the sum may stay below 1, and u may be above it */
        for (int i = 0; i < g->nodes[v].n_options && sum <= u; i++) {
            double share = zero_grammar_probability(g, v, i, parent);
            if (share == 0.0) continue;
            p = share;
            sum += share;
            last = i;
        }
        *cost -= log(p);
        options[v] = last;
    }
    for (int v = g->n_cast; v < g->n; v++) {
        zero_story_text line = g->nodes[v].options[options[v]].forms[0];
        used += zero_grammar_expand(g, line, options, text + used,
                                    ZERO_STORY_MAX - 2 - used, NULL);
        text[used++] = v + 1 < g->n ? ' ' : '\n';
    }
    text[used++] = '\n';
    return used;
}

zero_status zero_stories_fill(const zero_stories *stories, size_t bytes, zero_bytes *text,
                              int64_t *n_stories, double *cost)
{
    char story[ZERO_STORY_MAX];
    int64_t n = 0;
    double sum = 0.0, one;
    /* Enough for the last story, too: growing the text once more would copy it. */
    ZERO_TRY(zero_bytes_reserve(text, bytes + ZERO_STORY_MAX));
    for (size_t end = text->len + bytes; text->len < end; n++) {
        int len = zero_stories_tell(stories, n, story, &one);
        ZERO_TRY(zero_bytes_append(text, story, (size_t)len));
        sum += one;
    }
    *n_stories = n;
    *cost = sum;
    return ZERO_OK;
}
