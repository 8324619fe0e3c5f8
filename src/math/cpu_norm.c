/* cpu_norm.c - layer norm: pieces of rows, with a poll after each. Rows of 16 bits are
 * widened one by one into the scratch, after gain and bias. */
#include "math/cpu.h"

#include "math/cpu_row.h"
#include "math/team.h"

/* The scratch from `from` on, of which the caller needs all up to `end`. */
static float *room(const zero_math *math, int64_t from, ZERO_UNUSED int64_t end)
{
    assert(end <= zero_math_scratch());
    return math->scratch + from;
}

/* Rows from r on of what every row has one number of; NULL: it is not wanted. */
static const float *from(const float *x, int64_t r)
{
    return x ? x + r : NULL;
}

static void norm(const zero_math *math, const zero_layernorm_args *n)
{
    const int64_t C = n->C;
    zero_layernorm_args one = *n;
    if (n->rows_type == ZERO_FP32) {
        zero_cpu_kernels_of(math)->layernorm(n);
        return;
    }
    float *row = room(math, 2 * C, 3 * C);
    one.rows = 1, one.x = one.y = row;
    for (int64_t r = 0; r < n->rows; r++, one.rstd++) {
        one.mean = (float *)from(n->mean, r);
        zero_row_widen(n->rows_type, C, zero_type_at(n->rows_type, n->x, r * C), row);
        zero_cpu_kernels_of(math)->layernorm(&one);
        zero_row_round(n->rows_type, C, row, zero_type_to(n->rows_type, n->y, r * C));
    }
}

static void layernorm_rows(const zero_math *math, const void *arg, int64_t first,
                           int64_t end)
{
    const zero_layernorm_args *n = arg;
    const int64_t C = n->C, step = zero_row_piece(C);
    zero_layernorm_args piece = *n;
    piece.type = ZERO_FP32;
    piece.gain = zero_row_weights(math, n->type, C, n->gain, 0);
    piece.bias = zero_row_weights(math, n->type, C, n->bias, C);
    for (int64_t r = first; r < end; r += step) {
        piece.rows = zero_min(end - r, step);
        piece.x = zero_type_at(n->rows_type, n->x, r * C);
        piece.y = zero_type_to(n->rows_type, n->y, r * C);
        piece.mean = (float *)from(n->mean, r);
        piece.rstd = n->rstd + r;
        norm(math, &piece);
        zero_math_poll(math);
    }
}

void zero_cpu_layernorm(const zero_math *math, const zero_layernorm_args *n)
{
    zero_team_share(math, n->rows, 1, layernorm_rows, n);
}

/* Places for x, dy and dx of a row of 16 bits, after the gain. */
typedef struct {
    float *x, *dy, *dx;
} wide_rows;

static wide_rows take_rows(const zero_math *math, int64_t C)
{
    float *x = room(math, C, 4 * C);
    return (wide_rows){x, x + C, x + 2 * C};
}

static void slopes(const zero_math *math, const zero_layernorm_grad_args *n)
{
    const zero_type type = n->rows_type;
    const int64_t C = n->C;
    zero_layernorm_grad_args one = *n;
    if (type == ZERO_FP32) {
        zero_cpu_kernels_of(math)->layernorm_backward(n);
        return;
    }
    const wide_rows wide = take_rows(math, C);
    one.rows = 1, one.x = wide.x, one.dy = wide.dy, one.dx = wide.dx;
    for (int64_t r = 0; r < n->rows; r++, one.rstd++) {
        one.mean = from(n->mean, r);
        void *dx = zero_type_to(type, n->dx, r * C);
        zero_row_widen(type, C, zero_type_at(type, n->x, r * C), wide.x);
        zero_row_widen(type, C, zero_type_at(type, n->dy, r * C), wide.dy);
        zero_row_widen(type, C, dx, wide.dx);
        zero_cpu_kernels_of(math)->layernorm_backward(&one);
        zero_row_round(type, C, wide.dx, dx);
    }
}

/* dgain and dbias, too, unless they are NULL. */
static void layernorm_slopes(const zero_math *math, const void *arg, int64_t first,
                             int64_t end)
{
    const zero_layernorm_grad_args *n = arg;
    const int64_t C = n->C, step = zero_row_piece(C);
    zero_layernorm_grad_args piece = *n;
    piece.type = ZERO_FP32;
    piece.gain = zero_row_weights(math, n->type, C, n->gain, 0);
    for (int64_t r = first; r < end; r += step) {
        piece.rows = zero_min(end - r, step);
        piece.x = zero_type_at(n->rows_type, n->x, r * C);
        piece.mean = from(n->mean, r);
        piece.rstd = n->rstd + r;
        piece.dy = zero_type_at(n->rows_type, n->dy, r * C);
        piece.dx = zero_type_to(n->rows_type, n->dx, r * C);
        slopes(math, &piece);
        zero_math_poll(math);
    }
}

/* Channels [first, end) of dgain and dbias. */
static void add_sums(const zero_math *math, const zero_layernorm_grad_args *n,
                     int64_t first, int64_t end)
{
    const zero_type type = n->rows_type;
    const int64_t C = n->C, len = end - first;
    zero_layernorm_grad_args one = *n;
    if (type == ZERO_FP32) {
        zero_cpu_kernels_of(math)->layernorm_sums(n, first, end);
        return;
    }
    const wide_rows wide = take_rows(math, C);
    one.rows = 1, one.x = wide.x, one.dy = wide.dy;
    one.dgain += first;
    if (one.dbias) one.dbias += first;
    for (int64_t r = 0; r < n->rows; r++, one.rstd++) {
        one.mean = from(n->mean, r);
        zero_row_widen(type, len, zero_type_at(type, n->x, r * C + first), wide.x);
        zero_row_widen(type, len, zero_type_at(type, n->dy, r * C + first), wide.dy);
        zero_cpu_kernels_of(math)->layernorm_sums(&one, 0, len);
    }
}

static void layernorm_sums(const zero_math *math, const void *arg, int64_t first,
                           int64_t end)
{
    const zero_layernorm_grad_args *n = arg;
    const int64_t step = zero_row_piece(end - first);
    zero_layernorm_grad_args piece = *n;
    for (int64_t r = 0; r < n->rows; r += step) {
        piece.rows = zero_min(n->rows - r, step);
        piece.x = zero_type_at(n->rows_type, n->x, r * n->C);
        piece.mean = from(n->mean, r);
        piece.rstd = n->rstd + r;
        piece.dy = zero_type_at(n->rows_type, n->dy, r * n->C);
        add_sums(math, &piece, first, end);
        zero_math_poll(math);
    }
}

/* dx is a row's, dgain and dbias are sums over rows: several threads read x and dy
 * twice. */
void zero_cpu_layernorm_backward(const zero_math *math, const zero_layernorm_grad_args *n)
{
    const bool is_shared = math->threads > 1;
    zero_layernorm_grad_args all = *n, rows = *n;
    all.accumulate = rows.accumulate = true;
    if (is_shared) rows.dgain = rows.dbias = NULL;
    if (!n->accumulate) {
        zero_clear(n->dgain, n->C);
        if (n->dbias) zero_clear(n->dbias, n->C);
    }
    zero_team_share(math, n->rows, 1, layernorm_slopes, &rows);
    if (is_shared) zero_team_share(math, n->C, ZERO_TEAM_LINE, layernorm_sums, &all);
}
