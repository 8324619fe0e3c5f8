/* stories_words.h - the words and sentences of the generated stories, as plain tables.
 *
 * A story binds every variable once: first the cast (who, where, what), then one template
 * for each line, in the order of the tables. The text is the lines' templates, in order. An
 * option is written
 *
 *     [weight*][value>]form|form|...      "3*forest>acorn"
 *
 * and is drawn in proportion to its weight (default 1) among the options that fit: those without
 * a value, and those whose value is that of the variable's parent.
 * Templates name a slot {variable}, or {variable.form}; {Variable} starts with a capital
 * letter, and {a variable}, {A variable} put the right article before it. stories.h has
 * the conditions on the tables, which tests/data/test_stories.c proves. */
#pragma once

typedef struct {
    const char *name;           /* NULL ends a table */
    const char *forms;          /* the names of the forms; the first is what {name} means */
    const char *parent;         /* an earlier variable, or NULL */
    const char *const *options; /* ends with NULL */
} zero_story_variable;

extern const zero_story_variable zero_story_cast[];
extern const zero_story_variable zero_story_lines[];
