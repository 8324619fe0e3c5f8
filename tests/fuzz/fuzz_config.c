#include "cli/config_file.h"
#include "cli/option_table.h"
#include "cli/option_value.h"
#include "fuzz.h"

/* As zero_options_parse() does before it looks at a file. */
static zero_config defaults(void)
{
    zero_config config = {0};
    int n;
    const zero_option *table = zero_option_table(&n);
    for (int i = 0; i < n; i++) zero_option_reset(&table[i], &config);
    return config;
}

/* Whatever a file says, checking the resulting configuration does not crash. */
static void complete(zero_config config)
{
    zero_gpt2_shape shape;
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
        uint64_t set = 0, mask = overridden ? UINT64_MAX : 0;
        zero_config config = defaults();
        st = zero_config_file_apply("f.json", file, mask, &config, &set);
        FUZZ_LAW((set & mask) == 0);
        fuzz_check_refusal(st);
        if (st == ZERO_OK) complete(config);
    }
    json_decref(file);
    return 0;
}
