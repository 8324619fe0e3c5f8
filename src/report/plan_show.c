#include "report/plan_show.h"

#include <inttypes.h>
#include <math.h>

#include "report/advice.h"
#include "report/advice_network.h"
#include "report/plan_batch_show.h"
#include "report/plan_columns.h"
#include "report/plan_device.h"
#include "report/plan_file.h"
#include "report/plan_join.h"
#include "report/plan_machine.h"
#include "report/plan_setup.h"
#include "report/text.h"
#include "sharding/checks.h"
#include "sharding/schedule_exchange.h"
#include "sharding/stages.h"

/* ---- memory ---- */

static void show_class(const char *name, size_t own, size_t at_peak, FILE *out)
{
    char text[ZERO_PLAN_TEXT], peak[ZERO_PLAN_TEXT];
    zero_text_bytes((double)own, text);
    zero_text_bytes((double)at_peak, peak);
    fprintf(out, "  %-20s %12s %18zu %14s %18zu\n", name, text, own, peak, at_peak);
}

static void show_tiers(const zero_schedule *s, const zero_plan_ledger *l, FILE *out)
{
    char text[ZERO_PLAN_TEXT];
    zero_plan_show_columns(s, l,
                           &(zero_plan_columns){"each at its own peak", "at the peak",
                                                "in the file", l->file, l->file_bytes},
                           out);
    zero_text_peak(s, text);
    fprintf(out, "  the peak is at %s\n", text);
    zero_text_bytes((double)l->file_padding, text);
    fprintf(out, "  %s of the file (%zu bytes) fills pages\n", text, l->file_padding);
}

static void show_classes(const zero_schedule *s, const zero_plan_ledger *l, FILE *out)
{
    char peak[ZERO_PLAN_TEXT];
    if (l->file_bytes > 0) {
        show_tiers(s, l, out);
        return;
    }
    fprintf(out, "\n%-22s %31s %33s\n", "memory, bytes", "each at its own peak",
            "at the overall peak");
    for (int c = 0; c < ZERO_CLASSES; c++)
        if (s->class_peak[c] > 0)
            show_class(zero_class_name((zero_class)c), s->class_peak[c], l->at_peak[c],
                       out);
    zero_text_bytes((double)s->peak_bytes, peak);
    fprintf(out, "  %-20s %12s %18s %14s %18zu\n", "all", "", "", peak, s->peak_bytes);
    zero_text_peak(s, peak);
    fprintf(out, "  the peak is at %s\n", peak);
}

static void show_needed(const zero_schedule *s, const zero_plan_ledger *l, FILE *out)
{
    char arena[ZERO_PLAN_TEXT], window[ZERO_PLAN_TEXT], all[ZERO_PLAN_TEXT];
    char process[ZERO_PLAN_TEXT], joins[ZERO_PLAN_TEXT], shared[2 * ZERO_PLAN_TEXT] = "";
    zero_text_bytes((double)s->own_bytes, arena);
    zero_text_bytes((double)s->window_bytes, window);
    zero_text_bytes((double)l->needed, all);
    zero_text_bytes((double)zero_plan_process(s), process);
    zero_text_bytes((double)s->tp_window_bytes, joins);
    if (s->n_joins > 0) snprintf(shared, sizeof shared, " + TP group's %s", joins);
    zero_text_row("needed", out);
    fprintf(out, "%s = arena %s + node's window %s%s + process %s\n", all, arena, window,
            shared, process);
}

void zero_plan_show_memory(const zero_schedule *s, const zero_plan_ledger *l,
                           size_t context, FILE *out)
{
    if (s->input.device) {
        zero_plan_show_both(s, l, context, out);
        return;
    }
    show_classes(s, l, out);
    show_needed(s, l, out);
}

static void show_limit(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    char limit[ZERO_PLAN_TEXT];
    if (r->config.memory_limit <= 0) return;
    zero_text_bytes((double)r->config.memory_limit, limit);
    zero_text_row("limit", out);
    fprintf(out, "%s: %s\n", limit,
            zero_plan_fits_limit(r, stage) ? "it fits" : "it does not fit");
}

static bool shards_parameters(const zero_schedule *s)
{
    return zero_stage_at(s->input.stage)->parameters == ZERO_HOLD_PIECE;
}

/* Why the states differ from the formula and its padding. */
static const char *reason(const zero_plan_report *r, const zero_schedule *s)
{
    if (zero_plan_uses_file(&s->input)) return "optimizer states lie in the file";
    if (s->input.offload_host) return "optimizer states lie in the host's memory";
    if (zero_schedule_shares(s)) return "parameters lie once per node";
    if (r->config.accumulation > 1) return "sums over microbatches are in accumulators";
    if (r->config.persist > 0 && shards_parameters(s))
        return "resident groups are not sharded";
    return "the last piece of the model is smaller";
}

