/* Token files, and the tokenizer that may lie beside them. */

#include "data/opening.h"

/* files that are for training or for validation by their name.
 *
 *   nanoGPT   train.bin                 val.bin
 *   llm.c     X_train.bin               X_val.bin
 *             X_train_000001.bin        X_val_000000.bin */

/* The name without its folder, `.bin` and a number at its end ends in `word`, which is all
 * of it or follows a '_'. */
static bool is_for(const char *path, const char *word)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t len = strlen(name), n_word = strlen(word), digits = 0;
    if (len < 4 || !zero_same_text(name + len - 4, ".bin")) return false;
    len -= 4;
    while (digits < len && strchr("0123456789", name[len - 1 - digits])) digits++;
    if (digits > 0 && digits < len && name[len - 1 - digits] == '_') len -= digits + 1;
    if (len < n_word || memcmp(name + len - n_word, word, n_word) != 0) return false;
    return len == n_word || name[len - n_word - 1] == '_';
}

/* If names say of at least one file that it is for training, and of another that it is for
 * validation, moves those for validation to the end, else changes nothing. Returns the
 * number of files for training. */
static int64_t part_files(zero_files *files)
{
    char **paths = files->paths;
    int64_t n_train = 0, n_validation = 0, n_moved = 0;
    for (int64_t i = 0; i < files->n; i++) {
        n_train += is_for(paths[i], "train");
        n_validation += is_for(paths[i], "val");
    }
    if (n_train == 0 || n_validation == 0) return files->n;
    /* All others move before them, each in its order. */
    for (int64_t i = 0; i < files->n; i++) {
        char *path = paths[i];
        if (is_for(path, "val")) continue;
        memmove(paths + n_moved + 1, paths + n_moved,
                (size_t)(i - n_moved) * sizeof *paths);
        paths[n_moved++] = path;
    }
    return n_moved;
}

static void leave_out_tokenizer(zero_opening *o, const char *name, zero_corpus *corpus,
                                const char *why)
{
    zero_listener_tell(&o->from->listener,
                       "%.300s is not kept: %s; the run goes on with tokens alone, and its "
                       "samples are ids",
                       name, why);
    zero_tokenizer_destroy(corpus->tokenizer);
    free(corpus->tokenizer);
    corpus->tokenizer = NULL;
    corpus->vocab = 0;
}

/* A tokenizer beside tokens is for samples and checkpoints: --tokenizer's, or the one
 * beside imported weights, if it can be read and its tokens are among the model's. */
static zero_status keep_tokenizer(zero_opening *o, zero_corpus *corpus)
{
    const zero_corpus_source *r = o->from;
    const char *name = r->tokenizer ? r->tokenizer : r->imported;
    if (!name || !name[0]) return ZERO_OK;
    ZERO_INVALID_IF(
        zero_tokenizer_is_name(name),
        "%.400s: this %s file holds tokens already, so --tokenizer %s cannot be "
        "honoured; leave it out, or give the tokens' own as --tokenizer PATH",
        o->data.files.paths[0], zero_tokens_name(o->data.format), name);
    zero_status st = zero_opening_learn(o, name, corpus);
    if (!r->tokenizer && st == ZERO_ERR_UNSUPPORTED) {
        leave_out_tokenizer(o, name, corpus, zero_last_error());
        return ZERO_OK;
    }
    ZERO_TRY(st);
    if (!r->tokenizer && corpus->vocab > r->vocab && r->vocab > 0) {
        leave_out_tokenizer(o, name, corpus, "it has more tokens than the model");
        return ZERO_OK;
    }
    return zero_opening_widen(o, corpus);
}

zero_status zero_opening_take_tokens(zero_opening *o, zero_corpus *corpus)
{
    const zero_corpus_source *r = o->from;
    const zero_tokens_format format = o->data.format;
    const char *path = o->data.files.paths[0];
    char whose[64];
    int64_t n_train;
    /* Validation files among those of --data follow the training files. */
    zero_files *files = &o->data.files;
    n_train = part_files(files);
    o->read.is_split = n_train < files->n;
    ZERO_INVALID_IF(
        o->read.is_split && o->from->validation,
        "--data %s has validation files by their names, as %s, and --val-data is "
        "given; leave --val-data out, or name the training files alone",
        o->from->data, files->paths[n_train]);
    ZERO_TRY(zero_opening_begin(o, format, o->data.bytes, true));
    ZERO_TRY(keep_tokenizer(o, corpus));
    const zero_tokenizer *tok = corpus->tokenizer;
    ZERO_TRY(
        zero_tokens_vocab(format, path, tok ? corpus->vocab : r->vocab, &corpus->vocab));
    zero_tokens_limit limit = {tok ? tok->vocab : corpus->vocab, NULL};
    if (tok) {
        zero_print(whose, "the tokenizer %s", tok->name);
        limit.whose = whose;
    }
    zero_material *m = &o->read;
    ZERO_TRY(zero_material_read(m, &o->data, 0, n_train, limit));
    m->n_train = m->all.len;
    ZERO_FORMAT_IF(m->n_train == 0,
                   "%s: nothing to train on: no tokens in %" PRId64 " file(s)",
                   o->from->data, n_train);
    ZERO_TRY(zero_material_read(m, &o->data, n_train, o->data.files.n, limit));
    ZERO_TRY(zero_opening_read_validation(o, limit));
    zero_opening_adopt(o, &o->read, zero_tokens_width(format), corpus);
    zero_print(
        corpus->description, "%.100s, %" PRId64 " tokens (%s%s%s), vocabulary %" PRId64,
        r->data, corpus->has_validation ? corpus->n_train : corpus->n_tokens,
        zero_tokens_name(format), tok ? ", " : "", tok ? tok->name : "", corpus->vocab);
    return ZERO_OK;
}
