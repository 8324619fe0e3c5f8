/* Ranks that read a model from copies of its file read the same, or one of them is named. */
#include "support/mpi_cmocka.h"

#include <fcntl.h>

#include "support/hugging_face_test.h"
#include "support/test_world.h"

#include "checkpoint/hugging_face_copies.h"

/* The embedding has two blocks and a part of one. */
static const zero_shape large = {
    .layers = 1, .hidden = 64, .heads = 2, .seq = 16, .vocab = 8500};

enum { BLOCK = 16 * ZERO_HUGGING_FACE_PIECE };

static char folder[] = "/tmp/zero-copies-XXXXXX";

/* A copy of the model in each rank's own file; no two ranks have the same inode. */
static void write_copies(zero_model *model)
{
    char own[32];
    if (test_rank == 0) assert_non_null(mkdtemp(folder));
    MPI_Bcast(folder, (int)sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    assert_int_equal(chdir(folder), 0);
    check_ok(zero_model_build(&large, model));
    snprintf(own, sizeof own, "copy-%d", test_rank);
    check_ok(write_to(own, model, &values, NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void remove_copies(zero_model *model)
{
    char own[32];
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(own, sizeof own, "copy-%d", test_rank);
    remove_dir(own);
    zero_model_destroy(model);
    MPI_Barrier(MPI_COMM_WORLD);
    assert_int_equal(chdir("/"), 0);
    if (test_rank == 0) assert_int_equal(rmdir(folder), 0);
    snprintf(folder, sizeof folder, "/tmp/zero-copies-XXXXXX");
}

/* Opens copy `which`, and reads this rank's share of each tensor, as stages 1 to 3 do; or all of it. */
static void open_and_read(const zero_model *model, int which, bool all,
                          zero_hugging_face *f)
{
    char path[32];
    snprintf(path, sizeof path, "copy-%d", which);
    check_ok(zero_hugging_face_open(path, model, f));
    zero_weights weights = zero_hugging_face_weights(f);
    for (int t = 0; t < model->n_tensors; t++) {
        int64_t n = size_of(&model->tensors[t]);
        int64_t begin = all ? 0 : n * test_rank / test_size;
        int64_t end = all ? n : n * (test_rank + 1) / test_size;
        float *out = malloc((size_t)n * sizeof *out);
        assert_non_null(out);
        check_ok(weights.fill(weights.arg, t, begin, end, out));
        free(out);
    }
}

/* Pieces that count as read, of all blocks. */
static int64_t pieces_of(const zero_hugging_face *f)
{
    int64_t n = 0;
    for (int b = 0; b < f->n_blocks; b++) n += f->blocks[b].n;
    return n;
}

static int64_t pieces_in_all(const zero_model *model)
{
    int64_t n = 0;
    for (int t = 0; t < model->n_tensors; t++)
        n += (size_of(&model->tensors[t]) + ZERO_HUGGING_FACE_PIECE - 1) /
             ZERO_HUGGING_FACE_PIECE;
    return n;
}

/* Elements i to i + n - 1 of a copy's tensor become `value`. */
static void damage(const zero_model *model, int which, int tensor, int64_t i, int64_t n,
                   float value)
{
    char path[64];
    float *values_there = malloc((size_t)n * sizeof value);
    assert_non_null(values_there);
    for (int64_t k = 0; k < n; k++) values_there[k] = value;
    zero_hugging_face f;
    snprintf(path, sizeof path, "copy-%d", which);
    check_ok(zero_hugging_face_open(path, model, &f));
    uint64_t at = f.places[tensor].at + (uint64_t)i * sizeof value;
    zero_hugging_face_close(&f);
    snprintf(path, sizeof path, "copy-%d/model.safetensors", which);
    int fd = open(path, O_WRONLY);
    ssize_t bytes = (ssize_t)((size_t)n * sizeof value);
    assert_true(pwrite(fd, values_there, (size_t)bytes, (off_t)at) == bytes);
    assert_int_equal(close(fd), 0);
    free(values_there);
}

/* readers[n_blocks]: the ranks that have read something of each block. */
static void count_readers(const zero_hugging_face *f, int *readers)
{
    for (int b = 0; b < f->n_blocks; b++) readers[b] = f->blocks[b].is_read;
    MPI_Allreduce(MPI_IN_PLACE, readers, f->n_blocks, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* Each block that one rank needs gets a second reader; the others have enough. */
TEST(equal_copies_are_equal_in_every_layout)
{
    zero_model model;
    zero_hugging_face f;
    int before[64], after[64];
    write_copies(&model);
    for (int all = 0; all < 2; all++) {
        open_and_read(&model, test_rank, all == 1, &f);
        assert_in_range(f.n_blocks, model.n_tensors + 2, 64);
        count_readers(&f, before);
        all_ok(zero_hugging_face_compare_copies(&f, &world));
        count_readers(&f, after);
        for (int b = 0; b < f.n_blocks; b++) {
            int least = test_size > 1 ? 2 : 1;
            assert_all(after[b] == (before[b] > least ? before[b] : least));
        }
        assert_all(all == 0 || pieces_of(&f) == pieces_in_all(&model));
        zero_hugging_face_close(&f);
    }
    remove_copies(&model);
}

TEST(one_copy_is_read_once)
{
    zero_model model;
    zero_hugging_face f;
    write_copies(&model);
    open_and_read(&model, 0, false, &f);
    int64_t before = pieces_of(&f);
    all_ok(zero_hugging_face_compare_copies(&f, &world));
    assert_all(pieces_of(&f) == before);
    zero_hugging_face_close(&f);
    remove_copies(&model);
}

/* One rank's copy is damaged somewhere. What becomes part of the model from it must be found. */
static void refuses_damage(bool all, int odd, int tensor, int64_t at)
{
    zero_model model;
    zero_hugging_face f;
    char text[100];
    write_copies(&model);
    if (test_rank == odd) damage(&model, odd, tensor, at, 1, 0.125f + value_of(tensor, at));
    MPI_Barrier(MPI_COMM_WORLD);
    open_and_read(&model, test_rank, all, &f);
    assert_all(zero_hugging_face_compare_copies(&f, &world) == ZERO_ERR_FORMAT);
    /* Two cannot tell whose is wrong. */
    int named = test_size == 2 ? 1 : odd;
    int64_t begin = at / BLOCK * BLOCK;
    snprintf(text, sizeof text, "rank %d: copy-%d/model.safetensors differs from rank %d's",
             named, named, named == 0 ? 1 : 0);
    bool names_rank = strstr(zero_last_error(), text) != NULL;
    snprintf(text, sizeof text, "in %s, elements %d to ", model.tensors[tensor].name,
             (int)begin);
    bool names_place = strstr(zero_last_error(), text) != NULL;
    if (!names_rank || !names_place) print_error("%s\n", zero_last_error());
    assert_all(names_rank && names_place);
    zero_hugging_face_close(&f);
    remove_copies(&model);
}

TEST(a_copy_that_differs_is_named)
{
    int64_t n = large.vocab * large.hidden;
    if (test_size == 1) return;
    for (int odd = 0; odd < test_size; odd++) {
        /* the first and last element of this rank's third of the embedding, and one within */
        int64_t begin = n * odd / test_size, end = n * (odd + 1) / test_size;
        refuses_damage(false, odd, ZERO_WTE, begin);
        refuses_damage(false, odd, ZERO_WTE, (begin + end) / 2);
        refuses_damage(false, odd, ZERO_WTE, end - 1);
        refuses_damage(true, odd, ZERO_WTE, n / 2);
        /* a bias: less than a piece */
        refuses_damage(false, odd, 3, 64 * odd / test_size);
    }
}

TEST(a_file_of_zeros_is_told_of)
{
    zero_model model;
    zero_hugging_face f;
    char text[ZERO_HUGGING_FACE_TEXT];
    const int64_t n = large.vocab * large.hidden, from = n / 2;
    write_copies(&model);
    open_and_read(&model, 0, false, &f);
    all_ok(zero_hugging_face_tell_zeros(&f, &world, text));
    assert_all(text[0] == '\0');
    zero_hugging_face_close(&f);
    /* From there to the end of the embedding, and all of the positions. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0) damage(&model, 0, ZERO_WTE, from, n - from, 0.0f);
    if (test_rank == 0) damage(&model, 0, ZERO_WTE + 1, 0, large.seq * large.hidden, 0.0f);
    MPI_Barrier(MPI_COMM_WORLD);
    open_and_read(&model, 0, false, &f);
    all_ok(zero_hugging_face_tell_zeros(&f, &world, text));
    char expected[100];
    snprintf(expected, sizeof expected, "wte.weight has zeros from element %d to %d of %d",
             (int)from, (int)n - 1, (int)n);
    if (!strstr(text, expected)) print_error("'%s' lacks '%s'\n", text, expected);
    assert_all(strstr(text, expected) != NULL);
    zero_hugging_face_close(&f);
    remove_copies(&model);
}
