/* --shard-ranks and --node-parameters: how many ranks share the shards, and what nodes
 * keep. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "lists/algorithm.h"
#include "lists/member.h"
#include "sharding/stages.h"
#include "train/config.h"

int zero_config_shard_ranks(const zero_config *c)
{
    return c->plan.shard_ranks > 0 ? (int)c->plan.shard_ranks : c->plan.n_ranks;
}

/* ---- without ranks ---- */

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

zero_status zero_config_check_shards(const zero_config *config)
{
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

/* ---- with ranks ---- */

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
