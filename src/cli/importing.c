#include "cli/importing.h"

#include <string.h>

#include "base/fail.h"
#include "data/tokenizer_find.h"

/* Without a tokenizer beside the weights the user's word is all there is. Merges and characters
 * that are learnt now are never those of a model that exists; bytes are, if there are 256. */
static zero_status check_name(const zero_importing *im, const zero_config *c)
{
    bool is_bytes = c->tokenizer && strcmp(c->tokenizer, "byte") == 0;
    if (im->tokenizer[0] || !c->tokenizer || !zero_tokenizer_is_name(c->tokenizer))
        return ZERO_OK;
    if (is_bytes && im->shape.vocab == ZERO_VOCAB_BYTES) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--tokenizer %s: its tokens mean nothing to the weights of --init-from "
        "%.400s, beside which there is no tokenizer (" ZERO_TOKENIZER_FILES
        "): put the model's there, or give it as --tokenizer FILE",
        c->tokenizer, c->init_from);
}

zero_status zero_importing_open(zero_config *config, bool has_model,
                                zero_importing *importing)
{
    zero_importing im = {.tokenizer = ""};
    ZERO_TRY(zero_hugging_face_find(config->init_from, &im.found));
    ZERO_TRY(zero_hugging_face_find_shape(config->init_from, &im.shape));
    ZERO_TRY(zero_config_take_shape(config, &im.shape, has_model));
    if (!zero_tokenizer_beside(im.found.folder, im.tokenizer)) im.tokenizer[0] = '\0';
    ZERO_TRY(check_name(&im, config));
    *importing = im;
    return ZERO_OK;
}

zero_status zero_importing_compare(const zero_importing *importing,
                                   const zero_config *config, const zero_corpus *corpus)
{
    zero_tokenizer found;
    int32_t token;
    if (!corpus->tokenizer || !config->tokenizer || !importing->tokenizer[0])
        return ZERO_OK;
    ZERO_TRY(zero_tokenizer_open(importing->tokenizer, &found));
    bool same = zero_tokenizer_same_texts(&found, corpus->tokenizer, &token);
    zero_tokenizer_destroy(&found);
    if (same) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--tokenizer %.400s is not the model's: %.400s, beside the weights, has "
        "another text for token %d; leave --tokenizer out",
        config->tokenizer, importing->tokenizer, (int)token);
}
