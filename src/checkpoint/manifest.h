/* manifest.h - manifest.json, which describes a checkpoint.
 *
 *     step-00000100/
 *         manifest.json                        step, layout, checksums of the files below
 *         tokenizer.json                       if the run had one
 *         shard-00000-of-00003.safetensors     rank 0's part of the state, and so on
 *
 * The manifest is one JSON object, a member per line; its last line is the checksum of all
 * bytes before it. It has the checksum of each shard's header, and a header has those of
 * its extents, so every byte of a checkpoint is covered and no file can replace another.
 * Checksums are XXH3-128, 32 hexadecimal digits.
 *
 * Version 2 is of a shared model (nn/share.h): it has "tp": {"size": T, "slices": S}, and
 * for each tensor, whose shape is the whole one, its cut: "none", "rows" or "cols", and the
 * number of parts side by side. Shards are numbered by the ranks of the job.
 *
 * Version 3 began with another program's weights or tokenizer: "kept" has the files beside
 * them that no computation needs, {"config.json": "...", ...}, as texts. "tp" is there if the model is
 * shared.
 *
 * Version 4 is of another architecture than GPT-2: "shape" has its name and its numbers, in
 * place of "gpt2". "tp" and "kept" are there if the model is shared, and if it began with
 * another program's weights.
 *
 * Version 5 has another optimizer than AdamW: "optimizer" is its name, which says what
 * shards hold beside masters. What versions 2 to 4 add is there if it means something.
 *
 * Version 6 is of a pipeline: it has "pp": {"size": P}, and for each tensor, as the last
 * member, the stage that has it; the rest as in version 5.
 * Nothing here is collective. */
#pragma once

#include "checkpoint/table.h"
#include "io/bytes.h"
#include "io/checksum.h"
#include "io/json_tree.h"
#include "sharding/loss_scale.h"
#include "zero/shape.h"

#define ZERO_MANIFEST_FORMAT "zero checkpoint"
#define ZERO_MANIFEST_VERSION \
    6 /* the newest; a run writes the least that has all of its members */
#define ZERO_MANIFEST_NAME  "manifest.json"
#define ZERO_TOKENIZER_NAME "tokenizer.json"
#define ZERO_MANIFEST_TAIL  51 /* bytes of the last line and the final zero */

typedef struct {
    uint64_t bytes;
    char checksum[ZERO_CHECKSUM]; /* of a shard's header; of other files: of all bytes */
} zero_manifest_file;

typedef struct {
    int64_t step;    /* steps done, with the skipped ones */
    int64_t samples; /* used of the training data's order */
    int64_t updates; /* Adam's t */
    int64_t skipped;
    int64_t seed;
    zero_loss_scale loss_scale; /* of the next step; its type is that of the parameters */
    char digest[ZERO_CHECKSUM]; /* digest.h */
    char data[ZERO_CHECKSUM];   /* of the training tokens; empty: unknown */
    char arithmetic[256];       /* backend and BLAS; with other ones bits may differ */
    bool has_shape, has_tokenizer;
    zero_shape shape;
    zero_manifest_file tokenizer;
    zero_state_table table;     /* owned; has the layout */
    zero_manifest_file *shards; /* [table.layout.n_ranks] owned */
    json_t *options;            /* of the run, as in --config; owned; NULL: none */
    json_t *kept;               /* zero_hugging_face_keep()'s; owned; NULL: nothing */
} zero_manifest;

/* The bytes of the file. ZERO_ERR_NOMEM. */
zero_status zero_manifest_write(const zero_manifest *m, zero_bytes *out);

/* Reads those bytes and checks all of them; the caller destroys *m. ZERO_ERR_FORMAT if it
 * is not a manifest, is newer, or was modified. */
zero_status zero_manifest_parse(const char *path, const void *bytes, size_t len,
                                zero_manifest *m);
void zero_manifest_destroy(zero_manifest *m); /* accepts a zeroed one */

/* The last line of a manifest whose other lines are bytes[len]. */
void zero_manifest_tail(const void *bytes, size_t len, char tail[ZERO_MANIFEST_TAIL]);

/* "shard-00000-of-00003.safetensors" */
void zero_shard_name(int rank, int n_ranks, char name[64]);

/* "none", "rows", "cols": by zero_cut. */
enum { ZERO_MANIFEST_CUTS = ZERO_CUT_COLS + 1 };
extern const char *const zero_manifest_cuts[ZERO_MANIFEST_CUTS];
