#include "cli/overwriting.h"

#include <limits.h>
#include <sys/stat.h>

#include "data/corpus.h"
#include "io/file_list.h"

typedef struct {
    const char *option, *path;
} named_file;

static zero_status refuse(named_file written, const char *option)
{
    return zero_fail(
        ZERO_ERR_INVALID,
        "%s %.300s is a file of %s as well, which would be overwritten: give another name",
        written.option, written.path, option);
}

/* A file, a directory or a pattern that is read, and what is written. */
static zero_status compare(named_file written, named_file read)
{
    if (!written.path || !read.path) return ZERO_OK;
    if (zero_files_have(read.path, written.path)) return refuse(written, read.option);
    ZERO_INVALID_IF(zero_files_would_have(read.path, written.path),
                    "%s %.300s would be read as %s the next time: give another name",
                    written.option, written.path, read.option);
    return ZERO_OK;
}

/* ---- files of given names in a directory ---- */

static zero_status compare_names(named_file written, const char *option, const char *folder,
                                 const char *const *names)
{
    char pattern[2 * PATH_MAX], *to;
    for (; *names; names++) {
        /* Only the names are a pattern. */
        const char *from = folder;
        for (to = pattern; *from && to < pattern + PATH_MAX; *to++ = *from++)
            if (strchr("*?[\\", *from)) *to++ = '\\';
        snprintf(to, PATH_MAX - 2, "/%.100s", *names);
        ZERO_TRY(compare(written, (named_file){option, pattern}));
    }
    return ZERO_OK;
}

static void parent_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
}

/* A model or a tokenizer, given by its folder or by one of its files. */
static zero_status compare_model(named_file written, named_file read)
{
    static const char *const names[] = {"*.safetensors",     "*.safetensors.index.json",
                                        "config.json",       "generation_config.json",
                                        "tokenizer*.json",   "special_tokens_map.json",
                                        "added_tokens.json", "vocab.json",
                                        "merges.txt",        "encoder.json",
                                        "vocab.bpe",         NULL};
    char parent[PATH_MAX];
    struct stat info;
    if (!written.path || !read.path) return ZERO_OK;
    if (zero_file_is_same(written.path, read.path)) return refuse(written, read.option);
    bool is_folder = stat(read.path, &info) == 0 && S_ISDIR(info.st_mode);
    parent_of(read.path, parent);
    return compare_names(written, read.option, is_folder ? read.path : parent, names);
}

static const char *const saved[] = {"step-[0-9]*", ".lock", NULL};

/* ---- a run ---- */

static const char *files_of(const char *spec)
{
    return spec && zero_corpus_is_files(spec) ? spec : NULL;
}

zero_status zero_overwriting_check(const zero_config *c, const char *study)
{
    const named_file written[] = {{"--metrics", c->metrics},
                                  {"--trace", c->trace},
                                  {"--record", c->record},
                                  {"--checkpoint", c->checkpoint},
                                  {"--out", study}};
    for (int i = 0; i < ZERO_COUNT(written); i++) {
        ZERO_TRY(compare(written[i], (named_file){"--data", files_of(c->data)}));
        ZERO_TRY(compare(written[i], (named_file){"--val-data", files_of(c->val_data)}));
        ZERO_TRY(compare_model(
            written[i], (named_file){"--tokenizer",
                                     c->tokenizer && !zero_tokenizer_is_name(c->tokenizer)
                                         ? c->tokenizer
                                         : NULL}));
        ZERO_TRY(compare_model(written[i], (named_file){"--init-from", c->init_from}));
        bool is_file = i < 3; /* the others are directories */
        if (is_file && written[i].path && c->checkpoint)
            ZERO_TRY(compare_names(written[i], "--checkpoint", c->checkpoint, saved));
    }
    for (int i = 1; i < 3; i++)
        for (int k = 0; k < i; k++)
            if (written[i].path && written[k].path &&
                zero_file_is_same(written[i].path, written[k].path))
                return refuse(written[i], written[k].option);
    return ZERO_OK;
}

/* ---- an export ---- */

zero_status zero_overwriting_check_export(const char *to, const char *checkpoint)
{
    const named_file written = {"--to", to};
    char parent[PATH_MAX];
    ZERO_TRY(compare(written, (named_file){"the checkpoint", checkpoint}));
    parent_of(checkpoint, parent);
    return compare_names(written, "a checkpoint", parent, saved);
}
