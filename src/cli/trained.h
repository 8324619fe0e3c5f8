/* trained.h - the model that `zero generate` computes with: of a checkpoint, or a GPT-2 in
 * Hugging Face's files. */
#pragma once

#include "checkpoint/hugging_face.h"
#include "checkpoint/list.h"
#include "checkpoint/read.h"
#include "comm/comm.h"

typedef struct {
    /* The checkpoint that was found, or the model as the user named it. */
    char path[ZERO_STORAGE_PATH + ZERO_CHECKPOINT_NAME];
    bool is_imported; /* it is no checkpoint */
    zero_checkpoint checkpoint;
    zero_hugging_face_found found;
    zero_hugging_face file;
    zero_model model; /* the whole one */
    zero_type type;   /* it was trained in, or is read as */
    json_t *kept;     /* zero_hugging_face_keep()'s; owned; NULL: nothing */
    zero_tokenizer tokenizer;
    bool has_tokenizer;
} zero_trained;

/* A user's path, and what is done with the model that is found there. Collective. */
typedef struct {
    const char *path;
    zero_status (*use)(void *arg);
    void *arg;
} zero_trained_user;

/* Opens what is at the path, a checkpoint before anything else; of several the newest. Rank
 * 0 decides which: a run may be saving the next. Has it used, and again if a run has
 * removed it before. After ZERO_OK it stays open. Collective; errors are read.h's and
 * hugging_face.h's. */
ZERO_NODISCARD zero_status zero_trained_open(zero_comm *world,
                                             const zero_trained_user *user,
                                             zero_trained *t);

/* Describes the model and reads its tokenizer, if it has one. Without `with_tokenizer` that
 * of an imported model is left alone: it may be of a kind that is not read. Local. */
ZERO_NODISCARD zero_status zero_trained_read(zero_trained *t, bool with_tokenizer);

/* The model's parameters; *t is borrowed. */
zero_weights zero_trained_weights(zero_trained *t);
/* Once the engine has read them: ranks must have read the same. Collective. */
ZERO_NODISCARD zero_status zero_trained_check(zero_trained *t, zero_comm *world);

void zero_trained_close(zero_trained *t); /* accepts a zeroed one */