static void show_states(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    const zero_plan_ledger *l = &stage->ledger;
    char states[ZERO_PLAN_TEXT], formula[ZERO_PLAN_TEXT], padding[ZERO_PLAN_TEXT],
        rest[ZERO_PLAN_TEXT];
    double left = (double)l->states - l->formula - l->padding;
    zero_text_bytes((double)l->states, states);
    zero_text_bytes(l->formula, formula);
    zero_text_bytes(l->padding, padding);
    zero_text_bytes(fabs(left), rest);
    zero_text_row("model states", out);
    const zero_shard_place *at = &stage->schedule.shard;
    char over[32] = "";
    if (at->replicas > 1) snprintf(over, sizeof over, " for N_d = R = %d", at->size);
    fprintf(out, "%s = the paper's %s%s + %s padding (%.0f bytes, %.3f %%)", states,
            formula, over, padding, l->padding, 100.0 * l->padding / l->formula);
    if (fabs(left) >= 1.0)
        fprintf(out, "\n%15s%s %s: %s", "", left < 0 ? "-" : "+", rest,
                reason(r, &stage->schedule));
    fputc('\n', out);
}

static void show_kept(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    const int most = 4;
    char bytes[ZERO_PLAN_TEXT];
    if (!shards_parameters(&stage->schedule)) return;
    zero_text_bytes((double)stage->kept_bytes, bytes);
    zero_text_row("kept", out);
    fprintf(out, "%s from forward to backward:", bytes);
    for (int i = 0; i < stage->n_kept && i < most; i++)
        fprintf(out, "%s %s", i > 0 ? "," : "", r->model.groups[stage->kept[i]].name);
    if (stage->n_kept > most) fprintf(out, " and %d more", stage->n_kept - most);
    if (stage->n_kept == 0)
        fputs(zero_schedule_shares(&stage->schedule)
                  ? " nothing, parameters lie once per node"
                  : " nothing",
              out);
    fputc('\n', out);
}

/* ---- communication ---- */

static void show_exchange(const char *name, const zero_plan_exchange *x, FILE *out)
{
    zero_volume v = zero_traffic_total(&x->traffic);
    fprintf(out, "  %-12s %11" PRId64 " %17" PRId64 " %17" PRId64 " %12" PRId64 " %17.0f\n",
            name, x->collectives, v.bytes_sent, v.bytes_received, v.messages_sent,
            x->formula);
}

static void show_small(const char *name, const zero_traffic *t, FILE *out)
{
    zero_volume v = zero_traffic_total(t);
    fprintf(out, "  %-12s %11s %17" PRId64 " %17" PRId64 " %12" PRId64, name, "",
            v.bytes_sent, v.bytes_received, v.messages_sent);
}

static void show_control(const zero_plan_stage *stage, FILE *out)
{
    const zero_plan_ledger *l = &stage->ledger;
    show_small("control", &l->control, out);
    fputs("  (losses, norms)\n", out);
    if (!zero_is_compared(&stage->schedule)) return;
    show_small("COMPARE", &l->compare, out);
    fputs("  (part of control)\n", out);
}

/* REDUCE and GATHER, and what replicas add up. */
static zero_plan_exchange both(const zero_plan_ledger *l)
{
    const zero_plan_exchange *others[] = {&l->gather, &l->all_reduce};
    zero_plan_exchange sum = l->reduce;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        sum.collectives += others[i]->collectives;
        sum.formula += others[i]->formula;
        zero_traffic_add(&sum.traffic, 1, &others[i]->traffic);
    }
    return sum;
}

