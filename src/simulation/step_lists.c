#include "simulation/step_lists.h"

#include "base/fail.h"
#include "base/grow.h"

void zero_step_lists_destroy(zero_step_lists *l)
{
    for (int64_t i = 0; i < l->by_hash.capacity; i++)
        for (zero_queue *q = &l->by_hash.table[i]; q->first;) {
            zero_packed_list *list = (zero_packed_list *)q->first;
            q->first = list->queued.next;
            zero_packed_list_destroy(list);
            free(list);
        }
    for (int64_t i = 0; i < l->n_sets; i++) {
        free(l->sets[i]->list_of);
        free(l->sets[i]);
    }
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

/* The list of a member: one that is there already, or a new one. */
static zero_status find_list(zero_step_lists *l, const zero_list_set *set, int member,
                             const zero_packed_list **found)
{
    zero_packed_list *list;
    ZERO_TRY(zero_new(&list, 1, "a list of steps"));
    zero_status st = zero_pack(list, &set->spec, &set->peers, member);
    uint64_t hash = st == ZERO_OK ? hash_of(list) : 0;
    const zero_queue *alike = zero_queues_find(&l->by_hash, hash);
    const zero_packed_list *other = alike ? (zero_packed_list *)alike->first : NULL;
    while (other && (other->n != list->n || memcmp(other->steps, list->steps,
                                                   (size_t)list->n * sizeof *list->steps)))
        other = (const zero_packed_list *)other->queued.next;
    *found = other ? other : list;
    if (st == ZERO_OK && !other && zero_queues_append(&l->by_hash, hash, &list->queued))
        return ZERO_OK;
    zero_packed_list_destroy(list);
    free(list);
    if (st != ZERO_OK || other) return st;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for a list of steps");
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

static zero_status make_set(zero_step_lists *l, zero_list_set *set)
{
    const zero_layout *layout = set->peers.layout;
    zero_collective_spec first = set->spec;
    int like;
    first.root %= period(&first, layout);
    if (zero_collective_has_root(first.kind) && first.root != set->spec.root) {
        const int away = set->spec.root - first.root, n = layout->size;
        if (first.only > 0) first.only = (first.only - 1 + n - away) % n + 1;
        ZERO_TRY(zero_step_lists_add(l, &first, layout, &like));
        set->like = l->sets[like];
        return ZERO_OK;
    }
    int distinct = zero_step_lists_distinct(&set->spec, layout);
    ZERO_TRY(zero_new(&set->list_of, layout->size, "lists of ranks"));
    for (int member = 0; member < layout->size; member++) {
        if (member < distinct)
            ZERO_TRY(find_list(l, set, member, &set->list_of[member]));
        else
            set->list_of[member] = set->list_of[member % distinct];
    }
    return ZERO_OK;
}

zero_status zero_step_lists_add(zero_step_lists *l, const zero_collective_spec *spec,
                                const zero_layout *layout, int *number)
{
    zero_collective_spec same = *spec;
    zero_list_set *set;
    same.unit = ZERO_NO_UNIT;
    for (int64_t i = l->n_sets - 1; i >= 0; i--)
        if (l->sets[i]->peers.layout == layout &&
            memcmp(&l->sets[i]->spec, &same, sizeof same) == 0) {
            *number = (int)i;
            return ZERO_OK;
        }
    ZERO_TRY(zero_new(&set, 1, "lists of steps"));
    *set = (zero_list_set){.spec = same, .peers = zero_peers_of(spec, layout)};
    zero_status st = make_set(l, set);
    if (st == ZERO_OK && !zero_grow(l->sets, l->n_sets, &l->set_capacity))
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for lists of steps");
    if (st != ZERO_OK) {
        free(set->list_of);
        free(set);
        return st;
    }
    *number = (int)l->n_sets;
    l->sets[l->n_sets++] = set;
    return ZERO_OK;
}

const zero_packed_list *zero_step_lists_get(const zero_list_set *set, int member)
{
    const zero_list_set *like = set->like;
    if (!like) return set->list_of[member];
    int size = set->peers.layout->size, away = set->spec.root - like->spec.root;
    return like->list_of[(member - away + size) % size];
}
