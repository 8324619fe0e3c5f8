#include "data/bpe.h"

#include "base/hash.h"

#include "data/cuts.h"
#include "data/heap.h"
#include "data/piece.h"

/* One of the distinct pieces of the text; its tokens are joined in place. */
typedef struct {
    const unsigned char *at;
    int32_t len;   /* bytes */
    int32_t n;     /* tokens left */
    int32_t *ids;  /* [len] in trainer.ids */
    int64_t count; /* occurrences in the text */
} word;

/* A pair of neighbours, and the list of words that have it or once had it. */
typedef struct {
    zero_merge ids;
    int64_t count;
    int64_t list; /* into nodes; -1 ends */
} pair;

typedef struct {
    int64_t word, next;
} list_node;

typedef struct {
    word *words;
    int64_t n_words, words_capacity;
    int64_t *word_table; /* index + 1, 0: empty */
    int64_t word_slots;
    int32_t *ids;
    pair *pairs;
    int64_t n_pairs, pairs_capacity;
    int64_t *pair_table;
    int64_t pair_slots;
    list_node *nodes;
    int64_t n_nodes, nodes_capacity;
    zero_heap heap; /* keys of pairs when they were pushed; counts only fall after it */
} trainer;

static void destroy(trainer *t)
{
    zero_free(t->heap.keys, t->nodes, t->pair_table, t->pairs, t->ids, t->word_table,
              t->words);
}

static zero_status no_memory(int64_t n, const char *what)
{
    return zero_fail(ZERO_ERR_NOMEM,
                     "no memory for %" PRId64 " %s of a tokenizer in training", n, what);
}

/* ---- distinct pieces ---- */

static int64_t *word_slot(const trainer *t, const unsigned char *at, int32_t len)
{
    uint64_t mask = (uint64_t)t->word_slots - 1;
    for (uint64_t i = XXH3_64bits(at, (size_t)len);; i++) {
        int64_t *slot = &t->word_table[i & mask];
        if (*slot == 0) return slot;
        const word *w = &t->words[*slot - 1];
        if (w->len == len && memcmp(w->at, at, (size_t)len) == 0) return slot;
    }
}

static zero_status grow_word_table(trainer *t)
{
    free(t->word_table);
    t->word_slots = t->word_slots * 2 + 2048 - t->word_slots % 2048;
    ZERO_TRY(zero_new(&t->word_table, t->word_slots, "places for pieces of text"));
    for (int64_t i = 0; i < t->n_words; i++)
        *word_slot(t, t->words[i].at, t->words[i].len) = i + 1;
    return ZERO_OK;
}

static zero_status count_piece(trainer *t, const unsigned char *at, int32_t len,
                               int64_t count)
{
    int64_t *slot = word_slot(t, at, len);
    if (*slot > 0) {
        t->words[*slot - 1].count += count;
        return ZERO_OK;
    }
    if (!zero_grow(t->words, t->n_words, &t->words_capacity))
        return no_memory(t->n_words, "pieces");
    t->words[t->n_words++] = (word){.at = at, .len = len, .n = len, .count = count};
    *slot = t->n_words;
    return 2 * t->n_words > t->word_slots ? grow_word_table(t) : ZERO_OK;
}

static zero_status count_pieces(trainer *t, const unsigned char *text, size_t len)
{
    ZERO_TRY(grow_word_table(t));
    for (size_t at = 0, end; at < len; at = end) {
        end = zero_piece_end(text, len, at);
        ZERO_TRY(count_piece(t, text + at, (int32_t)(end - at), 1));
    }
    return ZERO_OK;
}

/* Counts of a part, by a thread. */
typedef struct {
    trainer counts;
    zero_failure failure;
} part;

static void count_part(void *arg, int64_t i, const unsigned char *text, size_t len)
{
    part *p = (part *)arg + i;
    p->failure = zero_failure_keep(count_pieces(&p->counts, text, len));
}

/* In the order of the text, so words have the order of one thread. */
static zero_status add_counts(trainer *t, const part *p)
{
    ZERO_TRY(zero_failure_restore(&p->failure));
    for (int64_t i = 0; i < p->counts.n_words; i++) {
        const word *w = &p->counts.words[i];
        ZERO_TRY(count_piece(t, w->at, w->len, w->count));
    }
    return ZERO_OK;
}

static zero_status count_by_threads(trainer *t, const unsigned char *text, size_t len,
                                    int64_t n, int threads)
{
    part *parts;
    ZERO_TRY(zero_new(&parts, n, "parts of a text"));
    zero_status st = zero_cut_run(text, len, n, threads, count_part, parts);
    if (st == ZERO_OK) st = grow_word_table(t);
    for (int64_t i = 0; i < n; i++) {
        if (st == ZERO_OK) st = add_counts(t, &parts[i]);
        destroy(&parts[i].counts);
    }
    free(parts);
    return st;
}

static zero_status list_words(trainer *t, const unsigned char *text, size_t len,
                              int threads)
{
    int64_t n_ids = 0, used = 0;
    const int64_t n = zero_cut_parts(len, threads);
    ZERO_TRY(n > 1 ? count_by_threads(t, text, len, n, threads)
                   : count_pieces(t, text, len));
    for (int64_t i = 0; i < t->n_words; i++) n_ids += t->words[i].len;
    ZERO_TRY(zero_new(&t->ids, n_ids, "tokens of a text"));
    for (int64_t i = 0; i < t->n_words; i++) {
        t->words[i].ids = t->ids + used;
        for (int32_t k = 0; k < t->words[i].len; k++) t->ids[used++] = t->words[i].at[k];
    }
    return ZERO_OK;
}

/* ---- pairs of neighbours ---- */

