/* One state has one digest, whatever TP and ZeRO groups hold it: the one of a model that is not
 * shared. */
#include "support/mpi_cmocka.h"

#include "base/fail.h"
#include "base/range.h"
#include "state/digest.h"
#include "support/cut_model.h"

enum { ARRAYS = 3, NO_PIECE = -1 };

/* The states of this rank's part of the model, whose partition's ranks are those of a ZeRO group. */
struct part {
    zero_model model; /* shared, if tp > 1 */
    zero_partition partitions[CUT_GROUPS];
    const zero_partition *listed[CUT_GROUPS];
    int64_t piece; /* elements that are read at once */
    int fails_at, read;
    uint32_t flipped; /* is added to one element's bits */
};

static void cut(struct part *part, zero_partition_scheme scheme, int n_ranks)
{
    int64_t n_params[CUT_GROUPS];
    for (int g = 0; g < CUT_GROUPS; g++) n_params[g] = part->model.groups[g].n_params;
    all_ok(zero_partition_cut(scheme, n_ranks, 1, CUT_GROUPS, n_params, part->partitions));
    for (int g = 0; g < CUT_GROUPS; g++) part->listed[g] = &part->partitions[g];
}

/* It depends on the tensor, and on the element of the whole tensor. */
static float value(int tensor, int array, int64_t whole)
{
    return (float)((whole * 2654435761 + tensor * 97 + array * 31) % 1000003) / 1024.0f;
}

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

/* Replicated tensors are read on one rank of a TP group. */
static void check_range(const struct part *part, int group, zero_range range)
{
    const zero_share *share = &part->model.share;
    zero_range own =
        zero_partition_shard(&part->partitions[group], test_rank / share->ranks);
    assert_true(own.begin <= range.begin && range.end <= own.end);
    for (int i = 0; i < CUT_TENSORS && share->rank > 0; i++) {
        const zero_tensor *t = &part->model.tensors[i];
        zero_range both = zero_range_overlap(zero_range_of_tensor(t), range);
        assert_true(t->group != group || t->cut != ZERO_CUT_NONE ||
                    zero_range_is_empty(both));
    }
}

static zero_status read_part(void *arg, int group, zero_range range,
                             zero_state_visitor *visit, void *visit_arg)
{
    struct part *part = arg;
    check_range(part, group, range);
    for (int64_t at = range.begin, stop; at < range.end; at = stop) {
        stop = zero_min(at + part->piece, range.end);
        ZERO_TRY(read_piece(part, group, (zero_range){at, stop}, visit, visit_arg));
    }
    return ZERO_OK;
}

static zero_status digest(struct part *part, zero_comm *world, char hex[33])
{
    zero_digest_work *work;
    ZERO_TRY(zero_digest_begin(&part->model, world, part->listed,
                               &(zero_digest_source){.read = read_part, .arg = part},
                               &work));
    zero_digest_hash(work);
    return zero_digest_end(work, hex);
}

/* The digest of the whole model, over all ranks. */
static void digest_whole(zero_comm *world, char hex[33])
{
    struct part part = {.piece = INT64_C(1) << 40, .fails_at = NO_PIECE};
    all_ok(cut_model_describe(&part.model));
    cut(&part, ZERO_PARTITION_SLICE, test_size);
    all_ok(digest(&part, world, hex));
    zero_model_destroy(&part.model);
}

TEST(one_state_has_one_digest_for_all_groups)
{
    const int64_t pieces[] = {INT64_C(1) << 40, 65536, 7919};
    zero_comm world;
    zero_model whole;
    char want[33], got[33];
    all_ok(zero_comm_world(&world));
    all_ok(cut_model_describe(&whole));
    digest_whole(&world, want);
    for (int tp = 1; tp <= test_size; tp++)
        for (int slices = tp; slices <= 4 * tp && slices <= 8; slices *= 2)
            for (int way = 0; way < 3 && test_size % tp == 0; way++) {
                struct part part = {.piece = pieces[way], .fails_at = NO_PIECE};
                zero_share share = {tp, test_rank % tp, slices};
                all_ok(zero_model_share(&whole, share, &part.model));
                cut(&part, (zero_partition_scheme)(way % ZERO_PARTITION_SCHEMES),
                    test_size / tp);
                all_ok(digest(&part, &world, got));
                assert_all(strcmp(want, got) == 0);
                zero_model_destroy(&part.model);
            }
    zero_model_destroy(&whole);
    zero_comm_destroy(&world);
}

/* Prepares a part of which all ranks have an equal piece. */
static void share_all(struct part *part, const zero_model *whole)
{
    *part = (struct part){.piece = 65536, .fails_at = NO_PIECE};
    all_ok(zero_model_share(whole, (zero_share){test_size, test_rank, test_size},
                            &part->model));
    cut(part, ZERO_PARTITION_SLICE, 1);
}

/* For each element of the whole tensor 3 floats, in words of two, and hashes: two words for each block of
 * each array, and a flag. One verdict comes first. */
TEST(messages_are_as_long_as_the_tensors)
{
    zero_comm world;
    zero_model whole;
    struct part part;
    char hex[33];
    int64_t bytes = sizeof(int);
    all_ok(zero_comm_world(&world));
    all_ok(cut_model_describe(&whole));
    share_all(&part, &whole);
    for (int i = 0; i < CUT_TENSORS && test_size > 1; i++) {
        int64_t n = whole.tensors[i].rows * whole.tensors[i].cols;
        int64_t blocks = zero_divide_up(n, ZERO_DIGEST_BLOCK);
        bytes += 3 * 4 * zero_round_up(n, 2) + 8 * (2 * 3 * blocks + 1);
    }
    int64_t before = zero_traffic_total(&world.traffic[ZERO_CONTROL]).bytes_sent;
    all_ok(digest(&part, &world, hex));
    int64_t sent = zero_traffic_total(&world.traffic[ZERO_CONTROL]).bytes_sent - before;
    assert_all(test_size == 1 || sent == bytes * (test_size - 1));
    zero_model_destroy(&part.model);
    zero_model_destroy(&whole);
    zero_comm_destroy(&world);
}

TEST(the_elements_of_each_rank_count)
{
    zero_comm world;
    zero_model whole;
    struct part part;
    char want[33], got[33];
    all_ok(zero_comm_world(&world));
    all_ok(cut_model_describe(&whole));
    digest_whole(&world, want);
    for (int rank = 0; rank < test_size; rank++) {
        share_all(&part, &whole);
        part.flipped = rank == test_rank;
        all_ok(digest(&part, &world, got));
        assert_all(strcmp(want, got) != 0);
        zero_model_destroy(&part.model);
    }
    zero_model_destroy(&whole);
    zero_comm_destroy(&world);
}

TEST(a_rank_that_cannot_read_its_part_ends_the_digest_on_all)
{
    zero_comm world;
    zero_model whole;
    char hex[33];
    all_ok(zero_comm_world(&world));
    all_ok(cut_model_describe(&whole));
    for (int piece = 0; piece < 5; piece += 2) {
        struct part part;
        char text[64];
        share_all(&part, &whole);
        if (test_rank == test_size - 1) part.fails_at = piece;
        assert_all(digest(&part, &world, hex) == ZERO_ERR_ENV);
        snprintf(text, sizeof text, "piece %d cannot be read", piece);
        all_told(text);
        /* All ranks are where they would be without it. */
        all_ok(zero_agree(&world, ZERO_OK));
        zero_model_destroy(&part.model);
    }
    zero_model_destroy(&whole);
    zero_comm_destroy(&world);
}
