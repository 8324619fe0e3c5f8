/* backend.c - the fake device's table, and how it is opened and closed. */
#include "fake/fake.h"

#include <stdlib.h>

#include "base/quantity.h"
#include "fake/calls.h"
#include "fake/device.h"
#include "math/cpu.h"

/* A whole number, not negative, from the environment; *number is left as it is without one. */
static zero_status read_variable(const char *name, int64_t *number)
{
    const char *text = getenv(name);
    if (!text) return ZERO_OK;
    int64_t read;
    if (!zero_quantity_whole(text, &read) || read < 0)
        return zero_fail(ZERO_ERR_INVALID, "%s='%s': it needs a whole number from 0", name,
                         text);
    *number = read;
    return ZERO_OK;
}

static zero_status fake_open(zero_math *math)
{
    int64_t order = 1, failing = 0, stopping = 0;
    math->state[0] = NULL;
    ZERO_TRY(read_variable("ZERO_FAKE_ORDER", &order));
    ZERO_TRY(read_variable("ZERO_FAKE_FAIL", &failing));
    ZERO_TRY(read_variable("ZERO_FAKE_STOP", &stopping));
    zero_fake *f = calloc(1, sizeof *f);
    if (!f)
        return zero_fail(ZERO_ERR_NOMEM,
                         "no memory for the queues of the fake device: "
                         "%zu bytes",
                         sizeof *f);
    math->state[0] = f;
    f->order = (uint64_t)order;
    f->failing = failing;
    f->stopping = stopping;
    return zero_backend_cpu.open(&f->math);
}

/* Drops what is queued, which may wait for a copy that never ends. */
static void fake_close(zero_math *math)
{
    zero_fake *f = zero_fake_of(math);
    if (!f) return;
    zero_fake_release(f);
    free(f);
    math->state[0] = NULL;
}

zero_fake_counts zero_fake_counted(const zero_math *math)
{
    return zero_fake_of(math)->counts;
}

static const zero_memory memory = {
    .take = zero_fake_take,
    .give_back = zero_fake_give_back,
    .pin = zero_fake_pin,
    .unpin = zero_fake_unpin,
    .fetch = zero_fake_fetch,
    .store = zero_fake_store,
    .ended = zero_fake_ended,
    .after = zero_fake_after,
    .place = zero_fake_place,
    .since = zero_fake_since,
};

const zero_backend zero_backend_fake = {
    .name = "fake",
    .about = "the cpu backend behind memory that the host cannot touch, for tests",
    .open = fake_open,
    .close = fake_close,
    .sync = zero_fake_sync,
    .memory = &memory,
    .clear = zero_fake_clear,
    .gemm = zero_fake_gemm,
    .add_bias = zero_fake_add_bias,
    .bias_backward = zero_fake_bias_backward,
    .add_branch = zero_fake_add_branch,
    .dropout = zero_fake_dropout,
    .bias_gelu = zero_fake_bias_gelu,
    .bias_gelu_backward = zero_fake_bias_gelu_backward,
    .layernorm = zero_fake_layernorm,
    .layernorm_backward = zero_fake_layernorm_backward,
    .swiglu = zero_fake_swiglu,
    .swiglu_backward = zero_fake_swiglu_backward,
    .turn = zero_fake_turn,
    .turn_backward = zero_fake_turn_backward,
    .attention_workspace = zero_cpu_attention_workspace,
    .attention = zero_fake_attention,
    .attention_backward = zero_fake_attention_backward,
    .remember = zero_fake_remember,
    .recall = zero_fake_recall,
    .embedding = zero_fake_embedding,
    .embedding_backward = zero_fake_embedding_backward,
    .cross_entropy = zero_fake_cross_entropy,
    .adamw = zero_fake_adamw,
    .sum_squares = zero_fake_sum_squares,
    .round = zero_fake_round,
    .accumulate = zero_fake_accumulate,
};
