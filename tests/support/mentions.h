/* mentions.h - options that a text of ours names exist. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/command.h"

static inline bool some_command_has(const char *name)
{
    /* Options of launchers, and words that stand for commands. */
    static const char *const others[] = {"mpi", "map-by", "help", "version"};
    const zero_command *command;
    for (int c = 0; (command = zero_command_at(c)); c++)
        if (zero_command_find_option(command, name) >= 0) return true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i], name) == 0) return true;
    return false;
}

/* Fails, naming `of`, if the text has a word --name that no command has as an option. */
static inline void mentions_exist(const char *of, const char *text)
{
    for (const char *at = text; at && (at = strstr(at, "--")); at += 2) {
        size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)length, at + 2);
        if (length > 0 && !some_command_has(name))
            fail_msg("%s names --%s, which is no option", of, name);
    }
}
