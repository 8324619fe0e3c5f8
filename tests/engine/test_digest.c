/* The digest against its definition: tensors around the lengths of digest blocks and of ranks'
 * pieces, read in pieces of any length. */
#include "support/mpi_cmocka.h"

#include <xxhash.h>

#include "base/fail.h"
#include "base/range.h"
#include "state/digest.h"

#define B ((int64_t)ZERO_DIGEST_BLOCK)

enum { ARRAYS = 3, TENSORS = 13, GROUPS = 5 };

/* Names are not in the order of memory. */
static const struct {
    const char *name;
    int group;
    int64_t len;
} tensors[TENSORS] = {{"m", 0, 1},         {"c", 0, B - 1},     {"a", 0, B},
                      {"z", 0, B + 1},     {"k", 1, 3 * B},     {"b", 1, 63},
                      {"j", 2, 65},        {"y", 2, 2 * B - 7}, {"d", 2, 5 * B + 64},
                      {"e", 3, 4 * B - 3}, {"f", 4, 100},       {"g", 4, B / 2},
                      {"h", 4, 64}};

struct made {
    zero_tensor tensors[TENSORS];
    zero_group groups[GROUPS];
    zero_model model;
    zero_partition partitions[GROUPS];
    const zero_partition *listed[GROUPS];
};

static void make(struct made *m, zero_partition_scheme scheme, int n_ranks)
{
    int64_t n_params[GROUPS] = {0};
    memset(m, 0, sizeof *m);
    for (int i = 0; i < TENSORS; i++) {
        zero_tensor *t = &m->tensors[i];
        int g = tensors[i].group;
        snprintf(t->name, sizeof t->name, "%s", tensors[i].name);
        t->rows = 1;
        t->cols = tensors[i].len;
        t->group = g;
        t->offset = n_params[g];
        n_params[g] += t->cols;
    }
    for (int g = 0; g < GROUPS; g++) m->groups[g].n_params = n_params[g];
    m->model = (zero_model){.n_tensors = TENSORS,
                            .tensors = m->tensors,
                            .n_groups = GROUPS,
                            .groups = m->groups};
    all_ok(zero_partition_cut(scheme, n_ranks, 1, GROUPS, n_params, m->partitions));
    for (int g = 0; g < GROUPS; g++) m->listed[g] = &m->partitions[g];
}

static float value(int group, int array, int64_t i)
{
    return (float)((i * 2654435761 + group * 97 + array * 31) % 1000003) / 1024.0f;
}

/* ---- the definition ---- */

static int by_name(const void *a, const void *b)
{
    const zero_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void add_block(XXH3_state_t *list, const zero_tensor *t, int array, int64_t begin,
                      int64_t end)
{
    static float block[ZERO_DIGEST_BLOCK];
    XXH128_canonical_t canonical;
    for (int64_t i = begin; i < end; i++)
        block[i - begin] = value(t->group, array, t->offset + i);
    XXH128_canonicalFromHash(&canonical,
                             XXH3_128bits(block, (size_t)(end - begin) * sizeof *block));
    XXH3_128bits_update(list, &canonical, sizeof canonical);
}

static void define(const zero_model *model, char hex[33])
{
    const zero_tensor *sorted[TENSORS];
    XXH3_state_t *list = XXH3_createState();
    XXH128_canonical_t digest;
    XXH3_128bits_reset(list);
    for (int i = 0; i < TENSORS; i++) sorted[i] = &model->tensors[i];
    qsort(sorted, TENSORS, sizeof sorted[0], by_name);
    for (int i = 0; i < TENSORS; i++)
        for (int a = 0; a < ARRAYS; a++)
            for (int64_t at = 0; at < sorted[i]->cols; at += B)
                add_block(list, sorted[i], a, at, zero_min(at + B, sorted[i]->cols));
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(list));
    for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", digest.digest[i]);
    XXH3_freeState(list);
}

/* ---- reading ---- */

/* States that are read in pieces: each is as long as the next length says. */
struct source {
    const struct made *m;
    const int64_t *lengths; /* [n] used in turn */
    int n, next;
    int fails_at;     /* the number of a piece; -1: none fails */
    int read;         /* pieces so far */
    int64_t elements; /* asked for so far */
};

/* The digest asks for what this rank owns, and for each element once. */
static void check_range(const struct source *s, int group, zero_range range)
{
    zero_range own = zero_partition_shard(&s->m->partitions[group], test_rank);
    assert_true(own.begin <= range.begin && range.end <= own.end);
}

