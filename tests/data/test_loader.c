/* The loader, against its contract. */

#include "support/test.h"

#include "base/rng.h"
#include "data/loader.h"

enum { N = 1000, N_TRAIN = 900, N_VAL = 100 };

/* Token k is k, so a window shows where it begins. */
static zero_corpus counting_corpus(int64_t n)
{
    zero_corpus corpus = {.width = 4, .n_tokens = n, .n_train = n - n / 10, .vocab = n};
    corpus.tokens = calloc((size_t)n, 4);
    assert_non_null(corpus.tokens);
    for (int64_t i = 0; i < n; i++) ((uint32_t *)corpus.tokens)[i] = (uint32_t)i;
    return corpus;
}

static zero_loader loader_of(const zero_corpus *corpus, int64_t T, int64_t B, bool shuffle)
{
    zero_loader loader;
    assert_ok(zero_loader_init(&loader, corpus, T, B, 9, shuffle));
    return loader;
}

static void check_window(int64_t start, int64_t T, const int32_t *inputs,
                         const int32_t *targets)
{
    for (int64_t t = 0; t < T; t++) {
        assert_int_equal(inputs[t], start + t);
        assert_int_equal(targets[t], start + t + 1);
    }
}

TEST(windows_follow_the_contract)
{
    zero_corpus corpus = counting_corpus(N);
    for (int64_t T = 1; T < N_VAL; T += 7)
        for (int64_t B = 1; B <= 5; B += 2) {
            zero_loader loader = loader_of(&corpus, T, B, false);
            int32_t inputs[N_VAL], targets[N_VAL];
            for (int64_t s = 0; s < 3 * N_TRAIN / (B * T) + 3;
                 s++) /* past the end, three times */
                for (int64_t i = 0; i < B; i++) {
                    int64_t start = ((s * B + i) * T) % (N_TRAIN - T);
                    zero_loader_train_sample(&loader, s, i, 0, inputs, targets);
                    check_window(start, T, inputs, targets);
                    start = N_TRAIN + (i * T) % (N_VAL - T);
                    zero_loader_validation_sample(&loader, 0, i, 0, inputs, targets);
                    check_window(start, T, inputs, targets);
                }
        }
    zero_corpus_close(&corpus);
}

TEST(a_long_run_does_not_overflow)
{
    zero_corpus corpus = counting_corpus(N);
    zero_loader loader = loader_of(&corpus, 64, 2, false);
    /* j = 2^62 + 1: j mod m by halves, with m = 900 - 64. */
    int64_t m = N_TRAIN - 64, j = 1;
    for (int i = 0; i < 62; i++) j = j * 2 % m;
    assert_int_equal(zero_loader_train_start(&loader, INT64_C(1) << 61, 1),
                     (j + 1) * 64 % m);
    zero_corpus_close(&corpus);
}

TEST(samples_do_not_depend_on_how_a_batch_is_cut)
{
    zero_corpus corpus = counting_corpus(N);
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        zero_loader all = loader_of(&corpus, 16, 12, shuffle);
        zero_loader some = loader_of(&corpus, 16, 4, shuffle);
        for (int64_t j = 0; j < 500; j++)
            assert_int_equal(zero_loader_train_start(&all, j / 12, j % 12),
                             zero_loader_train_start(&some, j / 4, j % 4));
    }
    zero_corpus_close(&corpus);
}

/* P_e as loader.h defines it. */
static int64_t walk(uint64_t epoch, uint64_t W, uint64_t x)
{
    uint64_t h = 1;
    while (UINT64_C(1) << (2 * h) < W) h++;
    uint64_t side = UINT64_C(1) << h, L = x / side, R = x % side;
    for (uint64_t round = 0; round < 4; round++) {
        zero_rng rng = {
            .seed = 9, .purpose = ZERO_RNG_ORDER, .step = epoch, .tensor = round};
        uint64_t next = L ^ (zero_rng_bits(&rng, R) % side);
        L = R;
        R = next;
    }
    return L * side + R < W ? (int64_t)(L * side + R) : walk(epoch, W, L * side + R);
}

