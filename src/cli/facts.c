#include "cli/facts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "cli/words.h"

zero_status zero_facts_init(zero_facts *f, const zero_options *given,
                            const zero_config *config)
{
    zero_bytes text = {0};
    struct timespec now;
    struct tm utc;
    *f = (zero_facts){.start = zero_clock_seconds()};
    clock_gettime(CLOCK_REALTIME, &now);
    f->run = INT64_C(1000000000) * now.tv_sec + now.tv_nsec;
    if (gmtime_r(&now.tv_sec, &utc))
        strftime(f->started, sizeof f->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    zero_status st =
        zero_words_command(zero_command_train.name, given->argc, given->argv, &text);
    f->command = (char *)text.bytes;
    if (st == ZERO_OK) f->options = zero_run_options_chosen(given, config);
    if (st == ZERO_OK && !f->options)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for the options");
    if (st != ZERO_OK) zero_facts_destroy(f);
    return st;
}

void zero_facts_destroy(zero_facts *f)
{
    json_decref(f->options);
    free(f->command);
    *f = (zero_facts){0};
}
