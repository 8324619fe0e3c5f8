#include "cli/importing.h"

#include "base/hash.h"

#include "checkpoint/hugging_face_copies.h"
#include "checkpoint/list.h"
#include "data/tokenizer_find.h"

/* Without a tokenizer beside the weights the user's word is all there is. Merges and
 * characters that are learnt now are never those of a model that exists; bytes are, if
 * there are 256. */
static zero_status check_name(const zero_importing *im, const zero_config *c)
{
    bool is_bytes = c->tokenizer && zero_same_text(c->tokenizer, "byte");
    if (im->tokenizer[0] || !c->tokenizer || !zero_tokenizer_is_name(c->tokenizer))
        return ZERO_OK;
    if (is_bytes && im->shape.vocab == ZERO_VOCAB_BYTES) return ZERO_OK;
    char named[ZERO_TOKENIZER_NAMED];
    zero_tokenizer_name_stranger(c->init_from, named);
    return zero_fail(
        ZERO_ERR_INVALID,
        "--tokenizer %s: its tokens mean nothing to the weights of --init-from %.400s, "
        "beside which there is no tokenizer (" ZERO_TOKENIZER_FILES
        "): put the model's there, or give it as --tokenizer FILE%s",
        c->tokenizer, c->init_from, named);
}

zero_status zero_importing_open(zero_config *config, bool has_model,
                                zero_importing *importing)
{
    zero_importing im = {.tokenizer = ""};
    zero_status st = zero_hugging_face_find(config->init_from, &im.found);
    if (st == ZERO_OK) st = zero_hugging_face_find_shape(config->init_from, &im.shape);
    if (st != ZERO_OK) {
        /* A checkpoint has no such file, and two ways to continue with it. */
        char found[ZERO_STORAGE_PATH + ZERO_CHECKPOINT_NAME];
        zero_failure failure = zero_failure_keep(st);
        if (st != ZERO_ERR_IO ||
            zero_checkpoint_find(config->init_from, found, sizeof found) != ZERO_OK)
            return zero_failure_restore(&failure);
        return zero_fail(ZERO_ERR_INVALID,
                         "--init-from %.300s holds a checkpoint of zero train: --resume "
                         "--checkpoint DIR continues it, with --new-data on other data; "
                         "for its weights alone, without their moments, give --init-from "
                         "what zero checkpoint export %.300s --to OUT makes",
                         config->init_from, config->init_from);
    }
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
    ZERO_INVALID_IF(!same,
                    "--tokenizer %.400s is not the model's: %.400s, beside the weights, "
                    "has another text for token %d; leave --tokenizer out",
                    config->tokenizer, importing->tokenizer, (int)token);
    return ZERO_OK;
}

/* ---- what ranks have read ---- */

zero_status zero_importing_compare_shapes(zero_comm *world, const char *path,
                                          const zero_shape *shape)
{
    double numbers[ZERO_SHAPE_FIELDS];
    bool same;
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++)
        numbers[i] = zero_shape_get(shape, &zero_shape_fields[i]);
    const char *kind = zero_architecture_name(shape->kind);
    const uint64_t hash =
        XXH3_64bits_withSeed(numbers, sizeof numbers, XXH3_64bits(kind, strlen(kind)));
    ZERO_TRY(zero_comm_compare_with_root(world, hash, &same));
    zero_status st = ZERO_OK;
    if (!same)
        st = zero_fail(ZERO_ERR_FORMAT,
                       "%s describes another model than rank 0's (%" PRId64
                       " heads, %" PRId64 " positions): every node needs the same files",
                       path, shape->heads, shape->seq);
    return zero_agree(world, st);
}

zero_status zero_importing_check_weights(zero_comm *world, zero_hugging_face *file)
{
    char zeros[ZERO_HUGGING_FACE_TEXT];
    ZERO_TRY(zero_hugging_face_compare_copies(file, world));
    ZERO_TRY(zero_hugging_face_tell_zeros(file, world, zeros));
    if (zero_comm_is_root(world) && zeros[0]) fprintf(stderr, "zero: warning: %s\n", zeros);
    return ZERO_OK;
}

/* ---- what checkpoints keep ---- */

/* The model's one or three rates of dropout, in words: "0.1", or "0.1, 0, 0.1". */
static void read_dropout(const json_t *config, char text[64])
{
    static const char *const keys[] = {"embd_pdrop", "attn_pdrop", "resid_pdrop"};
    const json_t *only = json_object_get(config, "attention_dropout");
    double rates[3];
    text[0] = '\0';
    for (int i = 0; i < 3; i++) {
        const json_t *rate = only ? only : json_object_get(config, keys[i]);
        if (!json_is_number(rate)) return;
        rates[i] = json_number_value(rate);
    }
    if (rates[0] == rates[1] && rates[1] == rates[2])
        snprintf(text, 64, "%g", rates[0]);
    else
        snprintf(text, 64, "%g, %g, %g", rates[0], rates[1], rates[2]);
}

zero_status zero_importing_keep(zero_importing *im, const zero_config *config,
                                const zero_corpus *corpus, const zero_shape *model)
{
    json_auto_t *files = NULL;
    zero_ends ends; /* found again where texts are generated; a mistake is found here */
    const bool has_model = config->init_from;
    if (!has_model && !(corpus->tokenizer && config->tokenizer &&
                        !zero_tokenizer_is_name(config->tokenizer)))
        return ZERO_OK;
    if (!has_model) ZERO_TRY(zero_hugging_face_find(config->tokenizer, &im->found));
    ZERO_TRY(zero_hugging_face_keep(&im->found, has_model, &im->kept));
    ZERO_TRY(zero_hugging_face_ends(im->kept, corpus->tokenizer, model, &ends));
    ZERO_TRY(zero_hugging_face_parse_kept(im->kept, ZERO_HUGGING_FACE_CONFIG, &files));
    char theirs[64], ours[32];
    read_dropout(files, theirs);
    zero_print(ours, "%g", config->dropout);
    im->note[0] = '\0';
    if (theirs[0] && !zero_same_text(ours, theirs))
        zero_print(im->note, "dropout %s, where its config.json has %s", ours, theirs);
    size_t n = strlen(im->note);
    if ((model->kind->has & ZERO_HAS_POSITIONS) && model->seq < im->shape.seq)
        snprintf(im->note + n, sizeof im->note - n,
                 "%sthe first %" PRId64 " of its %" PRId64 " positions", n > 0 ? "; " : "",
                 model->seq, im->shape.seq);
    return ZERO_OK;
}

zero_status zero_importing_find_ends(zero_comm *world, const json_t *kept,
                                     const zero_tokenizer *tokenizer,
                                     const zero_shape *shape, zero_ends *ends)
{
    ZERO_TRY(zero_agree(world, zero_hugging_face_ends(kept, tokenizer, shape, ends)));
    return zero_comm_broadcast(world, 0, ends, sizeof *ends);
}

void zero_importing_close(zero_importing *im)
{
    json_decref(im->kept);
    *im = (zero_importing){.tokenizer = ""};
}