TEST(each_epoch_visits_each_window_once)
{
    zero_corpus corpus = counting_corpus(N);
    for (int64_t T = 1; T < N_VAL; T += 7) {
        zero_loader loader = loader_of(&corpus, T, 1, true);
        int64_t W = (N_TRAIN - 1) / T, moved = 0;
        for (int64_t e = 0; e < 3; e++) {
            unsigned char seen[N_TRAIN] = {0};
            for (int64_t k = 0; k < W; k++) {
                int64_t start = zero_loader_train_start(&loader, e * W + k, 0);
                assert_int_equal(start, walk((uint64_t)e, (uint64_t)W, (uint64_t)k) * T);
                assert_true(start % T == 0 && start / T < W);
                assert_int_equal(seen[start / T]++, 0);
                moved += start != zero_loader_train_start(&loader, k, 0);
            }
        }
        assert_true(moved > 0);
    }
    zero_corpus_close(&corpus);
}

/* The numbers of src/data/README.md, which a program in another language computes. */
TEST(the_shuffled_order_is_the_documented_one)
{
    static const int64_t first[] = {7, 2, 6, 5, 4, 11, 12, 10, 0, 8, 9, 3, 1};
    static const int64_t third[] = {20253, 28378, 95630, 11869};
    zero_corpus corpus = {.n_train = 14};
    zero_loader loader = {.corpus = &corpus, .T = 1, .B = 1, .seed = 1337, .shuffle = true};
    for (int i = 0; i < 13; i++)
        assert_int_equal(zero_loader_train_start(&loader, i, 0), first[i]);
    corpus.n_train = 100001;
    for (int i = 0; i < 4; i++)
        assert_int_equal(zero_loader_train_start(&loader, 2 * 100000 + i, 0), third[i]);
}

/* Also the numbers of src/data/README.md. */
TEST(random_evaluation_windows_are_the_documented_ones)
{
    static const int64_t first[] = {70412, 10495, 51680, 55583};
    zero_corpus corpus = {.n_tokens = 100900, .n_train = 900};
    zero_loader loader = {
        .corpus = &corpus, .T = 64, .B = 1, .seed = 1337, .eval_random = true};
    int64_t least = 100900, most = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(zero_loader_validation_start(&loader, i), 900 + first[i]);
    for (int i = 0; i < 20000; i++) {
        int64_t at = zero_loader_validation_start(&loader, i);
        assert_true(at >= 900 && at + loader.T + 1 <= corpus.n_tokens);
        least = at < least ? at : least;
        most = at > most ? at : most;
    }
    assert_true(least < 900 + 1000 && most > corpus.n_tokens - 1000);
}

TEST(one_window_can_be_shuffled)
{
    zero_corpus corpus = counting_corpus(20);
    zero_loader loader = loader_of(&corpus, 1, 1, true);
    loader.T = 17;
    for (int64_t s = 0; s < 20; s++)
        assert_int_equal(zero_loader_train_start(&loader, s, 0), 0);
    zero_corpus_close(&corpus);
}

TEST(splits_too_short_for_a_sample_are_refused)
{
    zero_corpus corpus = counting_corpus(N);
    zero_loader loader = {.T = 42};
    loader_of(&corpus, N_VAL - 1, 1, false);
    assert_fails(zero_loader_init(&loader, &corpus, N_VAL, 1, 0, false), ZERO_ERR_INVALID,
                 "validation split has 100 tokens");
    assert_fails(zero_loader_init(&loader, &corpus, N_TRAIN, 1, 0, false), ZERO_ERR_INVALID,
                 "needs 901");
    assert_int_equal(zero_loader_init(&loader, &corpus, 0, 1, 0, false), ZERO_ERR_INVALID);
    assert_int_equal(zero_loader_init(&loader, &corpus, 1, 0, 0, false), ZERO_ERR_INVALID);
    assert_int_equal(loader.T, 42);
    zero_corpus_close(&corpus);
}
