/* Options that contradict each other, or need what is missing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer.h"
#include "data/tokens.h"
#include "lists/algorithm.h"
#include "lists/member.h"
#include "math/backends.h"
#include "math/device.h"
#include "sharding/stages.h"
#include "train/activations.h"
#include "train/config.h"

#define DIGEST_DIGITS 32

bool zero_config_resumes(const zero_config *c)
{
    return c->resume || c->resume_older;
}

/* ---- shards ---- */

static zero_status check_no_device(const zero_config *c)
{
    char given[48];
    if (!zero_config_has_device(c)) return ZERO_OK;
    if (c->plan.shard_ranks == 0 && !c->plan.node_parameters) return ZERO_OK;
    snprintf(given, sizeof given, "--node-parameters");
    if (c->plan.shard_ranks > 0)
        snprintf(given, sizeof given, "--shard-ranks %d", c->plan.shard_ranks);
    return zero_fail(ZERO_ERR_INVALID,
                     "%s with --device %s: a device does not yet %s; leave one of them out",
                     given, c->device,
                     c->plan.shard_ranks > 0 ? "add up what replicas computed"
                                             : "read parameters in a node's memory");
}

/* The largest power of two up to `most` that divides N. */
static int nearest(int N, int64_t most)
{
    int R = 1;
    while (2 * R <= most && zero_can_shard(N, 2 * R)) R *= 2;
    return R;
}

static zero_status refuse_shard_ranks(int64_t R, int N, int T, const char *why)
{
    char ranks[64], remedy[48] = "";
    int good = nearest(N, R);
    snprintf(ranks, sizeof ranks, "%d rank%s", N, N == 1 ? "" : "s");
    if (T > 1) snprintf(ranks, sizeof ranks, "%d (%d ranks / --tp %d)", N, N * T, T);
    if (good < N) snprintf(remedy, sizeof remedy, "%d, or ", good);
    return zero_fail(ZERO_ERR_INVALID,
                     "--shard-ranks %" PRId64 " of %s: %s; give %s%d (all)", R, ranks, why,
                     remedy, N);
}

zero_status zero_config_check_shard_ranks(const zero_config *c, int n_ranks)
{
    int T = zero_tp_ranks(&c->tp), N = n_ranks / T;
    int64_t R = c->plan.shard_ranks;
    char why[128];
    if (R == 0 || zero_can_shard(N, R)) return ZERO_OK;
    if (R > N)
        return refuse_shard_ranks(R, N, T, "there are not that many ranks to shard over");
    if (N % R != 0) {
        snprintf(why, sizeof why,
                 "it does not divide them (%" PRId64 " x %" PRId64 " + %" PRId64 ")", R,
                 N / R, N % R);
        return refuse_shard_ranks(R, N, T, why);
    }
    return refuse_shard_ranks(R, N, T,
                              "it is not a power of two, so replicas would add gradients "
                              "in another order than a run that shards over all ranks");
}

/* ---- device and offload ---- */

static zero_status check_delayed(const zero_config *c)
{
    if (c->plan.delayed_from == 0) return ZERO_OK;
    if (!c->offload)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--delayed-update without --offload: only states in a slower tier are updated "
            "beside a step; give --offload DIR, or with a device --offload host");
    if (c->plan.offload == ZERO_OFFLOAD_LAZY) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--delayed-update with --offload-when %s: a delayed update runs "
                     "beside the whole next step; give one of them",
                     zero_offload_name(c->plan.offload));
}

