/* plan_program.h - the programs, one instruction per line: their lines, which are the
 * instructions and where gradients are freed (sharding/freed.h), and the words that they
 * use. Programs of several stages, merged:
 *
 *     stage 0              stage 2                     merged
 *     REDUCE_WAIT final    REDUCE_WAIT final           REDUCE_WAIT final      both
 *                          (freed) final               (freed) final          stage 2
 *     REDUCE block 0       REDUCE block 0              REDUCE block 0         both
 */
#pragma once

#include "report/plan_report.h"
#include "sharding/instruction_text.h"
#include "sharding/stages.h"

/* Names an entry: equal for what is the same in programs of different stages. */
typedef struct {
    int word; /* the instruction; ZERO_OP_KINDS: a gradient is freed */
    int operand, part, when;
} zero_plan_key;

typedef struct {
    int at;        /* the instruction, from 0; -1: a gradient is freed */
    int64_t bytes; /* as zero_plan_instruction_bytes(); of the gradient */
    zero_plan_key key;
    const zero_instruction *i; /* the one that the gradient's life ends with, if at is -1 */
    int group;                 /* of the gradient; -1: unknown */
} zero_plan_entry;

typedef struct {
    const zero_schedule *s; /* borrowed */
    zero_program_kind kind;
    zero_plan_entry *list; /* [n]; owned */
    int n;
} zero_plan_entries;

/* ZERO_ERR_NOMEM. Release with _destroy. */
zero_status zero_plan_entries_make(zero_plan_entries *entries, const zero_schedule *s,
                                   zero_program_kind kind);
void zero_plan_entries_destroy(zero_plan_entries *entries); /* accepts a zeroed one */

/* "GATHER", "(freed)"; and what it names, "block 3.1" or "". */
const char *zero_plan_entry_name(const zero_plan_entry *entry);
void zero_plan_entry_operand(const zero_plan_entries *entries, const zero_plan_entry *entry,
                             char text[ZERO_PLAN_TEXT]);

/* A line of merged programs: the entry of each, or -1. */
typedef struct {
    int of[ZERO_STAGE_COUNT];
} zero_plan_row;

/* Merges n <= ZERO_STAGE_COUNT programs, one after the other: each keeps its order, and as
 * many equal entries as possible share a row. The rows are the caller's (free).
 * ZERO_ERR_NOMEM. */
zero_status zero_plan_entries_merge(const zero_plan_entries *programs, int n,
                                    zero_plan_row **rows, int *n_rows);

/* The words so far; begins zeroed. */
typedef struct {
    bool ops[ZERO_OP_KINDS], classes[ZERO_CLASSES];
    bool has_freed;
} zero_legend;

/* The instructions of these entries; the classes of memory that they name. */
void zero_legend_add(zero_legend *legend, const zero_plan_entries *entries);

/* [{word, meaning}] */
json_t *zero_legend_facts(const zero_legend *legend);

/* One program as {program, width: columns of names, lines}, and its words. NULL without
 * memory. */
json_t *zero_plan_lines(const zero_schedule *s, zero_program_kind kind,
                        zero_legend *legend);

/* The programs of the report's first stage, in at most 100 columns, and a legend.
 * ZERO_ERR_NOMEM. */
zero_status zero_plan_show_programs(const zero_plan_report *report, FILE *out);
