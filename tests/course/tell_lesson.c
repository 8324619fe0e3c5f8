/* tell_lesson RANKS [options of zero train]: the steps of a lesson's machine, one line
 * each with all digits; the digest; and with TELL=1 in the environment the narration of
 * the first step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "cli/options.h"
#include "course/machine.h"
#include "course/narrate.h"

static zero_status narrate(const zero_lesson_machine *m)
{
    zero_narrator n = {&zero_lesson_show(m)->model, zero_lesson_show(m)->corpus.tokenizer};
    const char *tell = getenv("TELL");
    if (!tell || strcmp(tell, "1") != 0) return ZERO_OK;
    json_t *step = zero_narrate_tree(&n, &zero_lesson_show(m)->tale);
    zero_status st = zero_narrate_step(step, stdout);
    json_decref(step);
    return st;
}

static zero_status tell(zero_lesson_machine *m)
{
    char digest[33];
    for (int64_t step = 1; step <= zero_lesson_show(m)->config.steps; step++) {
        zero_lesson_step s;
        ZERO_TRY(zero_lesson_walk(m, &s));
        if (step == 1) ZERO_TRY(narrate(m));
        printf("%lld %.17g %.17g %.17g %d\n", (long long)s.step, s.loss, s.grad_norm,
               s.loss_scale, s.skipped);
    }
    ZERO_TRY(zero_lesson_digest(m, digest));
    printf("%s\n", digest);
    return ZERO_OK;
}

static zero_status run(int argc, char **argv)
{
    zero_config config;
    zero_options given;
    zero_lesson_machine *m;
    ZERO_TRY(zero_options_read(&zero_command_train, argc - 2, argv + 2, &config, &given));
    ZERO_TRY(zero_lesson_open(&config, atoi(argv[1]), &m));
    zero_status st = tell(m);
    zero_lesson_close(&m);
    zero_options_destroy(&given);
    return st;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    if (run(argc, argv) == ZERO_OK) return 0;
    fprintf(stderr, "%s\n", zero_last_error());
    return 1;
}
