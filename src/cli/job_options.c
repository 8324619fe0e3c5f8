#include "cli/job_options.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"
#include "sharding/stages.h"

#define TEXT          .kind = ZERO_OPTION_TEXT
#define WHOLE(lo, hi) .kind = ZERO_OPTION_WHOLE, .min = (lo), .max = (hi)
#define FIELD(name)   .offset = offsetof(zero_job_options, name)

/* clang-format off */
const zero_option zero_job_rows[] = {
    {.group = "Job", .name = "ranks", WHOLE(1, ZERO_PLAN_RANKS), FIELD(ranks),
     .argument = "N", .standard = "1",
     .help = "how many ranks the job has"},
    {.name = "stage", WHOLE(0, ZERO_STAGE_COUNT - 1), FIELD(stage), .argument = "N",
     .words = "all", .absent = "0, or --config's",
     .name_at = zero_stage_words,
     .help = "ZeRO: all stages side by side, or what ranks hold in shards"},
    {.name = "network", TEXT, FIELD(network), .argument = "LATENCY,BANDWIDTH",
     .absent = "no times",
     .help = "seconds per message and bytes per second, such as 1us,12.5G; with --flops: "
         "the time of a step"},
    {.name = "node-network", TEXT, FIELD(node_network), .argument = "LATENCY,BANDWIDTH",
     .absent = "--network's",
     .help = "the same between ranks of a node, for what --tp and --shard-ranks exchange "
         "there"},
    {.name = "machine", TEXT, FIELD(machine), .argument = "NAME|FILE", .absent = "none",
     .help = "the numbers of a machine (help lists the names): whichever of --flops, "
         "--network, --node-network, --fake-nodes and, of a plan, --memory-limit is not "
         "given comes from it"},
    {.name = "disk", TEXT, FIELD(disk), .argument = "READ,WRITE",
     .absent = "no times of transfers",
     .help = "bytes per second of the disk of a node, which its ranks share, such as "
         "0.8G,1.2G (zero info --offload DIR --trial measures them); with --flops and "
         "--offload: whether the step hides the transfers"},
    {.name = "flops", .kind = ZERO_OPTION_RATE, .low = 1, .high = 1e30, FIELD(flops),
     .argument = "RATE", .absent = "no times",
     .help = "floating-point operations per second of one rank, such as 50G"},
    {.name = NULL},
};
/* clang-format on */

const char *zero_job_cut(const char *text, char first[ZERO_JOB_PART])
{
    const char *comma = strchr(text, ',');
    size_t length = comma ? (size_t)(comma - text) : ZERO_JOB_PART;
    if (length >= ZERO_JOB_PART) return NULL;
    memcpy(first, text, length);
    first[length] = '\0';
    return comma + 1;
}

/* ---- the machine ---- */

static bool parse_network(const char *text, double *latency, double *bandwidth)
{
    char first[ZERO_JOB_PART];
    const char *second = zero_job_cut(text, first);
    return second && zero_quantity_seconds(first, latency) && *latency >= 0.0 &&
           zero_quantity_rate(second, bandwidth) && *bandwidth > 0.0;
}

static zero_status read_disk(const zero_job_options *o, zero_plan_request *r)
{
    if (!o->disk) return ZERO_OK;
    char read[ZERO_JOB_PART];
    const char *write = zero_job_cut(o->disk, read);
    if (!(write && zero_quantity_rate(read, &r->machine.disk_read) &&
          r->machine.disk_read > 0.0 && zero_quantity_rate(write, &r->machine.disk_write) &&
          r->machine.disk_write > 0.0))
        return zero_fail(
            ZERO_ERR_INVALID,
            "--disk %.80s: expected READ,WRITE in bytes per second, such as 0.8G,1.2G",
            o->disk);
    if (!zero_config_directory(&r->config))
        return zero_fail(ZERO_ERR_INVALID, "--disk without --offload: nothing is read or "
                                           "written; give --offload DIR as well");
    if (o->flops > 0.0 || o->machine) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--disk and --flops go together: give --flops as well");
}

static zero_status read_network(const char *name, const char *text, double *latency,
                                double *bandwidth)
{
    if (!text || parse_network(text, latency, bandwidth)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--%s %.80s: expected LATENCY,BANDWIDTH in seconds per message and "
                     "bytes per second, such as 1us,12.5G",
                     name, text);
}

zero_status zero_job_options_read(const zero_job_options *job, zero_plan_request *request)
{
    request->n_ranks = (int)job->ranks;
    if (job->stage == ZERO_OPTION_WORD) request->all_stages = true;
    if (job->stage >= 0) request->config.plan.stage = (int)job->stage;
    zero_plan_machine *m = &request->machine;
    bool has_flops = job->flops > 0.0;
    ZERO_TRY(read_network("network", job->network, &m->latency, &m->bandwidth));
    ZERO_TRY(read_network("node-network", job->node_network, &m->node_latency,
                          &m->node_bandwidth));
    if (job->node_network && !job->network && !job->machine)
        return zero_fail(ZERO_ERR_INVALID,
                         "--node-network without --network: give --network as well");
    ZERO_TRY(read_disk(job, request));
    request->has_network = job->network != NULL;
    request->has_disk = job->disk != NULL;
    if (!job->network) m->bandwidth = INFINITY; /* messages take no time */
    if (!job->machine && (job->network || job->disk) != has_flops)
        return zero_fail(ZERO_ERR_INVALID,
                         "--network and --flops go together: give --%s as well",
                         has_flops ? "network" : "flops");
    m->flops = job->flops;
    request->has_time = has_flops;
    request->has_file = job->machine != NULL;
    if (!job->machine) return ZERO_OK;
    return zero_machine_file_find(job->machine, &request->file);
}
