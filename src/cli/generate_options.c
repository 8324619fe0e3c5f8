#include "cli/generate_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/type.h"
#include "cli/machine.h"
#include "math/backends.h"
#include "math/device.h"
#include "nn/share.h"
#include "sharding/plan_input.h"
#include "sharding/stages.h"

#define FIELDS zero_generate_options
static const zero_option rows[] = {
#include "cli/options/generate.rows"
};

const zero_option_table zero_generate_table = {.rows = rows};

zero_status zero_generate_options_ids(const char *text, int32_t *ids, int64_t *n)
{
    *n = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        long id = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
        if (id < 0 || id > INT32_MAX || errno || (*end != ',' && *end != '\0'))
            return zero_fail(ZERO_ERR_INVALID,
                             "--prompt-tokens %.80s: expected ids with commas between "
                             "them, as in 1,2,3; found '%.20s'",
                             text, at);
        if (ids) ids[*n] = (int32_t)id;
        ++*n;
        at = end;
        if (*at == '\0') return ZERO_OK;
    }
}

zero_status zero_generate_options_check(void *options, const zero_options *given)
{
    zero_generate_options *o = options;
    int64_t n;
    o->config.backend = zero_backend_name_at(0);
    if (given->n_operands != 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "expected one checkpoint, found %.200s and %.200s; quote a prompt "
                         "of several words",
                         given->operands[0], given->operands[1]);
    o->checkpoint = given->operands[0];
    bool has_device = strcmp(o->config.device, zero_device_name_at(0)) != 0;
    zero_tp_take_defaults(&o->config.tp, false, 0);
    if (has_device && o->config.tp.slices != 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "--tp %" PRId64 " --tp-slices %" PRId64
                         " with --device %s: a device does not yet add up what several "
                         "ranks or slices compute; leave one of them out",
                         o->config.tp.ranks, o->config.tp.slices, o->config.device);
    return o->prompt_tokens ? zero_generate_options_ids(o->prompt_tokens, NULL, &n)
                            : ZERO_OK;
}
