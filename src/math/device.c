#include "math/device.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"

/* A CPU's chunk has enough rows for a product, and is small next to activations. A GPU's rows are a
 * multiple of 128 bytes apart, also rows of 16 bits. */
#define CPU_CHUNK .logits = {.rows = 256, .step = 1}
#define GPU_CHUNK .logits = {.rows = 4096, .step = 64}

/* Devices without a backend and without a plugin are the host. */
static const struct {
    const char *name;
    const zero_backend *backend;
    bool is_plugin;
    bool halves_rows;
    zero_logits_chunk logits;
} devices[] = {
    {"cpu", NULL, false, true, CPU_CHUNK},
    {"cuda", NULL, true, true, GPU_CHUNK},
#ifdef ZERO_HAVE_FAKE
    {"fake", &zero_backend_fake, false, true, CPU_CHUNK},
#endif
#ifdef ZERO_HAVE_EMULATED
    {"cuda-emulated", NULL, true, true, GPU_CHUNK},
#endif
};
#define DEVICES ((int)(sizeof devices / sizeof devices[0]))

const char *zero_device_name_at(int i)
{
    return i < DEVICES ? devices[i].name : NULL;
}

/* ---- what was asked for ---- */

/* The index of a device, whose name ends at a colon or with the text; -1 if no device has it. */
static int index_of(const char *text)
{
    const size_t length = strcspn(text, ":");
    for (int i = 0; i < DEVICES; i++)
        if (strlen(devices[i].name) == length && memcmp(devices[i].name, text, length) == 0)
            return i;
    return -1;
}

static zero_status refuse_name(const char *where)
{
    char names[128];
    size_t at = 0;
    for (int i = 0; i < DEVICES && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i > 0 ? "|" : "",
                               devices[i].name);
    return zero_fail(ZERO_ERR_INVALID,
                     "%s: expected one of %s, or some devices of a machine, as in cuda:0,2",
                     where, names);
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
        if (number < 0 || (*text != '\0' && !goes_on))
            return zero_fail(ZERO_ERR_INVALID,
                             "%s: expected numbers with commas between them after the "
                             "colon, as in %s:0,2",
                             where, c->name);
        if (has_number(c, number))
            return zero_fail(ZERO_ERR_INVALID,
                             "%s: device %d is given twice; several ranks may share a "
                             "device, but it is named once",
                             where, number);
        if (c->n == ZERO_DEVICE_NUMBERS)
            return zero_fail(ZERO_ERR_INVALID, "%s: expected at most %d devices", where,
                             ZERO_DEVICE_NUMBERS);
        c->numbers[c->n++] = number;
        text++;
    }
    return ZERO_OK;
}

zero_status zero_device_read(const char *text, const char *where,
                             zero_device_choice *choice)
{
    const int i = index_of(text);
    const size_t length = strcspn(text, ":");
    if (i < 0) return refuse_name(where);
    zero_device_choice c = {.name = devices[i].name};
    if (text[length] == ':' && !devices[i].is_plugin)
        return zero_fail(ZERO_ERR_INVALID, "%s: %s has no numbers; leave out '%s'", where,
                         c.name, text + length);
    if (text[length] == ':') ZERO_TRY(read_numbers(text + length + 1, where, &c));
    *choice = c;
    return ZERO_OK;
}

bool zero_device_halves_rows(const char *name)
{
    const int i = index_of(name);
    return i >= 0 && devices[i].halves_rows;
}

zero_logits_chunk zero_device_logits(const char *name)
{
    const int i = index_of(name);
    return devices[i < 0 ? 0 : i].logits;
}

bool zero_device_is_host(const char *name)
{
    return index_of(name) == 0;
}

/* ---- what there is ---- */

zero_status zero_device_find(const char *name, const zero_backend **found,
                             const zero_plugin **plugin)
{
    char where[128];
    zero_device_choice choice;
    const zero_plugin *opened = NULL;
    snprintf(where, sizeof where, "device '%s'", name);
    ZERO_TRY(zero_device_read(name, where, &choice));
    const int i = index_of(name);
    if (devices[i].is_plugin) ZERO_TRY(zero_plugin_open(choice.name, &opened));
    *found = opened ? opened->backend : devices[i].backend;
    *plugin = opened;
    return ZERO_OK;
}

zero_status zero_device_count(const zero_plugin *plugin, const zero_device_choice *choice,
                              int *devices_found)
{
    int n = 0;
    ZERO_TRY(plugin->count(&n));
    for (int i = 0; i < choice->n; i++)
        if (choice->numbers[i] >= n)
            return zero_fail(ZERO_ERR_INVALID,
                             "there is no device %s:%d: this machine has %d, numbered "
                             "from 0 (zero info lists them)",
                             choice->name, choice->numbers[i], n);
    *devices_found = n;
    return ZERO_OK;
}
