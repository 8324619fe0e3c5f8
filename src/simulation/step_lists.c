#include "simulation/step_lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"

void zero_step_lists_destroy(zero_step_lists *l)
{
    for (int64_t i = 0; i < l->n; i++) zero_packed_list_destroy(&l->lists[i]);
    for (int64_t i = 0; i < l->n_sets; i++) free(l->sets[i].list_of);
    free(l->lists);
    free(l->next);
    free(l->sets);
    zero_queues_destroy(&l->by_hash);
    *l = (zero_step_lists){0};
}

/* ---- equal lists ---- */

static uint64_t hash_of(const zero_packed_list *list)
{
    const char *at = (const char *)list->steps,
               *end = (const char *)(list->steps + list->n);
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint64_t word; at < end; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return hash;
}

static bool are_equal(const zero_packed_list *a, const zero_packed_list *b)
{
    return a->n == b->n && memcmp(a->steps, b->steps, (size_t)a->n * sizeof *a->steps) == 0;
}

static int32_t find_equal(const zero_step_lists *l, const zero_packed_list *list,
                          const zero_queue *same_hash)
{
    int32_t i = same_hash->n > 0 ? same_hash->first : -1;
    while (i >= 0 && !are_equal(&l->lists[i], list)) i = l->next[i];
    return i;
}

static bool grow(zero_step_lists *l)
{
    zero_packed_list *lists = zero_grow(l->lists, l->n, &l->capacity, sizeof *lists);
    if (lists) l->lists = lists;
    int32_t *next = zero_grow(l->next, l->n, &l->next_capacity, sizeof *next);
    if (next) l->next = next;
    return lists && next;
}

/* ---- what is known to be equal ---- */

/* Nodes of as many ranks, a power of two, are subtrees of equal shape in the tree of
 * sums. */
static bool nodes_are_alike(const zero_layout *layout)
{
    int n = layout->size / layout->n_nodes;
    if (!layout->in_blocks || layout->size != layout->n_nodes * n ||
        !zero_is_power_of_two(n))
        return false;
    for (int node = 0; node < layout->n_nodes; node++)
        if (layout->first[node] != node * n) return false;
    return true;
}

/* Members this far apart have equal lists, if there is no root or it is as far away. */
static int period(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (spec->algorithm != ZERO_ALGORITHM_HIER || layout->n_nodes == 1) return 1;
    return nodes_are_alike(layout) ? layout->size / layout->n_nodes : layout->size;
}

int zero_step_lists_distinct(const zero_collective_spec *spec, const zero_layout *layout)
{
    return zero_collective_has_root(spec->kind) ? layout->size : period(spec, layout);
}

/* ---- sets ---- */

static int find_set(const zero_step_lists *l, const zero_collective_spec *spec,
                    const zero_layout *layout)
{
    for (int64_t i = l->n_sets - 1; i >= 0; i--)
        if (l->sets[i].peers.layout == layout &&
            memcmp(&l->sets[i].spec, spec, sizeof *spec) == 0)
            return (int)i;
    return -1;
}

static zero_status make_set(zero_step_lists *l, zero_list_set *set)
{
    zero_collective_spec first = set->spec;
    first.root %= period(&first, set->peers.layout);
    if (!zero_collective_has_root(first.kind) || first.root == set->spec.root) {
        const zero_layout *layout = set->peers.layout;
        int distinct = zero_step_lists_distinct(&set->spec, layout);
        set->list_of = calloc((size_t)layout->size, sizeof *set->list_of);
        if (!set->list_of)
            return zero_fail(ZERO_ERR_NOMEM, "no memory for the lists of %d ranks",
                             layout->size);
        for (int member = 0; member < layout->size; member++) {
            zero_packed_list list;
            set->list_of[member] = member < distinct ? -1 : set->list_of[member % distinct];
            if (member >= distinct) continue;
            ZERO_TRY(zero_pack(&list, &set->spec, &set->peers, member));
            /* The number of the list, which is kept or, if an equal one is there, freed. */
            int32_t *number = &set->list_of[member];
            zero_queue *same_hash =
                grow(l) ? zero_queues_add(&l->by_hash, hash_of(&list)) : NULL;
            if (!same_hash) {
                zero_packed_list_destroy(&list);
                return zero_fail(ZERO_ERR_NOMEM, "no memory for a list of steps");
            }
            *number = find_equal(l, &list, same_hash);
            if (*number >= 0) {
                zero_packed_list_destroy(&list);
                continue;
            }
            *number = (int32_t)l->n;
            l->next[l->n] = same_hash->first;
            l->lists[l->n++] = list;
            same_hash->first = *number;
            same_hash->n++;
        }
        return ZERO_OK;
    }
    return zero_step_lists_add(l, &first, set->peers.layout, &set->like);
}

zero_status zero_step_lists_add(zero_step_lists *l, const zero_collective_spec *spec,
                                const zero_layout *layout, int *number)
{
    zero_list_set set = {.spec = *spec, .peers = zero_peers_of(spec, layout), .like = -1};
    set.spec.unit = ZERO_NO_UNIT;
    *number = find_set(l, &set.spec, layout);
    if (*number >= 0) return ZERO_OK;
    zero_status st = make_set(l, &set);
    zero_list_set *sets =
        st == ZERO_OK ? zero_grow(l->sets, l->n_sets, &l->set_capacity, sizeof *sets)
                      : NULL;
    if (st == ZERO_OK && !sets)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for lists of steps");
    if (st != ZERO_OK) {
        free(set.list_of);
        return st;
    }
    l->sets = sets;
    *number = (int)l->n_sets;
    l->sets[l->n_sets++] = set;
    return ZERO_OK;
}

const zero_packed_list *zero_step_lists_get(const zero_step_lists *l, int number,
                                            int member)
{
    const zero_list_set *set = &l->sets[number];
    if (set->list_of) return &l->lists[set->list_of[member]];
    const zero_list_set *like = &l->sets[set->like];
    int size = set->peers.layout->size, away = set->spec.root - like->spec.root;
    return &l->lists[like->list_of[(member - away + size) % size]];
}
