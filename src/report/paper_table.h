/* paper_table.h - the numbers that the ZeRO paper prints, and how ours agree with them.
 *
 * A row of a printed table has one cell per stage. Our value of a cell is computed from the
 * row's inputs alone (sharding/formula.h), in bytes, or in parameters if the table asks for the
 * largest model. The agreement follows from that value, the paper's text and its decimals.
 * Source: Rajbhandari et al., ZeRO, arXiv:1910.02054v3, tables 1 and 2, figure 1. */
#pragma once

#include <stdint.h>

#include "zero/status.h"

#define ZERO_PAPER_STAGES 4 /* columns that the paper prints, by number of the stage */

/* The first of these that holds. */
typedef enum {
    ZERO_PAPER_ROUNDED,   /* to the printed decimals, halves upwards */
    ZERO_PAPER_SCALED,    /* rounded for one of N_m ranks, then multiplied by N_m */
    ZERO_PAPER_TRUNCATED, /* cut off after the printed decimals */
    ZERO_PAPER_DIFFERS,
    ZERO_PAPER_AGREEMENTS
} zero_paper_agreement;

typedef struct {
    const char *model;  /* as the paper calls it; NULL: the largest model is asked for */
    int64_t psi;        /* parameters; 0: the largest model is asked for */
    int n_ranks;        /* N_d */
    int model_parallel; /* N_m, the ranks that share a replica of the model */
    const char *printed[ZERO_PAPER_STAGES]; /* "4187", "15.2B"; NULL: no such cell */
} zero_paper_row;

typedef struct {
    const char *name; /* as in --paper NAME */
    const char *title;
    const char *unit; /* of the cells; "" if each has its own, B or T */
    const zero_paper_row *rows;
    int n_rows;
} zero_paper_table;

typedef struct {
    double exact, printed; /* bytes or parameters */
    double unit;           /* 1e9 or 1e12: what the printed number counts */
    double off;            /* printed / exact - 1 */
    zero_paper_agreement agreement;
} zero_paper_cell;

/* Borrowed. For another name ZERO_ERR_INVALID, which names the tables. */
ZERO_NODISCARD zero_status zero_paper_find(const char *name,
                                           const zero_paper_table **table);

/* Our value: bytes of model states per rank; in a row without psi, the parameters whose states
 * fit 32 GB (of 1e9 bytes) on every rank. */
double zero_paper_exact(const zero_paper_row *row, int stage);

/* Compares any `exact` with a printed cell: digits, then T (1e12), B or nothing (1e9). */
zero_paper_cell zero_paper_compare(const char *printed, double exact, int model_parallel);

const char *zero_paper_agreement_name(zero_paper_agreement agreement);
