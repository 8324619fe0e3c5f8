/* replay.c - reads every file of a directory once: replay_json DIRECTORY */
#include <string.h>

#include "fuzz.h"
#include "io/bytes.h"
#include "io/file_list.h"

static int replay(const zero_files *files)
{
    for (int64_t i = 0; i < files->n; i++) {
        zero_bytes text = {0};
        if (zero_bytes_read(&text, files->paths[i]) != ZERO_OK) return -1;
        /* Memory that ends with the file, as libFuzzer's does. */
        uint8_t *exact = malloc(text.len);
        if (text.len > 0 && !exact) return -1;
        if (text.len > 0) memcpy(exact, text.bytes, text.len);
        fprintf(stderr, "%s\n", files->paths[i]);
        LLVMFuzzerTestOneInput(exact, text.len);
        free(exact);
        zero_bytes_destroy(&text);
    }
    return 0;
}

int main(int argc, char **argv)
{
    zero_files files = {0};
    if (argc != 2 || zero_files_list("corpus", "", argv[1], &files) != ZERO_OK ||
        replay(&files) != 0) {
        fprintf(stderr, "%s DIRECTORY: %s\n", argv[0], zero_last_error());
        return 1;
    }
    zero_files_destroy(&files);
    return 0;
}