/* The arrays live for one call only. */
static zero_status visit_piece(int group, zero_range range, zero_state_visitor *visit,
                               void *visit_arg)
{
    size_t n = (size_t)zero_range_len(range);
    float *arrays[ARRAYS];
    for (int a = 0; a < ARRAYS; a++) {
        arrays[a] = malloc(n * sizeof *arrays[a]);
        assert_non_null(arrays[a]);
        for (size_t i = 0; i < n; i++)
            arrays[a][i] = value(group, a, range.begin + (int64_t)i);
    }
    zero_status st =
        visit(visit_arg, &(zero_state_block){range, {{arrays[0], arrays[1], arrays[2]}}});
    for (int a = 0; a < ARRAYS; a++) free(arrays[a]);
    return st;
}

static zero_status read_pieces(void *arg, int group, zero_range range,
                               zero_state_visitor *visit, void *visit_arg)
{
    struct source *s = arg;
    check_range(s, group, range);
    s->elements += zero_range_len(range);
    for (int64_t at = range.begin, stop; at < range.end; at = stop) {
        stop = zero_min(at + s->lengths[s->next++ % s->n], range.end);
        if (s->read++ == s->fails_at)
            return zero_fail(ZERO_ERR_ENV, "piece %d cannot be read", s->fails_at);
        ZERO_TRY(visit_piece(group, (zero_range){at, stop}, visit, visit_arg));
    }
    return ZERO_OK;
}

/* ---- tests ---- */

static const int64_t wholes[] = {INT64_C(1) << 40}, quarters[] = {B / 4},
                     blocks[] = {4 * B}, odd[] = {4099, 1, 77777, 13, 200003},
                     nearly[] = {B - 1, B + 1};
static const struct {
    const int64_t *lengths;
    int n;
} ways[] = {{wholes, 1}, {quarters, 1}, {blocks, 1}, {odd, 5}, {nearly, 2}};

static int64_t owned(const struct made *m)
{
    int64_t n = 0;
    bool is_replica = test_rank >= m->partitions[0].n_ranks;
    for (int g = 0; g < GROUPS && !is_replica; g++)
        n += zero_range_len(zero_partition_shard(&m->partitions[g], test_rank));
    return n;
}

static zero_status digest(zero_comm *world, struct source *s, char hex[33])
{
    zero_digest_work *work;
    ZERO_TRY(zero_digest_begin(&s->m->model, world, s->m->listed,
                               &(zero_digest_source){.read = read_pieces, .arg = s},
                               &work));
    zero_digest_hash(work);
    return zero_digest_end(work, hex);
}

/* The first n_ranks ranks have a piece each. */
static void check_cut(zero_comm *world, zero_partition_scheme scheme, int n_ranks,
                      const int64_t *lengths, int n)
{
    struct made m;
    char want[33], got[33];
    make(&m, scheme, n_ranks);
    struct source s = {.m = &m, .lengths = lengths, .n = n, .fails_at = -1};
    define(&m.model, want);
    all_ok(digest(world, &s, got));
    assert_all(strcmp(want, got) == 0);
    assert_all(s.elements == owned(&m));
}

TEST(the_digest_is_its_definition_however_states_are_cut_and_read)
{
    zero_comm world;
    all_ok(zero_comm_world(&world));
    for (zero_partition_scheme s = 0; s < ZERO_PARTITION_SCHEMES; s++)
        for (size_t w = 0; w < COUNT(ways); w++)
            check_cut(&world, s, test_size, ways[w].lengths, ways[w].n);
    zero_comm_destroy(&world);
}

TEST(replicas_hash_nothing)
{
    zero_comm world;
    all_ok(zero_comm_world(&world));
    for (int n = 1; n < test_size; n++)
        check_cut(&world, ZERO_PARTITION_SLICE, n, odd, sizeof odd / sizeof odd[0]);
    zero_comm_destroy(&world);
}

/* A known number: definition and code cannot change together. */
TEST(the_digest_of_known_states_stays)
{
    struct made m;
    char hex[33];
    make(&m, ZERO_PARTITION_SLICE, 1);
    define(&m.model, hex);
    assert_string_equal(hex, "a3511ff980f9d3809eb1233cf481611d");
}

TEST(a_rank_that_cannot_read_its_states_ends_the_digest_on_all)
{
    zero_comm world;
    struct made m;
    char hex[33], text[64];
    const int pieces[] = {0, 3, 9};
    all_ok(zero_comm_world(&world));
    make(&m, ZERO_PARTITION_SLICE, test_size);
    for (int i = 0; i < 3; i++) {
        struct source s = {.m = &m, .lengths = quarters, .n = 1, .fails_at = -1};
        if (test_rank == test_size - 1) s.fails_at = pieces[i];
        assert_all(digest(&world, &s, hex) == ZERO_ERR_ENV);
        snprintf(text, sizeof text, "piece %d cannot be read", pieces[i]);
        all_told(text);
        /* All ranks are where they would be without it. */
        all_ok(zero_agree(&world, ZERO_OK));
    }
    zero_comm_destroy(&world);
}
