/* The digest against its definition: one state has one digest, whatever TP and ZeRO groups hold it,
 * in pieces of any length. */
#include "support/test_world.h"

#include <xxhash.h>

#include "base/fail.h"
#include "base/range.h"
#include "state/digest.h"
#include "support/cut_model.h"

#define B ((int64_t)ZERO_DIGEST_BLOCK)

enum { ARRAYS = 3, NO_PIECE = -1 };

/* The states of this rank's part of the model, whose partition's ranks are those of a ZeRO group. They
 * are read in pieces, each as long as the next length says. */
struct part {
    zero_model model; /* shared, if tp > 1 */
    zero_partition partitions[CUT_GROUPS];
    const zero_partition *listed[CUT_GROUPS];
    const int64_t *lengths; /* [n_lengths] used in turn */
    int n_lengths, fails_at, read;
    int64_t elements; /* read so far */
    uint32_t flipped; /* is added to one element's bits */
};

static const int64_t wholes[] = {INT64_C(1) << 40}, quarters[] = {B / 4},
                     odd[] = {4099, 1, 77777, 13, 200003}, nearly[] = {B - 1, B + 1};
static const struct {
    const int64_t *lengths;
    int n;
} ways[] = {{wholes, 1}, {quarters, 1}, {odd, 5}, {nearly, 2}};

/* The model in TP groups of tp, over n_ranks ranks of each ZeRO group. */
static struct part make(int tp, int slices, zero_partition_scheme scheme, int n_ranks,
                        size_t way)
{
    struct part p = {.lengths = ways[way].lengths, .fails_at = NO_PIECE};
    int64_t n_params[CUT_GROUPS];
    zero_model whole;
    p.n_lengths = ways[way].n;
    all_ok(cut_model_describe(&whole));
    all_ok(zero_model_share(&whole, (zero_share){tp, test_rank % tp, slices}, &p.model));
    zero_model_destroy(&whole);
    for (int g = 0; g < CUT_GROUPS; g++) n_params[g] = p.model.groups[g].n_params;
    all_ok(zero_partition_cut(scheme, n_ranks, 1, CUT_GROUPS, n_params, p.partitions));
    return p;
}

/* It depends on the tensor, and on the element of the whole tensor. */
static float value(int tensor, int array, int64_t whole)
{
    return (float)((whole * 2654435761 + tensor * 97 + array * 31) % 1000003) / 1024.0f;
}

/* ---- the definition ---- */

static void add_block(XXH3_state_t *list, int tensor, int array, int64_t begin, int64_t end)
{
    static float block[ZERO_DIGEST_BLOCK];
    XXH128_canonical_t canonical;
    for (int64_t i = begin; i < end; i++) block[i - begin] = value(tensor, array, i);
    XXH128_canonicalFromHash(&canonical,
                             XXH3_128bits(block, (size_t)(end - begin) * sizeof *block));
    XXH3_128bits_update(list, &canonical, sizeof canonical);
}

/* Tensors by their names. */
static void define(char hex[33])
{
    XXH3_state_t *list = XXH3_createState();
    XXH128_canonical_t digest;
    const char *last = "";
    XXH3_128bits_reset(list);
    for (int n = 0; n < CUT_TENSORS; n++) {
        int next = -1;
        for (int i = 0; i < CUT_TENSORS; i++)
            if (strcmp(cut_tensors[i].name, last) > 0 &&
                (next < 0 || strcmp(cut_tensors[i].name, cut_tensors[next].name) < 0))
                next = i;
        last = cut_tensors[next].name;
        const int64_t len = cut_tensors[next].rows * cut_tensors[next].cols;
        for (int a = 0; a < ARRAYS; a++)
            for (int64_t at = 0; at < len; at += B)
                add_block(list, next, a, at, zero_min(at + B, len));
    }
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(list));
    for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", digest.digest[i]);
    XXH3_freeState(list);
}

/* ---- reading ---- */

static void fill(const struct part *part, int group, zero_range range, int array,
                 float *out)
{
    const zero_group *g = &part->model.groups[group];
    for (int i = g->first_tensor; i < g->first_tensor + g->n_tensors; i++) {
        const zero_tensor *t = &part->model.tensors[i];
        zero_range here = zero_range_overlap(zero_range_of_tensor(t), range);
        for (int64_t at = here.begin; at < here.end; at++) {
            zero_stretch run = zero_share_run(t, at - t->offset, at - t->offset + 1);
            out[at - range.begin] = value(i, array, run.whole);
        }
    }
}

/* The arrays live for one call only. */
static zero_status read_piece(struct part *part, int group, zero_range range,
                              zero_state_visitor *visit, void *visit_arg)
{
    float *arrays[ARRAYS];
    if (part->read++ == part->fails_at)
        return zero_fail(ZERO_ERR_ENV, "piece %d cannot be read", part->fails_at);
    for (int a = 0; a < ARRAYS; a++) {
        arrays[a] = malloc((size_t)zero_range_len(range) * sizeof *arrays[a]);
        assert_non_null(arrays[a]);
        fill(part, group, range, a, arrays[a]);
    }
    uint32_t bits;
    memcpy(&bits, arrays[1], sizeof bits);
    bits += part->flipped;
    memcpy(arrays[1], &bits, sizeof bits);
    zero_status st =
        visit(visit_arg, &(zero_state_block){range, {{arrays[0], arrays[1], arrays[2]}}});
    for (int a = 0; a < ARRAYS; a++) free(arrays[a]);
    return st;
}

