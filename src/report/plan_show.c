/* The texts of a plan: its facts in forms/report.txt, and advice. */
#include "report/advice.h"
#include "report/json_put.h"
#include "report/plan_facts.h"

zero_status zero_plan_show(const zero_plan_report *r, FILE *out)
{
    const zero_plan_request *o = &r->request;
    const char *section = o->ablation ? "ablation" : o->all_stages ? "stages" : "plan";
    ZERO_TRY(zero_report_print(section, zero_plan_facts(r), out));
    if (!o->ablation && !o->all_stages) {
        /* A run with this --device-memory or this --memory-limit would be refused; and if a
         * step waits for the network between nodes, spending more memory may be worth
         * it. */
        const zero_plan_stage *stage = &r->stages[0];
        const zero_config *c = &r->config;
        size_t device = (size_t)c->device_memory, context = zero_config_context(c);
        size_t host = (size_t)zero_max(c->memory_limit, 0);
        zero_advice_room room = {.limit = host, .host = host};
        if (r->request.has_network && zero_advice_may_spare(&stage->schedule, &stage->time))
            zero_advice_show_network(&stage->schedule, &r->request.machine, out);
        room.of_device = device > 0 && stage->ledger.device_needed + context > device;
        if (room.of_device) room.limit = device > context ? device - context : 0;
        if (room.of_device || (host > 0 && stage->ledger.needed > host)) {
            fputc('\n', out);
            zero_advice_show(&stage->schedule.input, r->is_auto, room, out);
        }
    }
    return ZERO_OK;
}