static int64_t *pair_slot(const trainer *t, zero_merge ids)
{
    uint64_t mask = (uint64_t)t->pair_slots - 1;
    uint64_t key = (uint64_t)(uint32_t)ids.left << 32 | (uint32_t)ids.right;
    for (uint64_t i = key * UINT64_C(0x9E3779B97F4A7C15) >> 20;; i++) {
        int64_t *slot = &t->pair_table[i & mask];
        if (*slot == 0) return slot;
        const pair *p = &t->pairs[*slot - 1];
        if (p->ids.left == ids.left && p->ids.right == ids.right) return slot;
    }
}

static zero_status grow_pair_table(trainer *t)
{
    free(t->pair_table);
    t->pair_slots = t->pair_slots > 0 ? 2 * t->pair_slots : 4096;
    ZERO_TRY(zero_new(&t->pair_table, t->pair_slots, "places for pairs"));
    for (int64_t i = 0; i < t->n_pairs; i++) *pair_slot(t, t->pairs[i].ids) = i + 1;
    return ZERO_OK;
}

static zero_status find_pair(trainer *t, zero_merge ids, int64_t *index)
{
    int64_t *slot = pair_slot(t, ids);
    if (*slot == 0) {
        if (!zero_grow(t->pairs, t->n_pairs, &t->pairs_capacity))
            return no_memory(t->n_pairs, "pairs");
        t->pairs[t->n_pairs++] = (pair){.ids = ids, .list = -1};
        *slot = t->n_pairs;
        *index = t->n_pairs - 1;
        return 2 * t->n_pairs > t->pair_slots ? grow_pair_table(t) : ZERO_OK;
    }
    *index = *slot - 1;
    return ZERO_OK;
}

/* Counts the pairs of a word. Pairs before `first_new` are older than this merge and have
 * the word in their lists. */
static zero_status add_pairs(trainer *t, int64_t w, int64_t first_new)
{
    for (int32_t i = 0; i + 1 < t->words[w].n; i++) {
        int64_t p = 0;
        const int32_t *ids = t->words[w].ids + i;
        ZERO_TRY(find_pair(t, (zero_merge){ids[0], ids[1]}, &p));
        t->pairs[p].count += t->words[w].count;
        int64_t head = t->pairs[p].list;
        if (p < first_new || (head >= 0 && t->nodes[head].word == w)) continue;
        if (!zero_grow(t->nodes, t->n_nodes, &t->nodes_capacity))
            return no_memory(t->n_nodes, "list entries");
        t->nodes[t->n_nodes] = (list_node){.word = w, .next = head};
        t->pairs[p].list = t->n_nodes++;
    }
    return ZERO_OK;
}

static void remove_pairs(trainer *t, const word *w)
{
    for (int32_t i = 0; i + 1 < w->n; i++) {
        int64_t p = *pair_slot(t, (zero_merge){w->ids[i], w->ids[i + 1]}) - 1;
        t->pairs[p].count -= w->count;
    }
}

/* ---- the most frequent pair ---- */

/* The highest count comes first, then the smaller left token, then the smaller right
 * one. */
static zero_heap_key key_of(const pair *p)
{
    return (zero_heap_key)(uint64_t)~p->count << 64 |
           (uint64_t)(uint32_t)p->ids.left << 32 | (uint32_t)p->ids.right;
}

/* Pushes the pairs from `first` on. */
static zero_status push(trainer *t, int64_t first)
{
    for (int64_t p = first; p < t->n_pairs; p++)
        if (!zero_heap_push(&t->heap, key_of(&t->pairs[p])))
            return no_memory(t->heap.n, "candidates");
    return ZERO_OK;
}

/* Returns the pair with the highest count, or NULL if none occurs twice. */
static const pair *pop(trainer *t)
{
    while (t->heap.n > 0) {
        const zero_heap_key top = zero_heap_pop(&t->heap);
        const zero_merge ids = {(int32_t)(uint32_t)(top >> 32), (int32_t)(uint32_t)top};
        const pair *p = &t->pairs[*pair_slot(t, ids) - 1];
        if (p->count < 2) continue;
        if (key_of(p) == top) return p;
        zero_heap_push(&t->heap, key_of(p));
    }
    return NULL;
}

/* ---- learning ---- */

static void join_pairs(word *w, zero_merge ids, int32_t token)
{
    int32_t n = 0;
    for (int32_t i = 0; i < w->n; i++) {
        bool here = i + 1 < w->n && w->ids[i] == ids.left && w->ids[i + 1] == ids.right;
        w->ids[n++] = here ? token : w->ids[i];
        if (here) i++;
    }
    w->n = n;
}

zero_status zero_bpe_train(const unsigned char *text, size_t len, int threads,
                           int32_t n_wanted, zero_merge *merges, int32_t *n_found)
{
    ZERO_AT_END(destroy) trainer t = {0};
    ZERO_TRY(list_words(&t, text, len, threads));
    ZERO_TRY(grow_pair_table(&t));
    for (int64_t w = 0; w < t.n_words; w++) ZERO_TRY(add_pairs(&t, w, 0));
    ZERO_TRY(push(&t, 0));
    int32_t n = 0;
    for (const pair *p; n < n_wanted && (p = pop(&t)); n++) {
        const int64_t first_new = t.n_pairs;
        merges[n] = p->ids;
        for (int64_t node = p->list; node >= 0; node = t.nodes[node].next) {
            int64_t w = t.nodes[node].word;
            remove_pairs(&t, &t.words[w]);
            join_pairs(&t.words[w], merges[n], ZERO_VOCAB_BYTES + n);
            ZERO_TRY(add_pairs(&t, w, first_new));
        }
        ZERO_TRY(push(&t, first_new));
    }
    *n_found = n;
    return ZERO_OK;
}