static void show_exchanges(const zero_plan_stage *stage, FILE *out)
{
    zero_plan_exchange all = both(&stage->ledger);
    zero_volume v = zero_traffic_total(&all.traffic);
    char below[ZERO_PLAN_TEXT];
    double off = all.formula - (double)v.bytes_sent;
    fprintf(out, "\n%-14s %11s %17s %17s %12s %17s\n", "per step", "collectives",
            "bytes sent", "bytes received", "messages", "formula, bytes");
    show_exchange("REDUCE", &stage->ledger.reduce, out);
    bool is_hybrid = stage->schedule.shard.replicas > 1;
    if (is_hybrid) show_exchange("ALL_REDUCE", &stage->ledger.all_reduce, out);
    show_exchange("GATHER", &stage->ledger.gather, out);
    show_exchange(is_hybrid ? "all three" : "both", &all, out);
    if (stage->schedule.n_joins > 0) show_exchange("JOIN", &stage->ledger.join, out);
    if (stage->schedule.input.partition_activations)
        show_exchange("COLLECT", &stage->ledger.collect, out);
    show_control(stage, out);
    zero_text_bytes(fabs(off), below);
    zero_text_row("traffic", out);
    fprintf(out, "%s %s the paper's volume of the padded groups", below,
            off >= 0 ? "below" : "above");
    fprintf(out, "; %.1f %% leaves the node\n",
            v.bytes_sent > 0
                ? 100.0 * (double)all.traffic.bytes_sent[ZERO_ACROSS] / (double)v.bytes_sent
                : 0.0);
    if (v.bytes_sent > 0 && v.messages_sent == 0)
        fprintf(out, "%15sno messages: neighbours read it in the node's shared memory\n",
                "");
    zero_plan_show_blocks(&stage->schedule, out);
    zero_plan_show_kept_parts(&stage->schedule, &stage->ledger, out);
}

static void show_range(const zero_plan_bounds *range, FILE *out)
{
    char least[ZERO_PLAN_TEXT], most[ZERO_PLAN_TEXT];
    zero_text_bytes((double)range->least, least);
    zero_text_bytes((double)range->most, most);
    fprintf(out, " %13s %13s", least, most);
}

static void show_schemes(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    fprintf(out, "\n%-14s %13s %13s %13s %13s %13s %13s\n", "by partition",
            stage->schedule.input.device ? "device least" : "needs least", "most",
            "sends least", "most", "gets least", "most");
    for (int k = 0; k < ZERO_PARTITION_SCHEMES; k++) {
        const zero_plan_spread *spread = &stage->spread[k];
        if (spread->n_ranks == 0) continue;
        fprintf(out, "  %-12s", zero_partition_scheme_name((zero_partition_scheme)k));
        show_range(&spread->needed, out);
        show_range(&spread->sent, out);
        show_range(&spread->received, out);
        fputc('\n', out);
    }
    if (stage->spread[0].n_ranks < r->config.data_ranks)
        fprintf(out, "  the first, the middle and the last rank only%s\n",
                r->config.data_ranks < r->request.n_ranks ? " with this part of the model"
                                                          : "");
    if (r->config.accumulation > 1 || r->request.has_time || r->request.fit > 0 ||
        r->request.fit_batch)
        fputc('\n', out);
}

/* ---- prices ---- */

static void show_price(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    const zero_plan_price *p = &stage->price;
    if (r->config.accumulation == 1) return;
    zero_text_row(r->config.reproducible ? "free order" : "reproducible", out);
    if (!p->is_possible) {
        fprintf(out, "not possible: %s\n", p->why_not);
        return;
    }
    zero_plan_exchange now = both(&stage->ledger), then = both(&p->ledger);
    char needed[ZERO_PLAN_TEXT], sent[ZERO_PLAN_TEXT];
    const zero_plan_input *in = &stage->schedule.input;
    double more = (double)zero_plan_scarce(in, &p->ledger) -
                  (double)zero_plan_scarce(in, &stage->ledger);
    double bytes = (double)(zero_traffic_total(&then.traffic).bytes_sent -
                            zero_traffic_total(&now.traffic).bytes_sent);
    zero_text_bytes(more, needed);
    zero_text_bytes(bytes, sent);
    fprintf(out, "%s%s of %smemory and %s%s sent per step %s --reproducible\n",
            more >= 0 ? "+" : "", needed, in->device ? "the device's " : "",
            bytes >= 0 ? "+" : "", sent, r->config.reproducible ? "without" : "with");
}

static void show_time(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    const zero_plan_machine *m = &r->request.machine;
    const zero_plan_time *t = &stage->time;
    if (!r->request.has_time) return;
    zero_text_row("time", out);
    fprintf(out, "%.4g s per step = compute %.4g + exposed %.4g of %.4g communication",
            t->step, t->compute, t->exposed, t->communication);
    if (stage->schedule.n_joins > 0) {
        zero_text_continue(out);
        fprintf(out, "of these JOINs %.4g of %.4g", t->join_exposed, t->joins);
        if (stage->schedule.input.partition_activations)
            fprintf(out, ", COLLECTs %.4g of %.4g", t->collect_exposed, t->collects);
    }
    if (r->request.has_disk) {
        zero_text_continue(out);
        fprintf(out, "+ exposed %.4g of %.4g disk", t->disk_exposed, t->disk);
    }
    fprintf(out, "; %.4g tokens/s\n",
            (double)(r->config.global_batch * r->shape.seq) / t->step);
    if (r->request.has_network)
        fprintf(out, "%15s(ideal: %.4g s per message, %.4g bytes/s%s, %.4g flops/s)\n", "",
                m->latency, m->bandwidth, r->layout.n_nodes > 1 ? " between nodes" : "",
                m->flops);
    else
        fprintf(out, "%15s(ideal: messages take no time, %.4g flops/s)\n", "", m->flops);
    zero_plan_node_rate_show(r, &stage->schedule, out);
}

