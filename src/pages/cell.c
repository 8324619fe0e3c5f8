#include "pages/cell.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pages/figures.h"
#include "report/text.h"

/* True if there is a number to write; else writes a dash. */
static bool is_known(double value, char text[ZERO_CELL])
{
    if (!isfinite(value)) strcpy(text, "-");
    return isfinite(value);
}

/* Four digits, without an exponent. */
static void write_digits(double value, char text[ZERO_CELL])
{
    double size = fabs(value);
    int digits = size == 0.0     ? 0
                 : size < 10.0   ? 3
                 : size < 100.0  ? 2
                 : size < 1000.0 ? 1
                                 : 0;
    if (size > 1e15 || (size > 0.0 && size < 0.001))
        snprintf(text, ZERO_CELL, "%.3e", value);
    else
        snprintf(text, ZERO_CELL, "%.*f", digits, value);
}

void zero_cell_number(double value, char text[ZERO_CELL])
{
    if (is_known(value, text)) write_digits(value, text);
}

void zero_cell_seconds(double value, char text[ZERO_CELL])
{
    bool is_long = value >= 1.0, is_short = value > 0.0 && value < 1e-3;
    if (!is_known(value, text)) return;
    write_digits(is_long ? value : is_short ? 1e6 * value : 1e3 * value, text);
    strcat(text, is_long ? " s" : is_short ? " us" : " ms");
}

void zero_cell_share(double value, char text[ZERO_CELL])
{
    if (is_known(value, text)) snprintf(text, ZERO_CELL, "%.1f %%", 100.0 * value);
}

void zero_cell_bytes(double value, char text[ZERO_CELL])
{
    char words[ZERO_PLAN_TEXT];
    if (!is_known(value, text)) return;
    zero_text_bytes(value, words);
    snprintf(text, ZERO_CELL, "%.*s", ZERO_CELL - 1, words);
}

void zero_cell_figure(int i, double value, char text[ZERO_CELL])
{
    static void (*const write[ZERO_SIX_FIGURES])(double, char[ZERO_CELL]) = {
        zero_cell_number,  zero_cell_number, zero_cell_number,
        zero_cell_seconds, zero_cell_bytes,  zero_cell_share};
    write[i](value, text);
}

const char *zero_cell_equal(int64_t planned, int64_t measured)
{
    return planned == measured ? "=" : "DIFFERS";
}