/* What this rank owns; replicated tensors are read on one rank of a TP group. */
static zero_range owned(const struct part *part, int group)
{
    const int rank = test_rank / part->model.share.ranks;
    if (rank >= part->partitions[group].n_ranks) return (zero_range){0, 0};
    return zero_partition_shard(&part->partitions[group], rank);
}

static int64_t read_of(const struct part *part, int group, zero_range range)
{
    int64_t n = 0;
    for (int i = 0; i < CUT_TENSORS; i++) {
        const zero_tensor *t = &part->model.tensors[i];
        if (t->group == group && (t->cut != ZERO_CUT_NONE || part->model.share.rank == 0))
            n += zero_max(
                zero_range_len(zero_range_overlap(zero_range_of_tensor(t), range)), 0);
    }
    return n;
}

static zero_status read_part(void *arg, int group, zero_range range,
                             zero_state_visitor *visit, void *visit_arg)
{
    struct part *part = arg;
    zero_range own = owned(part, group);
    assert_true(own.begin <= range.begin && range.end <= own.end);
    assert_int_equal(read_of(part, group, range), zero_range_len(range));
    part->elements += zero_range_len(range);
    for (int64_t at = range.begin, stop; at < range.end; at = stop) {
        stop = zero_min(at + part->lengths[part->read % part->n_lengths], range.end);
        ZERO_TRY(read_piece(part, group, (zero_range){at, stop}, visit, visit_arg));
    }
    return ZERO_OK;
}

static zero_status digest(struct part *part, char hex[33])
{
    zero_digest_work *work;
    for (int g = 0; g < CUT_GROUPS; g++) part->listed[g] = &part->partitions[g];
    ZERO_TRY(zero_digest_begin(&part->model, &world, part->listed,
                               &(zero_digest_source){.read = read_part, .arg = part},
                               &work));
    zero_digest_hash(work);
    return zero_digest_end(work, hex);
}

/* Each element is read once. */
static void check(struct part part)
{
    char want[33], got[33];
    int64_t elements = 0;
    define(want);
    all_ok(digest(&part, got));
    assert_all(strcmp(want, got) == 0);
    for (int g = 0; g < CUT_GROUPS; g++) elements += read_of(&part, g, owned(&part, g));
    assert_all(part.elements == elements);
    zero_model_destroy(&part.model);
}

/* ---- tests ---- */

TEST(one_state_has_one_digest_for_all_groups)
{
    for (int tp = 1; tp <= test_size; tp++)
        for (int slices = tp; slices <= 4 * tp && slices <= 8; slices *= 2)
            for (size_t way = 0; way < COUNT(ways) && test_size % tp == 0; way++)
                check(make(tp, slices,
                           (zero_partition_scheme)(way % ZERO_PARTITION_SCHEMES),
                           test_size / tp, way));
}

TEST(replicas_hash_nothing)
{
    for (int n = 1; n < test_size; n++) check(make(1, 1, ZERO_PARTITION_SLICE, n, 2));
}

/* A known number: definition and code cannot change together. */
TEST(the_digest_of_known_states_stays)
{
    char hex[33];
    define(hex);
    assert_string_equal(hex, "812fbf79c8891a57333f88f87fa14582");
}

/* Of which all ranks have an equal piece. */
static struct part share_all(void)
{
    return make(test_size, test_size, ZERO_PARTITION_SLICE, 1, 1);
}

/* For each element of the whole tensor 3 floats, in words of two, and hashes: two words for each block of
 * each array, and a flag. One verdict comes first. */
TEST(messages_are_as_long_as_the_tensors)
{
    struct part part = share_all();
    char hex[33];
    int64_t bytes = sizeof(int);
    for (int i = 0; i < CUT_TENSORS && test_size > 1; i++) {
        int64_t n = cut_tensors[i].rows * cut_tensors[i].cols;
        bytes += 3 * 4 * zero_round_up(n, 2) + 8 * (2 * 3 * zero_divide_up(n, B) + 1);
    }
    int64_t before = zero_traffic_total(&world.traffic[ZERO_CONTROL]).bytes_sent;
    all_ok(digest(&part, hex));
    int64_t sent = zero_traffic_total(&world.traffic[ZERO_CONTROL]).bytes_sent - before;
    assert_all(test_size == 1 || sent == bytes * (test_size - 1));
    zero_model_destroy(&part.model);
}

TEST(the_elements_of_each_rank_count)
{
    char want[33], got[33];
    define(want);
    for (int rank = 0; rank < test_size; rank++) {
        struct part part = share_all();
        part.flipped = rank == test_rank;
        all_ok(digest(&part, got));
        assert_all(strcmp(want, got) != 0);
        zero_model_destroy(&part.model);
    }
}

TEST(a_rank_that_cannot_read_its_part_ends_the_digest_on_all)
{
    for (int i = 0; i < 6; i++) {
        struct part part =
            i % 2 ? share_all() : make(1, 1, ZERO_PARTITION_SLICE, test_size, 1);
        char hex[33], text[64];
        const int piece = i / 2 * 2;
        if (test_rank == test_size - 1) part.fails_at = piece;
        assert_all(digest(&part, hex) == ZERO_ERR_ENV);
        snprintf(text, sizeof text, "piece %d cannot be read", piece);
        all_told(text);
        /* All ranks are where they would be without it. */
        all_ok(zero_agree(&world, ZERO_OK));
        zero_model_destroy(&part.model);
    }
}
