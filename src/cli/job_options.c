#include "cli/job_options.h"

#include <limits.h>

#include "base/quantity.h"
#include "sharding/stages.h"

const zero_option zero_job_rows[] = {
#include "cli/options/job.rows"
};

/* ---- lists ---- */

bool zero_list_take(const char **list, char part[ZERO_LIST_PART])
{
    size_t length = strcspn(*list, ",");
    bool is_last = (*list)[length] == '\0';
    if (length >= ZERO_LIST_PART) return false;
    memcpy(part, *list, length);
    part[length] = '\0';
    *list = is_last ? NULL : *list + length + 1;
    return true;
}

char *zero_list_cut(char *text, char at)
{
    char *found = strchr(text, at);
    if (!found) return NULL;
    *found = '\0';
    return found + 1;
}

bool zero_list_rank(const char *text, int *rank)
{
    int64_t number;
    if (!zero_quantity_whole(text, &number) || number < 0 || number > INT_MAX) return false;
    *rank = (int)number;
    return true;
}

zero_status zero_list_check_rank(const char *option, int rank, const zero_list_job *job)
{
    ZERO_INVALID_IF(rank >= job->ranks, "--%s: rank %d: %s %d has ranks 0 to %d", option,
                    rank, job->of, (int)job->ranks, (int)job->ranks - 1);
    return ZERO_OK;
}

zero_status zero_list_trace_ranks(const char *list, const zero_list_job *job,
                                  zero_trace_ranks *to)
{
    char part[ZERO_LIST_PART];
    zero_trace_ranks read = {.n = 0};
    for (const char *rest = list; rest;) {
        int first, last;
        const char *end = NULL;
        bool is_read = zero_list_take(&rest, part);
        if (is_read) end = zero_list_cut(part, '-');
        ZERO_INVALID_IF(!is_read || !zero_list_rank(part, &first) ||
                            !zero_list_rank(end ? end : part, &last) || first > last ||
                            read.n == ZERO_TRACE_RANGES,
                        "--trace-ranks %.80s: expected ranks and ranges of ranks with "
                        "commas between them, such as 0-7,64; at most %d of them",
                        list, ZERO_TRACE_RANGES);
        ZERO_TRY(zero_list_check_rank("trace-ranks", last, job));
        read.range[read.n].first = first;
        read.range[read.n++].last = last;
    }
    *to = read;
    return ZERO_OK;
}

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

    ZERO_TRY(read_network("network", job->network, &m->latency, &m->bandwidth));
    ZERO_TRY(read_network("node-network", job->node_network, &m->node_latency,
                          &m->node_bandwidth));
    if (job->disk) {
        char read[ZERO_LIST_PART];
        const char *write = job->disk;
        ZERO_INVALID_IF(
            !(zero_list_take(&write, read) && write &&
              zero_quantity_rate(read, &m->disk_read) && m->disk_read > 0.0 &&
              zero_quantity_rate(write, &m->disk_write) && m->disk_write > 0.0),
            "--disk %.80s: expected READ,WRITE in bytes per second, such as 0.8G,1.2G",
            job->disk);
    }
    request->has_network = job->network != NULL;
    request->has_disk = job->disk != NULL;
    if (!job->network) m->bandwidth = INFINITY; /* messages take no time */
    m->flops = job->flops;
    request->has_time = job->flops > 0.0;
    request->has_file = job->machine != NULL;
    if (!job->machine) return ZERO_OK;
    return zero_machine_file_find(job->machine, &request->file);
}
