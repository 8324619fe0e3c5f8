/* facts.h - expressions over a tree of facts.
 *
 * A producer (a plan, a run, a step, a simulation, a study, a table of the paper) puts
 * its numbers once into one JSON tree: what --json and --metrics print is that tree. All
 * that shows them (text, columns, CSV, HTML, lessons) asks it by expressions.
 *
 *   stages/0/memory/needed     a path: members of objects and numbers of items, joined by
 *                              /. Its first name is looked up in the innermost scope that
 *                              has it. ~ stands for a blank in a key. key, index and item
 *                              name what the innermost {each} is at, outer the index of
 *                              the one around it
 *   classes/@key/own_peak      after @ a name: the member that this text, or the item that
 *                              this number, names
 *   12  1.5e9  "bf16"  true    constants
 *   + - * / ( ) - !            operators, with blanks around: a path may contain / and -
 *   < <= > >= == != && || ? :
 *   count(path)                items of an array, members of an object; 0 without it
 *   sum(path, x)  least(path, x)  largest(path, x)  any(path, x)  all(path, x)   x of each item
 *   first(path, x)             the first item for which x is true; a / after it goes on
 *   or(x, y)                   y where x is missing
 *   at(path, x)                the member of an object whose name is the text x
 *   whole(x)  amount(x)        x if it is a whole number; a number, or 0 of null; else none
 *   min(x, y)  max(x, y)  abs(x)  ceil(x)  floor(x)  round(x)  log2(x)  sqrt(x)
 *
 * A missing fact is false in a condition, equal to nothing, and an error where it is
 * calculated with or shown; null is a number that is not known. */
#pragma once

#include "io/json_tree.h"

/* Where names are looked up: in `node`, then outward. */
typedef struct zero_scope {
    const json_t *node;
    const char *key; /* of the item that `node` is, in an object; else NULL */
    size_t index;    /* of the item */
    const struct zero_scope *outer;
    bool is_bound; /* `node` has names for values, and is no item */
} zero_scope;

/* The next item of a list or member of an object becomes the scope's node; false after the
 * last. The scope begins with `outer` alone. */
bool zero_scope_next(const json_t *list, zero_scope *scope);

typedef enum {
    ZERO_FACT_MISSING,
    ZERO_FACT_NUMBER,
    ZERO_FACT_TEXT,
    ZERO_FACT_TREE
} zero_fact_kind;

typedef struct {
    zero_fact_kind kind;
    double number;      /* NAN: not known */
    const char *text;   /* borrowed from the tree or from the expression */
    size_t length;      /* of text */
    const json_t *node; /* the fact itself, if the expression is just a path */
} zero_fact;

/* Evaluates an expression of n characters. ZERO_ERR_FORMAT names what is wrong in it, or
 * missing. */
zero_status zero_fact_of(const char *expression, size_t n, const zero_scope *scope,
                         zero_fact *fact);
/* The fact as a condition. */
bool zero_fact_is_true(const zero_fact *fact);

/* The fact at a path, NULL if it is missing. */
const json_t *zero_fact_at(const json_t *tree, const char *path);
/* The number that an expression over the tree gives; NAN if it is missing or wrong. */
double zero_fact_number(const json_t *tree, const char *expression);

/* The fact as a value of a tree, which is new or shared; null if it is missing or not
 * finite. */
json_t *zero_fact_value(const zero_fact *fact);
/* A spec names values: "name; name = expression; name? = condition". */
#define ZERO_FACT_NAME 80
typedef struct {
    const char *text, *x; /* where the part and its expression begin */
    size_t length;        /* of the expression */
    bool is_flag;
    char name[ZERO_FACT_NAME];
} zero_spec_part;

/* The next part; false after the last. */
bool zero_spec_next(const char **spec, zero_spec_part *part);
/* Its value, which is new or shared: null for what is missing or not finite. */
json_t *zero_spec_value(const zero_spec_part *part, const zero_scope *scope);
/* An object of all values. NULL without memory. */
json_t *zero_facts_pick(const zero_scope *scope, const char *spec);
/* A list of them, of all items of a list or members of an object. */
json_t *zero_facts_each(const json_t *tree, const char *path, const char *spec);

/* The units in which forms show numbers: "bytes" 1.25 GiB, "whole" 1234, "number" 6.258,
 * "seconds" 72.82 ms, "ms" 72.82, "share" 12.3 %, "s" and "es" the ending of a noun,
 * "grouped" 12 345, "text"; or a format of printf for a double without its %: ".3f".
 * Numbers that are not known are "-". An empty unit shows whole numbers as they are and
 * others with six digits. Returns false if there is no such unit. */
bool zero_unit_write(const zero_fact *fact, const char *unit, char *text, size_t size);
