#include "report/plan_stages.h"

#include <inttypes.h>

#include "report/plan_batch_show.h"
#include "report/plan_machine.h"
#include "report/plan_setup.h"
#include "report/text.h"
#include "sharding/stages.h"

#define WIDTH (64 / ZERO_STAGE_COUNT) /* columns of a stage */

static void heading(const char *name, FILE *out)
{
    fprintf(out, "  %-24s", name);
}

/* A line: the bytes that `value` says of each stage. */
static void bytes_row(const zero_plan_report *r, const char *name,
                      double (*value)(const zero_plan_stage *stage), FILE *out)
{
    heading(name, out);
    for (int k = 0; k < r->n; k++) {
        char text[ZERO_PLAN_TEXT];
        zero_text_bytes(value(&r->stages[k]), text);
        fprintf(out, "%*s", WIDTH, text);
    }
    fputc('\n', out);
}

static void number_row(const zero_plan_report *r, const char *name, const char *format,
                       double (*value)(const zero_plan_stage *stage), FILE *out)
{
    heading(name, out);
    for (int k = 0; k < r->n; k++) {
        char text[ZERO_PLAN_TEXT];
        snprintf(text, sizeof text, format, value(&r->stages[k]));
        fprintf(out, "%*s", WIDTH, text);
    }
    fputc('\n', out);
}

/* ---- memory ---- */

static bool is_used(const zero_plan_report *r, int cls)
{
    for (int k = 0; k < r->n; k++)
        if (r->stages[k].schedule.class_peak[cls] > 0) return true;
    return false;
}

static void show_classes(const zero_plan_report *r, FILE *out)
{
    for (int c = 0; c < ZERO_CLASSES; c++) {
        if (!is_used(r, c)) continue;
        heading(zero_class_name((zero_class)c), out);
        for (int k = 0; k < r->n; k++) {
            char text[ZERO_PLAN_TEXT];
            zero_text_bytes((double)r->stages[k].schedule.class_peak[c], text);
            fprintf(out, "%*s", WIDTH, text);
        }
        fputc('\n', out);
    }
}

static double peak(const zero_plan_stage *stage)
{
    return (double)stage->schedule.peak_bytes;
}

static double needed(const zero_plan_stage *stage)
{
    return (double)stage->ledger.needed;
}

static double on_device(const zero_plan_stage *stage)
{
    return (double)stage->ledger.device_needed;
}

static double file_bytes(const zero_plan_stage *stage)
{
    return (double)stage->ledger.file_bytes;
}

static double states(const zero_plan_stage *stage)
{
    return (double)stage->ledger.states;
}

static double formula(const zero_plan_stage *stage)
{
    return stage->ledger.formula;
}

static double padding(const zero_plan_stage *stage)
{
    return stage->ledger.padding;
}

static double rest(const zero_plan_stage *stage)
{
    return states(stage) - formula(stage) - padding(stage);
}

static double kept(const zero_plan_stage *stage)
{
    return (double)stage->kept_bytes;
}

static double slice_most(const zero_plan_stage *stage)
{
    return (double)stage->spread[ZERO_PARTITION_SLICE].needed.most;
}

static double owner_least(const zero_plan_stage *stage)
{
    return (double)stage->spread[ZERO_PARTITION_OWNER].needed.least;
}

static double owner_most(const zero_plan_stage *stage)
{
    return (double)stage->spread[ZERO_PARTITION_OWNER].needed.most;
}

static double reproducible(const zero_plan_stage *stage)
{
    return (double)zero_plan_scarce(&stage->schedule.input, &stage->price.ledger);
}

static void show_limit(const zero_plan_report *r, FILE *out)
{
    char limit[ZERO_PLAN_TEXT], name[ZERO_PLAN_TEXT];
    if (r->config.memory_limit <= 0) return;
    zero_text_bytes((double)r->config.memory_limit, limit);
    snprintf(name, sizeof name, "fits the %.14s", limit);
    heading(name, out);
    for (int k = 0; k < r->n; k++)
        fprintf(out, "%*s", WIDTH, zero_plan_fits_limit(r, &r->stages[k]) ? "yes" : "no");
    fputc('\n', out);
}

