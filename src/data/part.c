#include "data/part.h"

#include <stdbool.h>
#include <string.h>

/* The name without its folder, `.bin` and a number at its end ends in `word`, which is all
 * of it or follows a '_'. */
static bool is_for(const char *path, const char *word)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t len = strlen(name), n_word = strlen(word), digits = 0;
    if (len < 4 || strcmp(name + len - 4, ".bin") != 0) return false;
    len -= 4;
    while (digits < len && strchr("0123456789", name[len - 1 - digits])) digits++;
    if (digits > 0 && digits < len && name[len - 1 - digits] == '_') len -= digits + 1;
    if (len < n_word || memcmp(name + len - n_word, word, n_word) != 0) return false;
    return len == n_word || name[len - n_word - 1] == '_';
}

int64_t zero_part_files(zero_files *files)
{
    int64_t n_train = 0, n_validation = 0;
    for (int64_t i = 0; i < files->n; i++) {
        n_train += is_for(files->paths[i], "train");
        n_validation += is_for(files->paths[i], "val");
    }
    if (n_train == 0 || n_validation == 0) return files->n;
    /* Moved in their order, they keep it. */
    for (int64_t i = 0, left = files->n; left > 0; left--) {
        if (is_for(files->paths[i], "val")) {
            char *path = files->paths[i];
            memmove(files->paths + i, files->paths + i + 1,
                    (size_t)(files->n - i - 1) * sizeof *files->paths);
            files->paths[files->n - 1] = path;
        } else
            i++;
    }
    return files->n - n_validation;
}
