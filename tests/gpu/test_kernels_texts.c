/* Kernels of generated texts: keys and values that are kept, attention over them, products of few
 * rows. Each text, and each row, has the bits that it has alone. */
#include "gpu/launchers.h"

/* Text, or row, `b` of a call on `all->s.B` of them. */
static void check_alone(both *with, const call *all, int64_t b)
{
    shape one = all->s;
    call given = {.after = all->before};
    for (int i = 0; i < all->n_arrays; i++) {
        array x = all->arrays[i];
        const bool is_cut = is_among("x a", x.name);
        if (x.part != 0 && x.part != b) continue;
        if (strcmp(x.name, "kept") == 0 && x.part != b) continue;
        x.part = 0;
        if (is_cut) x.n /= one.B, x.at += zero_type_size(x.type) * (size_t)(b * x.n);
        given.arrays[given.n_arrays++] = x;
    }
    one.B = 1;
    if (one.past) one.past += b;
    call alone = make_call_given(&with->gpu, all->op, &one, &given);
    for (int i = 0; i < alone.n_arrays; i++) {
        const array *x = &alone.arrays[i], *y = array_named(all, x->name);
        const size_t bytes = zero_type_size(x->type) * (size_t)x->n;
        if (is_among("y c", x->name))
            assert_memory_equal(alone.after + x->at, all->after + y->at + bytes * (size_t)b,
                                bytes);
    }
    drop_call(&alone);
}

/* As the oracle says, by the law of types, and each alone. */
static void check_texts(both *with, const char *name, shape s, zero_type type)
{
    const operation *op = operation_named(name);
    s.numbers = type;
    check(with, op, &s);
    s.type = s.rows = type;
    call all = make_call(&with->gpu, op, &s);
    for (int64_t b = 0; b < s.B; b++) check_alone(with, &all, b);
    drop_call(&all);
}

/* Heads of fewer numbers than lanes take at once, of 8 and more, and of more than a warp has; texts
 * whose keys do not fill a turn of a block, and fill several. */
TEST(a_token_attends_to_what_is_kept)
{
    static const struct {
        int64_t B, C, H, past[3];
        int shift;
    } texts[] = {
        {1, 5, 1, {0}, 0},          {3, 15, 3, {40, 0, 7}, 0}, {2, 192, 3, {299, 31}, 0},
        {2, 128, 2, {69, 64}, 1},   {1, 256, 2, {17}, 0},      {2, 320, 1, {38, 5}, 0},
        {3, 96, 4, {1, 89, 33}, 0},
    };
    both b;
    open_both(&b, *state, 65536);
    for (size_t k = 0; k < COUNT(texts); k++)
        for (size_t t = 0; t < COUNT(types); t++) {
            const shape s = {.B = texts[k].B,
                             .T = 1,
                             .C = texts[k].C,
                             .H = texts[k].H,
                             .K = texts[k].H,
                             .V = 11,
                             .past = texts[k].past,
                             .shift = texts[k].shift};
            check_texts(&b, "remember", s, types[t]);
            check_texts(&b, "recall", s, types[t]);
            shape of = s;
            of.numbers = types[t];
            check(&b, operation_named("embedding"), &of); /* at positions of their own */
        }
}

/* m, n, k and the shift. With many columns k is cut into few, long parts: one type is enough for
 * them. */
TEST(products_of_few_rows_agree_and_do_not_depend_on_each_other)
{
    static const int64_t sizes[][4] = {{1, 1, 1, 0},     {1, 70, 33, 0},   {2, 130, 17, 0},
                                       {8, 96, 400, 0},  {3, 65, 64, 1},   {17, 40, 72, 0},
                                       {1, 64, 1000, 1}, {2, 4200, 400, 0}};
    both b;
    open_both(&b, *state, 65536);
    for (size_t k = 0; k < COUNT(sizes); k++)
        for (int way = 0; way < 6; way++) {
            const shape s = {.B = sizes[k][0],
                             .T = 1,
                             .C = sizes[k][1],
                             .V = sizes[k][2],
                             .ways = FEW_ROWS | (way & 1 ? TURN_B : 0),
                             .shift = (int)sizes[k][3]};
            if (s.C < 1000 || way == 2) check_texts(&b, "gemm", s, types[way / 2]);
        }
}