static void show_memory(const zero_plan_report *r, FILE *out)
{
    fprintf(out, "\nmemory per rank%s, each class at its own peak\n",
            r->stages[0].schedule.input.device ? " on the device" : "");
    show_classes(r, out);
    bool has_device = r->stages[0].schedule.input.device;
    bytes_row(r, "overall peak", peak, out);
    if (has_device) bytes_row(r, "arena of the device", on_device, out);
    bytes_row(r, has_device ? "host, with process" : "needed, with process", needed, out);
    if (zero_plan_uses_file(&r->stages[0].schedule.input))
        bytes_row(r, "in the file", file_bytes, out);
    show_limit(r, out);
    fputs("\nmodel states\n", out);
    bytes_row(r, "ours", states, out);
    bytes_row(r, "the paper's formula", formula, out);
    bytes_row(r, "  plus padding", padding, out);
    bytes_row(r, "  rest: see --stage N", rest, out);
    bytes_row(r, "kept to backward", kept, out);
    fputs("\nneeded with other options\n", out);
    bytes_row(r, "--partition slice, most", slice_most, out);
    if (r->stages[0].spread[ZERO_PARTITION_OWNER].n_ranks > 0) {
        bytes_row(r, "--partition owner, least", owner_least, out);
        bytes_row(r, "--partition owner, most", owner_most, out);
    }
    if (r->config.accumulation > 1 && r->stages[0].price.is_possible)
        bytes_row(r, r->config.reproducible ? "without --reproducible" : "--reproducible",
                  reproducible, out);
}

/* ---- communication and time ---- */

static zero_volume volume(const zero_plan_stage *stage)
{
    zero_traffic sum = stage->ledger.reduce.traffic;
    zero_traffic_add(&sum, 1, &stage->ledger.all_reduce.traffic);
    zero_traffic_add(&sum, 1, &stage->ledger.gather.traffic);
    return zero_traffic_total(&sum);
}

static double sent(const zero_plan_stage *stage)
{
    return (double)volume(stage).bytes_sent;
}

static double received(const zero_plan_stage *stage)
{
    return (double)volume(stage).bytes_received;
}

static double joined(const zero_plan_stage *stage)
{
    return (double)zero_traffic_total(&stage->ledger.join.traffic).bytes_sent;
}

static double collected(const zero_plan_stage *stage)
{
    return (double)zero_traffic_total(&stage->ledger.collect.traffic).bytes_sent;
}

static double joins_by_formula(const zero_plan_stage *stage)
{
    return stage->ledger.join.formula;
}

static double control(const zero_plan_stage *stage)
{
    return (double)zero_traffic_total(&stage->ledger.control).bytes_sent;
}

static double messages(const zero_plan_stage *stage)
{
    return (double)volume(stage).messages_sent;
}

static double formula_sent(const zero_plan_stage *stage)
{
    const zero_plan_ledger *l = &stage->ledger;
    return l->reduce.formula + l->all_reduce.formula + l->gather.formula;
}

static double collectives(const zero_plan_stage *stage)
{
    const zero_plan_ledger *l = &stage->ledger;
    return (double)(l->reduce.collectives + l->all_reduce.collectives +
                    l->gather.collectives);
}

static double step_seconds(const zero_plan_stage *stage)
{
    return stage->time.step;
}

static double exposed_seconds(const zero_plan_stage *stage)
{
    return stage->time.exposed;
}

static double join_exposed(const zero_plan_stage *stage)
{
    return stage->time.join_exposed;
}

static double disk_seconds(const zero_plan_stage *stage)
{
    return stage->time.disk;
}

static double disk_exposed(const zero_plan_stage *stage)
{
    return stage->time.disk_exposed;
}

static double layers(const zero_plan_stage *stage)
{
    return (double)stage->fitted.layers;
}

static double psi(const zero_plan_stage *stage)
{
    return (double)stage->fitted.n_params;
}

static double micro_batch(const zero_plan_stage *stage)
{
    return (double)stage->batch.micro_batch;
}

static double batch_needed(const zero_plan_stage *stage)
{
    return (double)stage->batch.needed;
}

