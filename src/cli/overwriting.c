#include "cli/overwriting.h"

#include <stddef.h>

#include "base/fail.h"
#include "io/whole_file.h"

typedef struct {
    const char *option, *path;
} named_file;

static zero_status compare(named_file written, named_file other)
{
    if (!written.path || !other.path || !zero_whole_file_is_same(written.path, other.path))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s %.300s is the file of %s as well, which would be overwritten: "
                     "give another name",
                     written.option, written.path, other.option);
}

zero_status zero_overwriting_check(const zero_config *c)
{
    const named_file trace = {"--trace", c->trace}, metrics = {"--metrics", c->metrics};
    const named_file read[] = {{"--data", c->data},
                               {"--val-data", c->val_data},
                               {"--tokenizer", c->tokenizer},
                               {"--init-from", c->init_from}};
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++) {
        ZERO_TRY(compare(trace, read[i]));
        ZERO_TRY(compare(metrics, read[i]));
    }
    return compare(trace, metrics);
}
