#include "cli/job_options.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"
#include "cli/list.h"
#include "sharding/stages.h"

const zero_option zero_job_rows[] = {
#include "cli/options/job.rows"
};

/* ---- the machine ---- */

static zero_status read_network(const char *name, const char *text, double *latency,
                                double *bandwidth)
{
    char first[ZERO_LIST_PART];
    const char *rest = text;
    if (!text ||
        (zero_list_take(&rest, first) && rest && zero_quantity_seconds(first, latency) &&
         *latency >= 0.0 && zero_quantity_rate(rest, bandwidth) && *bandwidth > 0.0))
        return ZERO_OK;
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
    if (job->disk) {
        char read[ZERO_LIST_PART];
        const char *write = job->disk;
        if (!(zero_list_take(&write, read) && write &&
              zero_quantity_rate(read, &request->machine.disk_read) &&
              request->machine.disk_read > 0.0 &&
              zero_quantity_rate(write, &request->machine.disk_write) &&
              request->machine.disk_write > 0.0))
            return zero_fail(
                ZERO_ERR_INVALID,
                "--disk %.80s: expected READ,WRITE in bytes per second, such as 0.8G,1.2G",
                job->disk);
    }
    request->has_network = job->network != NULL;
    request->has_disk = job->disk != NULL;
    if (!job->network) m->bandwidth = INFINITY; /* messages take no time */
    m->flops = job->flops;
    request->has_time = has_flops;
    request->has_file = job->machine != NULL;
    if (!job->machine) return ZERO_OK;
    return zero_machine_file_find(job->machine, &request->file);
}
