/* The masks of dropout: the oracle's bits, for many lengths and probabilities. */
#include "gpu/launchers.h"

static void check_dropout(both *b, float p, int64_t B, int64_t n, int way)
{
    const shape s = {.B = B,
                     .T = 1,
                     .C = n,
                     .p = p,
                     .is_odd = true,
                     .shift = way & 1,
                     .in_place = way & 2};
    check(b, operation_named("dropout"), &s);
}

TEST(dropout_has_the_oracles_masks)
{
    static const int64_t lengths[] = {1,  3,  4,   7,    8,    9,    12,  15,
                                      16, 31, 257, 2047, 2048, 2052, 4097};
    static const float p[] = {0.0f, 0.1f, 0.3f, 0.5f, 0.99999994f, 1e-9f};
    both b;
    open_both(&b, *state, 8);
    for (size_t l = 0; l < COUNT(lengths); l++)
        for (size_t k = 0; k < COUNT(p); k++)
            check_dropout(&b, p[k], 3, lengths[l], (int)((l + k) % 2 + k % 3 / 2 * 2));
}

/* An element is dropped if its 32 bits are less than p. Where they are equal to it, and one
 * more or less, shows which side the border is on. */
TEST(masks_have_the_oracles_borders)
{
    const zero_dropout d = dropout_of(&(call){.op = NULL});
    int found = 0;
    both b;
    open_both(&b, *state, 8);
    for (uint64_t i = 0; i < 8192 && found < 4; i++) {
        const uint64_t word = zero_rng_bits(&d.stream, i / 2);
        const uint32_t bits = (uint32_t)(word >> (32 * (i & 1)));
        if (bits % 256 != 0) continue; /* a float holds 24 bits */
        const float p = (float)ldexp((double)bits, -32);
        check_dropout(&b, p, 1, (int64_t)i + 9, 0);
        check_dropout(&b, nextafterf(p, 0.0f), 1, (int64_t)i + 9, 0);
        check_dropout(&b, nextafterf(p, 1.0f), 1, (int64_t)i + 9, 0);
        found++;
    }
    assert_int_equal(found, 4);
}
