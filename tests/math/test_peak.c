/* What a peak is measured by: the kernels do all that is counted. */
#include "support/test.h"

#include "base/type.h"
#include "math/cpu_panel.h"
#include "math/peak.h"

/* Sums begin as x i and x - i in row i, x = 1/2, and get x x in each tile: exact in floats. */
TEST(fp32_kernels_add_as_many_products_as_tiles_have)
{
    const zero_panel_kernels *k;
    for (int i = 0; (k = zero_panels_at(i)); i++)
        for (int tiles = 0; tiles <= 40; tiles += 8) {
            const double n = (double)k->packed.rows;
            const double expected = n * (0.5 + 0.5 * tiles) - 0.25 * n * (n - 1.0);
            assert_true(k->packed.in_registers(tiles) == (float)expected);
        }
}

TEST(reads_see_every_number)
{
    static float x[3 * ZERO_PANEL_READ];
    const zero_panel_kernels *k;
    for (int i = 0; (k = zero_panels_at(i)); i++)
        for (int at = 0; at < 3 * ZERO_PANEL_READ; at++) {
            x[at] = 3.0f;
            assert_true(k->read(3 * ZERO_PANEL_READ, x) == 3.0f);
            x[at] = 0.0f;
        }
}

TEST(a_peak_is_of_the_best_kernels)
{
    const zero_cpu_rate fp32 = zero_cpu_peak(ZERO_FP32, 1),
                        bf16 = zero_cpu_peak(ZERO_BF16, 2);
    double rate = 0.0;
    assert_true(fp32.flops > 0.0 && fp32.by && bf16.flops > 0.0 && bf16.by);
    assert_int_equal(zero_cpu_read_rate(1 << 14, 2, &rate), ZERO_OK);
    assert_true(rate > 0.0);
}
