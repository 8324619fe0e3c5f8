#include <stdlib.h>
#include <string.h>

#include "cli/config_file.h"
#include "cli/deepspeed.h"
#include "cli/options.h"
#include "fuzz.h"
#include "train/config.h"

/* What is accepted is a list of options of zero train, with values of their types. */
static void store(const zero_deepspeed *found)
{
    bool set[ZERO_OPTIONS_MOST] = {false};
    const bool overridden[ZERO_OPTIONS_MOST] = {false};
    zero_config config;
    const char *key;
    json_t *value;
    json_object_foreach(found->options, key, value)
    {
        FUZZ_LAW(zero_command_find_option(&zero_command_train, key) >= 0);
        FUZZ_LAW(!json_is_object(value) && !json_is_array(value) && !json_is_null(value));
    }
    zero_options_reset(&zero_command_train, &config);
    zero_status st = zero_config_file_store("f.json", found->options, &zero_command_train,
                                            overridden, &config, set);
    FUZZ_LAW(st == ZERO_OK || st == ZERO_ERR_INVALID);
    fuzz_check_refusal(st);
}

/* Notes are lines without control characters. */
static void check_notes(const zero_bytes *notes)
{
    for (size_t i = 0; i < notes->len; i++)
        FUZZ_LAW(notes->bytes[i] == '\n' ||
                 (notes->bytes[i] >= 0x20 && notes->bytes[i] != 0x7f));
    FUZZ_LAW(notes->len == 0 || notes->bytes[notes->len - 1] == '\n');
}

/* The bytes without what Hjson has beyond JSON: as many, with the same line ends. The caller's (free). */
static uint8_t *blanked(const uint8_t *data, size_t size)
{
    uint8_t *text = malloc(size > 0 ? size : 1);
    FUZZ_LAW(text != NULL);
    memcpy(text, data, size);
    zero_hjson_blank(text, size);
    for (size_t i = 0; i < size; i++)
        FUZZ_LAW(text[i] == data[i] || (text[i] == ' ' && data[i] != '\n'));
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *file = NULL;
    uint8_t *text = blanked(data, size);
    zero_status st = zero_config_file_parse("f.json", text, size, &file);
    free(text);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    for (int64_t n_ranks = 0; n_ranks <= 3; n_ranks++) {
        zero_deepspeed found;
        st = zero_deepspeed_translate("f.json", file, n_ranks, &found);
        FUZZ_LAW(st == ZERO_OK || st == ZERO_ERR_INVALID);
        fuzz_check_refusal(st);
        if (st != ZERO_OK) continue;
        check_notes(&found.notes);
        st = zero_deepspeed_check("f.json", &found);
        FUZZ_LAW((st == ZERO_OK) == (found.n_refused == 0));
        fuzz_check_refusal(st);
        store(&found);
        zero_deepspeed_destroy(&found);
    }
    json_decref(file);
    return 0;
}
