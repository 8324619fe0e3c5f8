#include "math/device.h"

static const zero_device devices[] = {
    {"cpu", NULL, false, true, ZERO_CPU_CHUNK},
    {"cuda", NULL, true, true, ZERO_GPU_CHUNK},
};
#define DEVICES ZERO_COUNT(devices)

/* NULL: past the end. */
static const zero_device *device_at(int i)
{
    if (i < DEVICES) return &devices[i];
#ifdef ZERO_TEST_DEVICES
    for (const zero_device *d = zero_test_devices; d && d->name; d++)
        if (i-- == DEVICES) return d;
#endif
    return NULL;
}

const char *zero_device_name_at(int i)
{
    const zero_device *d = device_at(i);
    return d ? d->name : NULL;
}

/* ---- what was asked for ---- */

/* The device whose name ends at a colon or with the text; NULL if there is none. */
static const zero_device *device_of(const char *text)
{
    const size_t length = strcspn(text, ":");
    const zero_device *d;
    for (int i = 0; (d = device_at(i)) != NULL; i++)
        if (strlen(d->name) == length && memcmp(d->name, text, length) == 0) break;
    return d;
}

/* Reads a number of at most four digits and moves *text past it. Returns -1 if the text
 * begins otherwise or has more digits. */
static int read_number(const char **text)
{
    int number = 0, digits = 0;
    for (; **text >= '0' && **text <= '9' && digits < 5; (*text)++, digits++)
        number = 10 * number + (**text - '0');
    return digits > 0 && digits < 5 ? number : -1;
}

static bool has_number(const zero_device_choice *c, int number)
{
    for (int i = 0; i < c->n; i++)
        if (c->numbers[i] == number) return true;
    return false;
}

static zero_status read_numbers(const char *text, const char *where, zero_device_choice *c)
{
    for (bool goes_on = true; goes_on;) {
        const int number = read_number(&text);
        goes_on = *text == ',';
        ZERO_INVALID_IF(
            number < 0 || (*text != '\0' && !goes_on),
            "%s: expected numbers with commas between them after the colon, as in %s:0,2",
            where, c->name);
        ZERO_INVALID_IF(
            has_number(c, number),
            "%s: device %d is given twice; several ranks may share a device, but "
            "it is named once",
            where, number);
        ZERO_INVALID_IF(c->n == ZERO_DEVICE_NUMBERS, "%s: expected at most %d devices",
                        where, ZERO_DEVICE_NUMBERS);
        c->numbers[c->n++] = number;
        text++;
    }
    return ZERO_OK;
}

zero_status zero_device_read(const char *text, const char *where,
                             zero_device_choice *choice)
{
    const zero_device *d = device_of(text);
    const size_t length = strcspn(text, ":");
    if (!d) {
        char names[128];
        size_t at = 0;
        for (int i = 0; zero_device_name_at(i) && at < sizeof names; i++)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i > 0 ? "|" : "",
                                   zero_device_name_at(i));
        return zero_fail(
            ZERO_ERR_INVALID,
            "%s: expected one of %s, or some devices of a machine, as in cuda:0,2", where,
            names);
    }
    zero_device_choice c = {.name = d->name};
    ZERO_INVALID_IF(text[length] == ':' && !d->is_plugin,
                    "%s: %s has no numbers; leave out '%s'", where, c.name, text + length);
    if (text[length] == ':') ZERO_TRY(read_numbers(text + length + 1, where, &c));
    *choice = c;
    return ZERO_OK;
}

bool zero_device_halves_rows(const char *name)
{
    const zero_device *d = device_of(name);
    return d && d->halves_rows;
}

zero_logits_chunk zero_device_logits(const char *name)
{
    const zero_device *d = device_of(name);
    return d ? d->logits : devices[0].logits;
}

bool zero_device_is_host(const char *name)
{
    return device_of(name) == &devices[0];
}

/* ---- what there is ---- */

zero_status zero_device_find(const char *name, const zero_backend **found,
                             const zero_plugin **plugin)
{
    char where[128];
    zero_device_choice choice;
    const zero_plugin *opened = NULL;
    zero_print(where, "device '%s'", name);
    ZERO_TRY(zero_device_read(name, where, &choice));
    const zero_device *d = device_of(name);
    if (d->is_plugin) ZERO_TRY(zero_plugin_open(choice.name, &opened));
    *found = opened ? opened->backend : d->backend;
    *plugin = opened;
    return ZERO_OK;
}

zero_status zero_device_count(const zero_plugin *plugin, const zero_device_choice *choice,
                              int *devices_found)
{
    int n = 0;
    ZERO_TRY(plugin->count(&n));
    for (int i = 0; i < choice->n; i++)
        ZERO_INVALID_IF(
            choice->numbers[i] >= n,
            "there is no device %s:%d: this machine has %d, numbered from 0 (zero "
            "info lists them)",
            choice->name, choice->numbers[i], n);
    *devices_found = n;
    return ZERO_OK;
}
