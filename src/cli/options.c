#include "cli/options.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "cli/config_file.h"
#include "cli/option_table.h"
#include "cli/option_value.h"

#define MOST_OPTIONS 64

/* What the command line says, not yet checked: the text of option i, NULL if it is not
 * there. */
typedef struct {
    const char *text[MOST_OPTIONS];
} flags;

static zero_status unknown(const char *argument, size_t length)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, argument + strspn(argument, "-"));
    const char *nearest = zero_option_nearest(name);
    if (argument[0] != '-')
        return zero_fail(
            ZERO_ERR_INVALID,
            "'%.80s': expected an option, as in --steps 100, found a word that "
            "belongs to none",
            argument);
    if (nearest)
        return zero_fail(ZERO_ERR_INVALID, "%.80s: no such option; did you mean --%s?",
                         argument, nearest);
    return zero_fail(ZERO_ERR_INVALID, "%.80s: no such option; --help lists all", argument);
}

/* Takes argv[*i], and argv[*i + 1] where the value stands apart. */
static zero_status read_argument(int argc, char **argv, int *i, flags *given)
{
    const char *argument = argv[*i];
    if (strncmp(argument, "--", 2) != 0)
        return unknown(argument, strcspn(argument + strspn(argument, "-"), "="));
    const char *name = argument + 2, *value = strchr(name, '=');
    size_t length = value ? (size_t)(value - name) : strlen(name);
    int index;
    const zero_option *option = zero_option_find(name, length, &index);
    if (!option) return unknown(argument, length);

    if (value)
        value++;
    else if (option->kind == ZERO_OPTION_FLAG)
        value = "on";
    else if (*i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0)
        value = argv[++*i];
    else
        return zero_fail(ZERO_ERR_INVALID, "--%s: expected a value behind it, found %s",
                         option->name,
                         *i + 1 < argc ? argv[*i + 1] : "the end of the line");
    if (given->text[index])
        return zero_fail(ZERO_ERR_INVALID,
                         "--%s is given twice, as %.80s and as %.80s; keep one",
                         option->name, given->text[index], value);
    given->text[index] = value;
    return ZERO_OK;
}

static zero_status read_flags(int argc, char **argv, flags *given)
{
    *given = (flags){0};
    for (int i = 0; i < argc; i++) ZERO_TRY(read_argument(argc, argv, &i, given));
    return ZERO_OK;
}

static zero_status apply_flags(const flags *given, zero_options *options)
{
    int n;
    const zero_option *table = zero_option_table(&n);
    for (int i = 0; i < n; i++) {
        char where[160];
        if (!given->text[i]) continue;
        snprintf(where, sizeof where, "--%s %.80s", table[i].name, given->text[i]);
        ZERO_TRY(zero_option_store(&table[i], given->text[i], where, &options->config));
        options->set |= UINT64_C(1) << i;
    }
    return ZERO_OK;
}

static zero_status apply_file(const flags *given, zero_options *options)
{
    int index;
    const char *path = NULL;
    if (zero_option_find("config", strlen("config"), &index)) path = given->text[index];
    if (!path) return ZERO_OK;
    uint64_t overridden = 0;
    for (int i = 0; i < MOST_OPTIONS; i++)
        if (given->text[i]) overridden |= UINT64_C(1) << i;
    ZERO_TRY(zero_config_file_load(path, &options->file));
    return zero_config_file_apply(path, options->file, overridden, &options->config,
                                  &options->set);
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

zero_status zero_options_parse(zero_options *options, int argc, char **argv)
{
    int n;
    const zero_option *table = zero_option_table(&n);
    zero_options read = {.help = asks_for_help(argc, argv)};
    for (int i = 0; i < n; i++) zero_option_reset(&table[i], &read.config);
    flags given;
    zero_status st = ZERO_OK;
    if (!read.help) st = read_flags(argc, argv, &given);
    if (!read.help && st == ZERO_OK) st = apply_file(&given, &read);
    if (!read.help && st == ZERO_OK) st = apply_flags(&given, &read);
    if (st == ZERO_OK)
        *options = read;
    else
        zero_options_destroy(&read);
    return st;
}

bool zero_options_is_set(const zero_options *options, const char *name)
{
    int index = 0;
    const zero_option *option = zero_option_find(name, strlen(name), &index);
    assert(option);
    return option && (options->set >> index & 1) != 0;
}

void zero_options_destroy(zero_options *options)
{
    json_decref(options->file);
    *options = (zero_options){0};
}
