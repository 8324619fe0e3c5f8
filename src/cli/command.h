/* command.h - a subcommand of zero, or a benchmark: what it is called, takes and does.
 *
 * Reading its command line (options.h), --help and --help's man page (help.h) need
 * no more than this. A command returns its status and leaves the message to main(), which
 * prints it once and ends all ranks with the exit code. */
#pragma once

#include "cli/option.h"

#define ZERO_OPTIONS_MOST 128 /* rows of all tables of a command */

/* Rows that fill one struct. */
typedef struct {
    const zero_option *rows; /* the last one has no name */
    size_t base;             /* where that struct lies in the command's own */
    bool in_file;            /* a --config file may hold them */
    unsigned shown; /* --help lists the rows that have these bits; 0: all of them */
} zero_option_table;

/* Exit codes of a command other than 0 and 2. */
enum {
    ZERO_EXIT_OTHER = 1,
    ZERO_EXIT_ENVIRONMENT = 2,
    ZERO_EXIT_DATA = 4,
    ZERO_EXIT_STOPPED = 8,
    ZERO_EXIT_WATCHDOG = 16,
    ZERO_EXIT_DIFFERENT = 32, /* the code is 1, too */
    ZERO_EXIT_ANY = 63,
};

/* What a user chose (options.h). */
typedef struct zero_options zero_options;

typedef struct {
    const char *name;    /* "zero train" */
    const char *summary; /* its line in zero --help; NULL: not in this version */
    const char *usage;   /* how it is called: lines that begin with the program's name */
    const char *about;   /* paragraphs, with a newline between them */
    const char *example; /* lines that work as they stand */
    unsigned exits;      /* bits, as above */

    const zero_option_table *tables; /* a row hides later ones of the same name */
    int n_tables;
    const char *operand; /* what a word without dashes is: "DIR"; NULL: there are none */
    size_t size;         /* of the struct that options fill */
    /* For --help: fills in what a preset decides; NULL: a run's, if there is --model. */
    zero_status (*complete)(void *options);

    /* When all options are stored: works out what no row can say, and refuses what
     * contradicts itself. May be NULL. */
    zero_status (*check)(void *options, const zero_options *given);
    zero_status (*run)(void *options, const zero_options *given);
} zero_command;

/* All subcommands, in the order of --help; NULL past the last one. */
const zero_command *zero_command_at(int i);

/* The subcommand called `word`; NULL if there is none. */
const zero_command *zero_command_find(const char *word);

/* "train" of "zero train" */
const char *zero_command_word(const zero_command *command);

/* Row i of all tables in their order, and its table; NULL past the last one. */
const zero_option *zero_command_option(const zero_command *command, int i,
                                       const zero_option_table **table);

/* The number of the first row called `name`; -1 if there is none. Abbreviations do not
 * count: a script must not break when an option is added. */
int zero_command_find_option(const zero_command *command, const char *name);

/* The option whose name is nearest to a wrong one; NULL if none is near. */
const char *zero_command_nearest_option(const zero_command *command, const char *name);

extern const zero_command zero_command_train, zero_command_plan, zero_command_simulate,
    zero_command_sweep, zero_command_generate, zero_command_checkpoint,
    zero_command_compare, zero_command_config, zero_command_info, zero_command_lesson,
    zero_command_homework, zero_command_report, zero_command_verify, zero_command_help;

/* The letters to add, drop, change or swap with their neighbour until `a` becomes `b`.
 * Words are compared as far as their first 63 bytes. Source: optimal string alignment;
 * Damerau 1964, "A technique for computer detection and correction of spelling errors". */
int zero_suggest_distance(const char *a, const char *b);

/* The word nearest to `word`, the first of equals, borrowed from `words`; NULL if none is
 * near: more than two fifths of the longer word would have to change. */
const char *zero_suggest(const char *word, int n, const char *const *words);
