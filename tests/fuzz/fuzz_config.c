#include "cli/config_file.h"
#include "cli/run_options.h"
#include "fuzz.h"

/* Whatever a file says, checking the resulting configuration does not crash. */
static void complete(zero_config config)
{
    zero_shape shape;
    for (int n_ranks = 1; n_ranks <= 3; n_ranks++) {
        zero_config tried = config;
        zero_status st = zero_config_complete(&tried, n_ranks);
        if (st == ZERO_OK) st = zero_config_check(&tried);
        if (st == ZERO_OK) st = zero_config_shape(&tried, 256, &shape);
        fuzz_check_refusal(st);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *file = NULL;
    zero_status st = zero_config_file_parse("f.json", data, size, &file);
    FUZZ_LAW(st == ZERO_OK || st == ZERO_ERR_INVALID);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    for (int overridden = 0; overridden < 2; overridden++) {
        bool set[ZERO_OPTIONS_MOST] = {false}, mask[ZERO_OPTIONS_MOST];
        zero_config config;
        for (int i = 0; i < ZERO_OPTIONS_MOST; i++) mask[i] = overridden == 1;
        zero_options_reset(&zero_command_train, &config);
        st =
            zero_config_file_store("f.json", file, &zero_command_train, mask, &config, set);
        for (int i = 0; i < ZERO_OPTIONS_MOST; i++) FUZZ_LAW(!(set[i] && mask[i]));
        fuzz_check_refusal(st);
        if (st == ZERO_OK) complete(config);
    }
    json_decref(file);
    return 0;
}
