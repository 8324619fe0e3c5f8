#include "report/paper_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "sharding/formula.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define DEVICE_BYTES 32e9 /* of the V100 in table 2 */
#define P7B          "7.5B", INT64_C(7500000000)
#define P128B        "128B", INT64_C(128000000000)
#define P1T          "1T", INT64_C(1000000000000)
#define LARGEST      NULL, 0

/* clang-format off */
static const zero_paper_row table1[] = {
    {P7B, 1, 1, {NULL, "120", "120", "120"}},
    {P7B, 4, 1, {NULL, "52.5", "41.3", "30"}},
    {P7B, 16, 1, {NULL, "35.6", "21.6", "7.5"}},
    {P7B, 64, 1, {NULL, "31.4", "16.6", "1.88"}},
    {P7B, 256, 1, {NULL, "30.4", "15.4", "0.47"}},
    {P7B, 1024, 1, {NULL, "30.1", "15.1", "0.12"}},
    {P128B, 1, 1, {NULL, "2048", "2048", "2048"}},
    {P128B, 4, 1, {NULL, "896", "704", "512"}},
    {P128B, 16, 1, {NULL, "608", "368", "128"}},
    {P128B, 64, 1, {NULL, "536", "284", "32"}},
    {P128B, 256, 1, {NULL, "518", "263", "8"}},
    {P128B, 1024, 1, {NULL, "513", "257", "2"}},
    {P1T, 1, 1, {NULL, "16000", "16000", "16000"}},
    {P1T, 4, 1, {NULL, "7000", "5500", "4000"}},
    {P1T, 16, 1, {NULL, "4750", "2875", "1000"}},
    {P1T, 64, 1, {NULL, "4187", "2218", "250"}},
    {P1T, 256, 1, {NULL, "4046", "2054", "62.5"}},
    {P1T, 1024, 1, {NULL, "4011", "2013", "15.6"}},
};

static const zero_paper_row table2[] = {
    {LARGEST, 64, 1, {"2B", "7.6B", "14.4B", "128B"}},
    {LARGEST, 64, 2, {"4B", "15.2B", "28.8B", "256B"}},
    {LARGEST, 64, 4, {"8B", "30.4B", "57.6B", "0.5T"}},
    {LARGEST, 64, 8, {"16B", "60.8B", "115.2B", "1T"}},
    {LARGEST, 64, 16, {"32B", "121.6B", "230.4B", "2T"}},
};

static const zero_paper_row figure1[] = {
    {P7B, 64, 1, {"120", "31.4", "16.6", "1.9"}},
};
/* clang-format on */

static const zero_paper_table tables[] = {
    {"table1", "ZeRO paper, table 1: model states per rank, 16-bit Adam (K = 12)", "GB",
     table1, COUNT(table1)},
    {"table2",
     "ZeRO paper, table 2: largest model whose states fit 32 GB per rank, 16-bit Adam", "",
     table2, COUNT(table2)},
    {"fig1", "ZeRO paper, figure 1: model states per rank, 16-bit Adam (K = 12)", "GB",
     figure1, COUNT(figure1)},
};

zero_status zero_paper_find(const char *name, const zero_paper_table **table)
{
    for (int i = 0; i < COUNT(tables); i++) {
        if (strcmp(tables[i].name, name) != 0) continue;
        *table = &tables[i];
        return ZERO_OK;
    }
    return zero_fail(ZERO_ERR_INVALID,
                     "--paper %s: expected table1, table2, fig1, fig6 or fig7, whose "
                     "numbers follow from formulas, or fig2, fig3, fig4, fig8, turing-nlg "
                     "or trillion, which stand "
                     "beside a model of time",
                     name);
}

double zero_paper_exact(const zero_paper_row *row, int stage)
{
    int64_t fits;
    if (row->psi > 0)
        return zero_formula_state_bytes(row->psi, row->n_ranks, stage, ZERO_FP16) /
               row->model_parallel;
    fits = zero_formula_largest_model(DEVICE_BYTES, row->n_ranks, stage, ZERO_FP16);
    return (double)fits * row->model_parallel;
}

static int decimals(const char *printed)
{
    const char *point = strchr(printed, '.');
    return point ? (int)strspn(point + 1, "0123456789") : 0;
}

/* Halves upwards: 41.25 is printed as 41.3, 1.875 as 1.88. */
static double round_up(double x)
{
    return floor(x + 0.5);
}

zero_paper_cell zero_paper_compare(const char *printed, double exact, int model_parallel)
{
    char *suffix;
    double number = strtod(printed, &suffix), unit = *suffix == 'T' ? 1e12 : 1e9;
    zero_paper_cell cell = {.exact = exact, .printed = round(number * unit), .unit = unit};
    cell.off = cell.printed / exact - 1.0;

    /* Both are compared as whole numbers, in units of the last printed digit. */
    double shift = pow(10.0, decimals(printed)), parts = model_parallel;
    double ours = exact / unit * shift, theirs = round(number * shift);
    cell.agreement = ZERO_PAPER_DIFFERS;
    if (theirs == floor(ours)) cell.agreement = ZERO_PAPER_TRUNCATED;
    if (theirs == round_up(ours / parts) * parts) cell.agreement = ZERO_PAPER_SCALED;
    if (theirs == round_up(ours)) cell.agreement = ZERO_PAPER_ROUNDED;
    return cell;
}

const char *zero_paper_agreement_name(zero_paper_agreement agreement)
{
    static const char *const names[] = {"rounded", "scaled", "truncated", "differs"};
    return names[agreement];
}
