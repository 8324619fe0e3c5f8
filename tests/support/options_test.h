/* options_test.h - command lines of zero train, read and refused. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/fail.h"
#include "cli/run_options.h"

#define MOST_WORDS 16

/* The options of a line, and the words that they borrow. */
typedef struct {
    zero_config config;
    zero_options given;
    char words[1024];
} parsed;

/* Parses a line whose words are separated by single blanks; '' is an empty word. */
static inline zero_status parse(const char *line, parsed *p)
{
    char *argv[MOST_WORDS];
    int argc = 0;
    snprintf(p->words, sizeof p->words, "%s", line);
    for (char *w = p->words; w && *w; argc++) {
        assert_true(argc < MOST_WORDS);
        argv[argc] = w;
        w = strchr(w, ' ');
        if (w) *w++ = '\0';
        if (strcmp(argv[argc], "''") == 0) argv[argc][0] = '\0';
    }
    return zero_options_read(&zero_command_train, argc, argv, &p->config, &p->given);
}

static inline void must_contain(const char *line, const char *part)
{
    if (!strstr(zero_last_error(), part))
        fail_msg("%s\n  said      %s\n  expected  %s", line, zero_last_error(), part);
}

/* The line is refused with `status`; the message has both parts, and the options are untouched. */
static inline void refused(zero_status status, const char *line, const char *part,
                           const char *other)
{
    parsed p;
    zero_options before;
    memset(&p.given, 0x5a, sizeof p.given);
    memcpy(&before, &p.given, sizeof before);
    zero_status st = parse(line, &p);
    if (st != status) fail_msg("%s\n  gave %d, expected %d: %s", line, st, status, part);
    must_contain(line, part);
    must_contain(line, other);
    assert_memory_equal(&p.given, &before, sizeof before);
}

static inline void accepted(const char *line, parsed *p)
{
    if (parse(line, p) != ZERO_OK) fail_msg("%s\n  said %s", line, zero_last_error());
}
