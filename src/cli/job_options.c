#include "cli/job_options.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"
#include "sharding/stages.h"

#define FIELDS zero_job_options
const zero_option zero_job_rows[] = {
#include "cli/options/job.rows"
};

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