zero_status zero_config_check_places(const zero_config *config)
{
    const char *without = config->plan.offload_parameters    ? "parameters"
                          : config->plan.offload_activations ? "activations"
                                                             : NULL;
    if (!zero_config_directory(config) && without)
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload-%s needs a directory for the scratch file: give "
                         "--offload DIR as well",
                         without);
    if (zero_config_offloads_to_host(config) && !zero_config_has_device(config))
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload host without --device: optimizer states lie in the "
                         "host's memory already; give a device, or --offload DIR for a "
                         "file (./host for a directory of that name)");
    if (config->offload && config->plan.offload == ZERO_OFFLOAD_BACKWARD &&
        config->clip > 0.0)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--offload-when backward with --clip %g: the norm is known after the last "
            "gradient, and backward updates before: give --clip 0, or --offload-when lazy",
            config->clip);
    ZERO_TRY(check_delayed(config));
    bool has_device = zero_config_has_device(config);
    zero_device_choice choice;
    char where[128];
    snprintf(where, sizeof where, "--device %s", config->device);
    ZERO_TRY(zero_device_read(config->device, where, &choice));
    if (has_device && strcmp(config->backend, zero_backend_name_at(0)) != 0)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--backend %s with --device %s: the device computes; give one of them",
            config->backend, config->device);
    if (!has_device && !zero_config_chooses_exchange(config))
        return zero_fail(ZERO_ERR_INVALID,
                         "--device-exchange %s without a device: give --device cuda as "
                         "well, or leave it out",
                         config->device_exchange);
    if (!has_device && config->device_memory != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--device-memory without a device: give --device cuda as well, or "
                         "--memory-limit for the host's memory");
    bool is_shared = config->tp.ranks > 1;
    if (!zero_config_has_device(config) || (!is_shared && config->tp.slices <= 1))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--%s %" PRId64
                     " with --device %s: a device does not yet add up what several ranks "
                     "or slices compute; leave one of them out",
                     is_shared ? "tp" : "tp-slices",
                     is_shared ? config->tp.ranks : config->tp.slices, config->device);
}

/* ---- all that needs nothing else ---- */

zero_status zero_config_check_given(const zero_config *config)
{
    /* Options that need --checkpoint, or --resume. */
    const char *without = config->save_every > 0     ? "save-every"
                          : config->save_minutes > 0 ? "save-minutes"
                          : config->keep > 0         ? "keep"
                          : config->resume           ? "resume"
                          : config->resume_older     ? "resume-older"
                          : config->save_required    ? "save-required"
                                                     : NULL;
    if (!config->checkpoint && without)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--%s needs a directory for checkpoints: give --checkpoint DIR as well",
            without);
    if (config->new_data && !zero_config_resumes(config))
        return zero_fail(
            ZERO_ERR_INVALID,
            "--new-data continues a checkpoint on other data: give --resume as well");
    const char *digest = config->expect_digest;
    if (config->quiet && strcmp(config->progress, "live") == 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--quiet with --progress live: give one, not both");
    if (digest && !(strlen(digest) == DIGEST_DIGITS &&
                    strspn(digest, "0123456789abcdefABCDEF") == DIGEST_DIGITS))
        return zero_fail(ZERO_ERR_INVALID,
                         "--expect-digest %.80s: expected %d hexadecimal digits, as a run "
                         "prints them at its end",
                         digest, DIGEST_DIGITS);
    if (config->plan.shard_ranks != 0 && config->plan.partition == ZERO_PARTITION_OWNER)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--shard-ranks %d with --partition owner: that cuts the model once over all "
            "ranks, so no rank has a replica of its piece; give one of them",
            config->plan.shard_ranks);
    ZERO_TRY(check_no_device(config));
    zero_algorithm given;
    if (!config->plan.node_parameters) return ZERO_OK;
    if (zero_stage_at((int)config->plan.stage)->parameters == ZERO_HOLD_WHOLE)
        return zero_fail(ZERO_ERR_INVALID,
                         "--node-parameters with --stage %d: below stage 3 parameters are "
                         "not sharded; give --stage 3, or leave it out",
                         config->plan.stage);
    if (!zero_algorithm_find(config->collectives, &given) ||
        zero_algorithm_get(given)->works_in_window)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--node-parameters with --collectives %s, which has no memory of a "
                     "node: use --collectives auto, shm or hier",
                     config->collectives);
}
