#include "cli/plan_options.h"

#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"
#include "cli/list.h"
#include "cli/run_options.h"

#define FIELDS zero_plan_options
static const zero_option own[] = {
#include "cli/options/plan.rows"
};

const zero_option_table zero_plan_tables[ZERO_PLAN_TABLES] = {
    {.rows = zero_job_rows, .base = offsetof(zero_plan_options, job)},
    {.rows = own},
    {.rows = zero_run_options,
     .base = offsetof(zero_plan_options, request.config),
     .in_file = true,
     .shown = ZERO_OPTION_PLANNED},
};

/* ---- values ---- */

static bool parse_fit(const char *text, zero_plan_request *r)
{
    char memory[ZERO_LIST_PART];
    return zero_list_take(&text, memory) && zero_quantity_whole(memory, &r->fit) &&
           r->fit > 0 &&
           (!text || (zero_quantity_whole(text, &r->fit_disk) && r->fit_disk > 0));
}

static zero_status read_fit(zero_plan_options *o)
{
    zero_plan_request *r = &o->request;
    if (!o->fit) return ZERO_OK;
    r->fit_batch = strcmp(o->fit, "batch") == 0;
    if (r->fit_batch) {
        r->fit_memory = zero_config_has_device(&r->config) ? r->config.device_memory
                                                           : r->config.memory_limit;
        return ZERO_OK;
    }
    if (!parse_fit(o->fit, r))
        return zero_fail(ZERO_ERR_INVALID,
                         "--fit %.80s: expected a whole number of bytes from 1 on, or two, "
                         "DRAM,DISK, such as 4G,100G; or batch",
                         o->fit);
    if (r->fit_disk == 0 || zero_config_directory(&r->config)) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--fit %.80s: nothing lies on the disk; give --offload DIR as well, or one number",
        o->fit);
}

/* "1,2,8"; whether the cores of a node have room for them is seen later. */
static zero_status read_per_node(zero_plan_options *o)
{
    char part[ZERO_LIST_PART];
    for (const char *list = o->per_node; list;) {
        int *to = &o->ranks_per_node[o->n_per_node];
        if (o->n_per_node++ == ZERO_NODE_ROWS || !zero_list_take(&list, part) ||
            !zero_list_rank(part, to))
            return zero_fail(ZERO_ERR_INVALID,
                             "--ranks-per-node %.80s: expected up to %d numbers of "
                             "ranks with commas between them, such as 1,2,8",
                             o->per_node, ZERO_NODE_ROWS);
    }
    return ZERO_OK;
}

zero_status zero_plan_options_check(void *options, const zero_options *given)
{
    zero_plan_options *o = options;
    zero_plan_request *r = &o->request;
    (void)given;
    o->machines = o->job.machine && strcmp(o->job.machine, "help") == 0;
    if (o->machines) return ZERO_OK;
    r->rank = (int)o->rank;
    r->pipeline = (int)o->pipeline;
    r->all_stages = o->job.stage == ZERO_OPTION_WORD || (o->chart && o->job.stage == -1) ||
                    r->pipeline > 0;
    ZERO_TRY(read_per_node(o));
    ZERO_TRY(read_fit(o));
    return zero_job_options_read(&o->job, r);
}
