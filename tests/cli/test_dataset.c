/* The corpus of a run is opened once per node, and is everywhere the same as one opened alone. */
#define TEST_HAS_MAIN
#include "support/mpi_cmocka.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/dataset.h"
#include "data/corpus_share.h"
#include "data/tokenizer_file.h"
#include "zero/status.h"

#define TOKENS (INT64_C(12) << 20) /* of 2 bytes: 24 MiB */

/* Not the same file for tests that run at once. */
static char path_bin[64];

static void write_tokens(void)
{
    int pid = (int)getpid();
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path_bin, sizeof path_bin, "/tmp/zero_test_dataset_%d.bin", pid);
    if (test_rank == 0) {
        FILE *file = fopen(path_bin, "wb");
        uint16_t some[4096];
        assert_non_null(file);
        for (int64_t at = 0; at < TOKENS; at += 4096) {
            for (int i = 0; i < 4096; i++) some[i] = (uint16_t)((at + i) * 7919 % 50257);
            assert_int_equal(fwrite(some, sizeof some, 1, file), 1);
        }
        assert_int_equal(fclose(file), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static zero_comm world_of(int nodes)
{
    zero_comm world;
    assert_all(zero_comm_world(&world) == ZERO_OK);
    assert_all(zero_comm_pretend_blocks(&world, nodes) == ZERO_OK);
    return world;
}

/* ---- equal ---- */

static bool same_tokenizer(const zero_tokenizer *a, const zero_tokenizer *b)
{
    zero_bytes text[2] = {{0}, {0}};
    if (!a || !b) return a == b;
    bool same = zero_tokenizer_write(a, &text[0]) == ZERO_OK &&
                zero_tokenizer_write(b, &text[1]) == ZERO_OK &&
                text[0].len == text[1].len &&
                memcmp(text[0].bytes, text[1].bytes, text[0].len) == 0 &&
                strcmp(a->name, b->name) == 0 && a->end_of_text == b->end_of_text;
    zero_bytes_destroy(&text[0]);
    zero_bytes_destroy(&text[1]);
    return same;
}

static bool same_corpus(const zero_corpus *a, const zero_corpus *b)
{
    return a->width == b->width && a->n_tokens == b->n_tokens && a->n_train == b->n_train &&
           a->vocab == b->vocab && a->has_entropy == b->has_entropy &&
           a->has_validation == b->has_validation &&
           strcmp(a->description, b->description) == 0 &&
           strcmp(a->validation, b->validation) == 0 &&
           memcmp(&a->entropy, &b->entropy, sizeof a->entropy) == 0 &&
           memcmp(a->tokens, b->tokens, zero_corpus_token_bytes(a)) == 0 &&
           same_tokenizer(a->tokenizer, b->tokenizer);
}

/* Only the first rank of a node can open the data at all. */
static void check(zero_corpus_source from, int nodes)
{
    zero_comm world = world_of(nodes);
    zero_dataset d;
    zero_corpus alone;
    assert_all(zero_corpus_open(&from, &alone) == ZERO_OK);
    bool reads = world.layout.local_of[world.rank] == 0;
    if (!reads) from.data = "/missing";
    assert_all(zero_dataset_open(&d, &world, &from, test_size) == ZERO_OK);
    assert_all(same_corpus(&d.corpus, &alone));
    assert_all(d.why_own[0] == '\0');
    assert_all(d.corpus.borrows_tokens == (nodes < test_size));
    zero_dataset_close(&d);
    zero_corpus_close(&alone);
    zero_comm_destroy(&world);
}

/* ---- once ---- */

static double pss(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kib = -1.0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %lf", &kib) == 1) break;
    if (file) fclose(file);
    return 1024.0 * kib;
}

/* Freed memory stays with the address sanitizer. */
#ifdef __SANITIZE_ADDRESS__
#define FREES_MEMORY false
#else
#define FREES_MEMORY true
#endif

/* First: memory that other tests have used would count. */
TEST(tokens_are_resident_once_per_node)
{
    zero_comm world = world_of(1);
    zero_dataset d;
    zero_corpus_source from = {.data = path_bin, .vocab = 50257};
    double before = pss(), bytes = (double)TOKENS * 2.0, sum = 0.0;
    assert_all(zero_dataset_open(&d, &world, &from, test_size) == ZERO_OK);
    assert_all(zero_corpus_fingerprint(&d.corpus) != 0); /* reads them all */
    MPI_Barrier(MPI_COMM_WORLD);
    double more = pss() - before;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&more, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    bool is_known = before > 0.0 && FREES_MEMORY;
    assert_all(!is_known || sum < 1.05 * bytes + 0x1p20 * test_size);
    zero_dataset_close(&d);
    zero_comm_destroy(&world);
}

TEST(every_rank_has_the_corpus_of_its_node_s_first)
{
    const zero_corpus_source sources[] = {
        {.data = TEST_SOURCE_DIR "/CHANGELOG.md", .tokenizer = "byte"},
        {.data = TEST_SOURCE_DIR "/CHANGELOG.md", .tokenizer = "char"},
        {.data = TEST_SOURCE_DIR "/CHANGELOG.md",
         .validation = TEST_SOURCE_DIR "/README.md",
         .tokenizer = "bpe:300"},
        {.data = TEST_SOURCE_DIR "/CHANGELOG.md",
         .tokenizer = TEST_SOURCE_DIR "/tests/golden/tokenizers/gpt2.json"},
        {.data = TEST_SOURCE_DIR "/CHANGELOG.md",
         .tokenizer = TEST_SOURCE_DIR "/tests/golden/tokenizers/vocab.json"},
        {.data = "stories:64KiB", .seed = 3},
        {.data = path_bin, .vocab = 50257},
    };
    for (size_t i = 0; i < COUNT(sources); i++)
        for (int nodes = 1; nodes <= test_size; nodes++) check(sources[i], nodes);
}

/* ---- failures ---- */

TEST(a_mistake_has_one_message_without_a_rank)
{
    zero_comm world = world_of(1);
    zero_dataset d;
    zero_corpus_source from = {.data = path_bin, .vocab = 50000};
    all_fail(zero_dataset_open(&d, &world, &from, test_size), ZERO_ERR_FORMAT,
             "the vocabulary has only 50000");
    assert_all(!strstr(zero_last_error(), "rank"));
    zero_dataset_close(&d);
    zero_comm_destroy(&world);
}

/* A node that cannot share memory: no file may be as long as the tokens. */
TEST(ranks_that_cannot_share_open_their_own)
{
    zero_comm world = world_of(1);
    zero_dataset d;
    zero_corpus alone;
    zero_corpus_source from = {.data = path_bin, .vocab = 50257};
    struct rlimit old, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 1 << 20, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    zero_status st = zero_dataset_open(&d, &world, &from, test_size);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_all(st == ZERO_OK);
    assert_all(!d.corpus.borrows_tokens);
    assert_all(test_size == 1 || strstr(d.why_own, "/dev/shm"));
    assert_all(zero_corpus_open(&from, &alone) == ZERO_OK);
    assert_all(same_corpus(&d.corpus, &alone));
    zero_corpus_close(&alone);
    zero_dataset_close(&d);
    zero_comm_destroy(&world);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    write_tokens();
    int failed = run_here(NULL, NULL);
    if (test_rank == 0) unlink(path_bin);
    return test_end(failed);
}