static void show_batch(const zero_plan_report *r, FILE *out)
{
    char room[ZERO_PLAN_TEXT];
    if (!r->request.fit_batch) return;
    zero_text_bytes((double)r->request.fit_memory, room);
    fprintf(out,
            "\nthe largest micro batch that fits %s (%" PRId64 " bytes); 0: none does\n",
            room, r->request.fit_memory);
    number_row(r, "--micro-batch", "%.0f", micro_batch, out);
    bytes_row(r, "needs; of none, at least", batch_needed, out);
    heading("tokens per step", out);
    for (int k = 0; k < r->n; k++) {
        zero_config c = zero_plan_batch_config(r, &r->stages[k]);
        fprintf(out, "%*" PRId64, WIDTH, c.global_batch * r->shape.seq);
    }
    fputc('\n', out);
}

static void show_traffic(const zero_plan_report *r, FILE *out)
{
    fprintf(out, "\ncommunication of rank %d per step\n", r->request.rank);
    number_row(r, "collectives", "%.0f", collectives, out);
    bytes_row(r, "sent", sent, out);
    bytes_row(r, "received", received, out);
    bytes_row(r, "the paper's formula", formula_sent, out);
    number_row(r, "messages", "%.0f", messages, out);
    if (r->stages[0].schedule.n_joins > 0) {
        bytes_row(r, "JOINs, sent besides", joined, out);
        bytes_row(r, "  by messages, formula", joins_by_formula, out);
    }
    if (r->stages[0].schedule.input.partition_activations)
        bytes_row(r, "COLLECTs, sent besides", collected, out);
    bytes_row(r, "control, sent besides", control, out);
}

static void show_time(const zero_plan_report *r, FILE *out)
{
    const zero_plan_machine *m = &r->request.machine;
    if (!r->request.has_time) return;
    if (r->request.has_network)
        fprintf(out, "\ntime, ideal: %.4g s per message, %.4g bytes/s, %.4g flops/s\n",
                m->latency, m->bandwidth, m->flops);
    else
        fprintf(out, "\ntime, ideal: messages take no time, %.4g flops/s\n", m->flops);
    zero_plan_node_rate_show(r, &r->stages[0].schedule, out);
    number_row(r, "seconds per step", "%.4g", step_seconds, out);
    number_row(r, "  of these exposed", "%.4g", exposed_seconds, out);
    if (r->stages[0].schedule.n_joins > 0)
        number_row(r, "    of these JOINs", "%.4g", join_exposed, out);
    if (!r->request.has_disk) return;
    fprintf(out, "disk: reads %.4g, writes %.4g bytes/s\n", m->disk_read, m->disk_write);
    number_row(r, "seconds of transfers", "%.4g", disk_seconds, out);
    number_row(r, "  of these exposed", "%.4g", disk_exposed, out);
}

static void show_fitted(const zero_plan_report *r, FILE *out)
{
    char limit[ZERO_PLAN_TEXT];
    if (r->request.fit == 0) return;
    zero_text_bytes((double)r->request.fit, limit);
    fprintf(out, "\nthe deepest model that fits %s (%" PRId64 " bytes)\n", limit,
            r->request.fit);
    number_row(r, "layers", "%.0f", layers, out);
    number_row(r, "Psi", "%.0f", psi, out);
}

void zero_plan_show_stages(const zero_plan_report *r, FILE *out)
{
    zero_plan_show_setup(r, out);
    fprintf(out, "\n%-26s", "stage");
    for (int k = 0; k < r->n; k++)
        fprintf(out, "%*d", WIDTH, zero_plan_stage_number(&r->stages[k]));
    fputc('\n', out);
    show_memory(r, out);
    show_traffic(r, out);
    show_time(r, out);
    show_fitted(r, out);
    show_batch(r, out);
    fputs("\nwhere memory peaks\n", out);
    for (int k = 0; k < r->n; k++) {
        char text[ZERO_PLAN_TEXT];
        zero_text_peak(&r->stages[k].schedule, text);
        fprintf(out, "  stage %d  %s\n", zero_plan_stage_number(&r->stages[k]), text);
    }
}
