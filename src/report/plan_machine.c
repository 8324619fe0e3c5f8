#include "report/plan_facts.h"

#include "report/json_put.h"

/* ---- filling in ---- */

zero_status zero_plan_machine_fill(zero_plan_report *r)
{
    const zero_machine_file *m = &r->request.file;
    zero_config *c = &r->config;
    zero_plan_machine *to = &r->request.machine;
    const bool has_device = zero_config_has_device(c);
    if (!r->request.has_file) return ZERO_OK;

    int n = r->request.n_ranks, devices = (int)m->devices;
    int least_nodes = (n + devices - 1) / devices;
    r->filled.nodes = c->fake_nodes == 0;
    if (r->filled.nodes) c->fake_nodes = least_nodes;
    int sharers = (int)((n + c->fake_nodes - 1) / c->fake_nodes);
    ZERO_INVALID_IF(sharers > devices,
                    "--fake-nodes %d: %d ranks on a node; --machine %s has %d devices "
                    "there; give at least --fake-nodes %d",
                    (int)c->fake_nodes, sharers, m->name, devices, least_nodes);
    double tokens = (double)c->plan.micro_batch * (double)r->shape.seq /
                    (double)zero_max(c->tp.ranks, 1);
    const zero_type type = c->plan.type;
    r->filled.flops = to->flops <= 0.0;
    ZERO_INVALID_IF(r->filled.flops && m->peak[type] <= 0.0,
                    "--machine %s has no peak for %s; give another --dtype, or --flops",
                    m->name, zero_type_name(type));
    if (r->filled.flops) to->flops = zero_machine_products(m, type, &r->shape, tokens);

    const bool is_one_node = c->fake_nodes == 1;
    r->filled.network = !r->request.has_network;
    if (r->filled.network) {
        const zero_machine_link *link = is_one_node ? &m->inside : &m->between;
        to->latency = link->latency;
        to->bandwidth = is_one_node ? link->bandwidth : link->bandwidth / sharers;
    }
    r->filled.node_network = to->node_bandwidth <= 0.0 && !is_one_node;
    if (r->filled.node_network) {
        to->node_latency = m->inside.latency;
        to->node_bandwidth = m->inside.bandwidth;
    }
    /* The devices of a node share its way to the host. */
    if (has_device) to->host_bandwidth = m->host / m->devices;

    if (!r->request.has_disk && m->disk.read > 0.0) {
        to->disk_read = m->disk.read;
        to->disk_write = m->disk.write;
        r->request.has_disk = zero_config_directory(c) != NULL;
    }
    int64_t *limit = has_device ? &c->device_memory : &c->memory_limit;
    bool is_open = has_device ? *limit == 0 : *limit < 0;
    r->filled.memory = is_open && !r->request.simulated;
    if (r->filled.memory) *limit = (int64_t)m->memory;
    if (r->filled.memory && r->request.fit_batch) r->request.fit_memory = *limit;
    r->request.has_network = r->request.has_time = true;
    return ZERO_OK;
}

/* ---- the list ---- */

zero_status zero_plan_machines_show(FILE *out)
{
    const char *name;
    json_t *machines = json_array();
    for (int i = 0; (name = zero_machine_name_at(i)) != NULL; i++) {
        zero_machine_file m;
        json_t *peak = json_object();
        ZERO_TRY(zero_machine_file_find(name, &m));
        for (int t = 0; t < ZERO_TYPES; t++)
            if (m.peak[t] > 0.0)
                zero_put_real(peak, zero_type_name((zero_type)t), m.peak[t]);
        zero_put_item(machines,
                      "{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:o, s:f, s:f, s:f, s:f, s:f}",
                      "name", m.name, "date", m.date, "about", m.about, "source", m.source,
                      "fit", m.fit, "devices", m.devices, "memory", m.memory, "peak", peak,
                      "share", m.share, "tokens", m.tokens, "inside", m.inside.bandwidth,
                      "between", m.between.bandwidth, "host", m.host);
    }
    return zero_report_print("machines", json_pack("{s:o}", "machines", machines), out);
}
