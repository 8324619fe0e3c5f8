/* The index of a model in several files: its names are files beside it, each listed once. */
#include <string.h>

#include "fuzz.h"
#include "io/safetensors.h"

static void check_files(const zero_safetensors_index *index)
{
    FUZZ_LAW(index->n_files >= 1 && index->n_files <= ZERO_SAFETENSORS_FILES);
    for (int i = 0; i < index->n_files; i++) {
        const char *name = index->files[i];
        FUZZ_LAW(name[0] != '\0' && strlen(name) <= ZERO_SAFETENSORS_FILE);
        FUZZ_LAW(!strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
        FUZZ_LAW(i == 0 || strcmp(index->files[i - 1], name) < 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zero_bytes text = {.bytes = (unsigned char *)data, .len = size};
    zero_safetensors_index index = {0};
    zero_safetensors none = {0};
    zero_status st = zero_safetensors_read_index("f", &text, &index);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    check_files(&index);
    FUZZ_LAW(zero_safetensors_check_index("f", &index, &none) == ZERO_ERR_FORMAT);
    fuzz_check_refusal(ZERO_ERR_FORMAT);
    zero_safetensors_destroy_index(&index);
    return 0;
}
