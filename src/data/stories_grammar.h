/* stories_grammar.h - the words and sentences of stories.txt, parsed once.
 *
 * Variables are numbered in the order of the text, cast first, so parents come before
 * their children. A set of variables is a bit mask. Only memory can run out: mistakes in
 * the text are ours, and found by assertions and tests. */
#pragma once

#include "base/fail.h"

enum {
    ZERO_STORY_VARIABLES = 48, /* at most */
    ZERO_STORY_OPTIONS = 96,   /* per variable, at most */
    ZERO_STORY_FORMS = 5,      /* per option, at most */
};

/* A part of stories.txt, not terminated. */
typedef struct {
    const char *at;
    int len;
} zero_story_text;

typedef struct {
    int weight;
    int when; /* the parent's option that this one needs; -1: any */
    zero_story_text forms[ZERO_STORY_FORMS];
} zero_story_option;

typedef struct {
    zero_story_text name, form_names[ZERO_STORY_FORMS];
    int parent; /* -1: none */
    int n_options, n_forms;
    zero_story_option options[ZERO_STORY_OPTIONS];
} zero_story_node;

typedef struct {
    int n, n_cast; /* lines are the variables n_cast .. n-1 */
    zero_story_node nodes[ZERO_STORY_VARIABLES];
    char text[]; /* stories.txt, cut into lines */
} zero_grammar;

/* A slot of a template. */
typedef struct {
    int variable, form;
    bool article, capital;
} zero_slot;

/* *grammar is owned by the caller, who frees it with free(). */
zero_status zero_grammar_create(zero_grammar **grammar);

/* The probability of `option` of `variable` given its parent's option (-1 if it has none).
 */
double zero_grammar_probability(const zero_grammar *g, int variable, int option,
                                int parent);

/* Reads the slot at the opening brace `at`; returns the first character after it. */
const char *zero_grammar_slot(const zero_grammar *g, const char *at, zero_slot *slot);

/* Writes a piece of template with its slots filled, not terminated; returns the length.
 * options[variable] is the option that each variable is bound to. Without them nothing is
 * written. *named gets the variables that it names; NULL: not wanted. */
int zero_grammar_expand(const zero_grammar *g, zero_story_text text, const int *options,
                        char *out, int room, uint64_t *named);