static void show_fitted_file(const zero_plan_report *r, const zero_plan_stage *stage,
                             FILE *out)
{
    char file[ZERO_PLAN_TEXT];
    if (stage->fitted.file == 0) return;
    zero_text_bytes((double)stage->fitted.file, file);
    fprintf(out, "%15sand a file of %s (%zu bytes)", "", file, stage->fitted.file);
    if (r->request.fit_disk > 0)
        fprintf(out, " of at most %" PRId64 " bytes", r->request.fit_disk);
    fputc('\n', out);
}

static void show_fitted_host(const zero_plan_report *r, const zero_plan_stage *stage,
                             FILE *out)
{
    char host[ZERO_PLAN_TEXT];
    if (stage->fitted.host == 0) return;
    zero_text_bytes((double)stage->fitted.host, host);
    fprintf(out, "%15sof the device, and %s (%zu bytes) of the host", "", host,
            stage->fitted.host);
    if (r->config.memory_limit > 0)
        fprintf(out, ", of at most %" PRId64, r->config.memory_limit);
    fputc('\n', out);
}

static void show_fitted(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    char needed[ZERO_PLAN_TEXT], limit[ZERO_PLAN_TEXT];
    if (r->request.fit == 0) return;
    zero_text_bytes((double)stage->fitted.needed, needed);
    zero_text_bytes((double)r->request.fit, limit);
    zero_text_row("fits", out);
    fprintf(out,
            "%s (%" PRId64 " bytes): up to %" PRId64 " layers, Psi = %" PRId64
            "\n%15swhich need %s (%zu bytes)%s\n",
            limit, r->request.fit, stage->fitted.layers, stage->fitted.n_params, "", needed,
            stage->fitted.needed,
            stage->fitted.layers == ZERO_GPT2_LAYERS ? "; no deeper model is possible"
                                                     : "");
    show_fitted_host(r, stage, out);
    show_fitted_file(r, stage, out);
}

static size_t device_room(const zero_config *c)
{
    size_t all = (size_t)c->device_memory, context = zero_config_context(c);
    return all > context ? all - context : 0;
}

/* A run with this --device-memory or this --memory-limit would be refused. */
static void show_advice(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    bool of_device = !zero_plan_fits_device(r, stage);
    size_t limit = of_device ? device_room(&r->config) : (size_t)r->config.memory_limit;
    if (!of_device && zero_plan_fits_limit(r, stage)) return;
    fputc('\n', out);
    zero_advice_show(
        &stage->schedule.input, r->is_auto,
        (zero_advice_room){limit, of_device, (size_t)zero_max(r->config.memory_limit, 0)},
        out);
}

/* If a step waits for the network between nodes, spending more memory may be worth it. */
static void show_network_advice(const zero_plan_report *r, const zero_plan_stage *stage,
                                FILE *out)
{
    if (r->request.has_network && zero_advice_may_spare(&stage->schedule, &stage->time))
        zero_advice_show_network(&stage->schedule, &r->request.machine, out);
}

void zero_plan_show(const zero_plan_report *r, FILE *out)
{
    const zero_plan_stage *stage = &r->stages[0];
    fprintf(out, "%-14s %d\n", "stage", zero_plan_stage_number(stage));
    zero_plan_show_setup(r, out);
    zero_plan_show_memory(&stage->schedule, &stage->ledger, zero_config_context(&r->config),
                          out);
    show_limit(r, stage, out);
    zero_plan_show_device_limit(r, stage, out);
    show_states(r, stage, out);
    show_kept(r, stage, out);
    show_exchanges(stage, out);
    zero_plan_show_copies(stage, out);
    zero_plan_show_file(stage, out);
    show_schemes(r, stage, out);
    show_price(r, stage, out);
    show_time(r, stage, out);
    zero_plan_show_disk(r, stage, out);
    show_fitted(r, stage, out);
    zero_plan_show_batch(r, stage, out);
    show_network_advice(r, stage, out);
    show_advice(r, stage, out);
}
