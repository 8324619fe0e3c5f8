#include "cli/saving.h"

#include "base/legible.h"
#include "cli/record.h"
#include "train/learning_rate.h"

static const char *saved_as(const json_t *options, const char *name, const char *absent)
{
    const char *text = zero_get_string(options, name);
    return text ? text : absent;
}

static bool was(const json_t *options, const char *name, const char *value)
{
    return value && zero_same_text(saved_as(options, name, ""), value);
}

/* Appends an option's value now, and, unless it is NULL, that of the saved run. */
static void add(char *list, size_t size, const char *name, const char *now,
                const char *then)
{
    size_t len = strlen(list);
    snprintf(list + len, size - len, "%s--%s %s%s%s%s", len > 0 ? ", " : "", name, now,
             then ? " (saved: " : "", then ? then : "", then ? ")" : "");
}

/* ---- taking ---- */

static bool has_changed(const zero_session *s, const json_t *saved, const char *name)
{
    char buffer[ZERO_OPTION_TEXT_BYTES];
    const zero_option *row = zero_option_named(zero_run_options, name);
    return zero_options_is_set(s->given, name) &&
           !was(saved, name, zero_option_value(row, &s->config, buffer));
}

/* A run of no steps, which saves its initial weights, has no schedule that could hold.
 * Other data come with their own validation and width. Some defaults follow another option:
 * where that is given anew, so are they. */
static bool is_free(const zero_session *s, const json_t *saved, const zero_option *row)
{
    const char *name = row->name;
    bool of_schedule = zero_same_text(name, "steps") || zero_same_text(name, "warmup");
    if (of_schedule && was(saved, "steps", "0")) return true;
    bool of_data = zero_same_text(name, "val-data") || zero_same_text(name, "token-bytes");
    if (s->config.new_data && of_data) return true;
    bool of_shape = row->offset - offsetof(zero_config, shape) < sizeof s->config.shape;
    of_shape |= zero_same_text(name, "architecture") || zero_same_text(name, "tied");
    const char *leader = of_shape                              ? "model"
                         : zero_same_text(name, "lr-min")      ? "lr"
                         : zero_same_text(name, "activations") ? "dtype"
                                                               : NULL;
    return leader && has_changed(s, saved, leader);
}

/* The saved run's cut of the work, where this run's ranks cannot share it. */
static bool is_too_coarse(const zero_session *s, const zero_config *c, const char *name)
{
    int T = zero_tp_ranks(&c->tp);
    int64_t at_once = c->plan.micro_batch * zero_max(s->world.size / T, 1);
    if (zero_same_text(name, "tp-slices")) return c->tp.slices % T != 0;
    return zero_same_text(name, "micro-batch") && c->global_batch % at_once != 0;
}

static zero_status store(const zero_session *s, const zero_option *row, const char *text,
                         zero_config *c)
{
    char where[ZERO_OPTION_TEXT_BYTES + ZERO_STORAGE_PATH];
    zero_print(where, "%s: --%s %.200s", s->saving.resumed.path, row->name, text);
    zero_status st = zero_option_store(row, text, where, c);
    return st == ZERO_ERR_INVALID ? zero_fail(ZERO_ERR_FORMAT, "%s", zero_last_error())
                                  : st;
}

/* With another shape nothing fits, and with another seed it is another run. */
static zero_status check_is_same_run(const zero_session *s, const zero_config *c,
                                     const zero_manifest *m)
{
    zero_shape now;
    char list[512] = "";
    ZERO_TRY(zero_config_shape(c, m->shape.vocab, &now));
    now = zero_shape_complete(&now);
    char a[32], b[32];
    if (now.kind != m->shape.kind)
        add(list, sizeof list, "architecture", now.kind->name, m->shape.kind->name);
    for (const zero_shape_field *f = zero_shape_fields;
         f < zero_shape_fields + ZERO_SHAPE_FIELDS && now.kind == m->shape.kind; f++) {
        if ((now.kind->has & f->needs) != f->needs ||
            zero_shape_get(&now, f) == zero_shape_get(&m->shape, f))
            continue;
        char name[32];
        zero_shape_option(f, name);
        zero_shape_write(&now, f, a);
        zero_shape_write(&m->shape, f, b);
        add(list, sizeof list, name, a, b);
    }
    zero_print(a, "%" PRId64, c->seed);
    zero_print(b, "%" PRId64, m->seed);
    if (c->seed != m->seed) add(list, sizeof list, "seed", a, b);
    ZERO_INVALID_IF(list[0] != '\0',
                    "cannot resume %s: these options differ from the saved run: %s; leave "
                    "them out, or give another --checkpoint",
                    s->saving.resumed.path, list);
    return ZERO_OK;
}

zero_status zero_resumed_options_take(zero_session *s, const zero_manifest *m)
{
    zero_resumed *r = &s->saving.resumed;
    zero_config c = s->config;
    char taken[sizeof r->taken] = "";
    ZERO_INVALID_IF(!m->has_shape,
                    "%s holds another program's model, not one of zero train", r->path);
    ZERO_INVALID_IF(c.new_data && !zero_options_is_set(s->given, "data"),
                    "--new-data continues on other data: give --data SPEC as well");
    size_t size = sizeof taken;
    zero_config standard;
    zero_options_reset(&zero_command_train, &standard);
    for (const zero_option *row = zero_run_options; row->name; row++) {
        const char *text = saved_as(m->options, row->name, NULL);
        if (!(row->is & ZERO_OPTION_RESUMED) || !text) continue;
        if (zero_options_is_set(s->given, row->name) || is_free(s, m->options, row))
            continue;
        ZERO_TRY(store(s, row, text, &c));
        char buffer[ZERO_OPTION_TEXT_BYTES];
        const char *default_text = zero_option_value(row, &standard, buffer);
        bool is_default = default_text && zero_same_text(default_text, text);
        bool is_past = zero_same_text(row->name, "init-from"); /* no file of it is read */
        if (is_too_coarse(s, &c, row->name))
            zero_option_reset(row, &c);
        else if (!is_default && !is_past)
            add(taken, size, row->name, text, NULL);
    }
    if (m->shape.kind != zero_architectures && !has_changed(s, m->options, "model"))
        c.base = m->shape; /* not all of its numbers are options */
    ZERO_TRY(check_is_same_run(s, &c, m));
    ZERO_INVALID_IF(c.steps >= 0 && m->step > c.steps,
                    "cannot resume %s: it is at step %" PRId64 ", beyond --steps %" PRId64
                    ": give --steps %" PRId64 " or more",
                    r->path, m->step, c.steps, m->step);
    s->config = c;
    r->options = json_incref(m->options);
    memcpy(r->taken, taken, sizeof taken);
    s->importing = (zero_importing){.shape = m->shape, .tokenizer = ""};
    if (m->has_tokenizer)
        zero_print(s->importing.tokenizer, "%.*s/" ZERO_TOKENIZER_NAME,
                   ZERO_STORAGE_PATH - 32, r->path);
    return ZERO_OK;
}

/* ---- checking ---- */

bool zero_resumed_options_has_new_data(const zero_session *s, const zero_manifest *m)
{
    return s->config.new_data && !zero_same_text(s->saving.data, m->data);
}

static zero_status check_same(const zero_session *s, const char *name, const char *saved,
                              int64_t value)
{
    char now[32];
    zero_print(now, "%" PRId64, value);
    ZERO_INVALID_IF(!zero_same_text(saved, now),
                    "cannot resume %s: it was saved with --reproducible --%s %.20s, and "
                    "this run has --%s %s, which adds in another order and gives other "
                    "bits; give --%s %.20s, or --reproducible=off",
                    s->saving.resumed.path, name, saved, name, now, name, saved);
    return ZERO_OK;
}

zero_status zero_resumed_options_check(const zero_session *s, const zero_manifest *m)
{
    const char *micro = saved_as(m->options, "micro-batch", NULL);
    ZERO_INVALID_IF(
        !s->config.new_data && !zero_same_text(s->saving.data, m->data),
        "cannot resume %s: --data %.200s holds other tokens for training than the "
        "saved run had (--data %.200s): restore those, or give --new-data, which "
        "continues on these from their first sample, with the same model and moments",
        s->saving.resumed.path, s->config.data, saved_as(m->options, "data", "unknown"));
    /* A reproducible run adds gradients in the order that its micro batch gives, and
     * products in the order of its slices: with others it would end with another digest
     * than it promised. Runs that do not name slices were saved before there were any. */
    if (!s->config.plan.reproducible || !was(m->options, "reproducible", "on"))
        return ZERO_OK;
    if (micro) ZERO_TRY(check_same(s, "micro-batch", micro, s->config.plan.micro_batch));
    return check_same(s, "tp-slices", saved_as(m->options, "tp-slices", "1"),
                      s->config.tp.slices);
}

/* ---- telling ---- */

/* The rate of an update, from 0; after the last one its rate stays. */
static double rate_of(const zero_config *c, int64_t update)
{
    int64_t at = zero_max(zero_min(update, c->steps - 1), 0);
    return zero_config_step_input(c, at, at).lr;
}

/* Steps, rates and warm-up make one curve. Where others are given, the curve that begins
 * here is another one than that which led here. */
static void note_rate(const zero_session *s, const zero_manifest *m)
{
    zero_config then = s->config;
    for (const zero_option *row = zero_run_options; row->name; row++) {
        const char *text = saved_as(m->options, row->name, NULL);
        if (text && (row->is & ZERO_OPTION_RESUMED) &&
            store(s, row, text, &then) != ZERO_OK)
            return;
    }
    const double before = rate_of(&then, m->updates - 1);
    const double now = rate_of(&s->config, m->updates);
    if (m->updates == 0 || m->step >= s->config.steps || now == rate_of(&then, m->updates))
        return;
    fprintf(stderr,
            "zero: note: the learning rate goes from %.3g in step %" PRId64
            " to %.3g in the next one: the schedule of --steps %" PRId64
            ", --warmup %" PRId64
            ", --lr %g, --lr-min %g is not the saved run's, of %" PRId64 ", %" PRId64
            ", %g, %g\n",
            before, m->step, now, s->config.steps, s->config.warmup, s->config.lr,
            s->config.lr_min, then.steps, then.warmup, then.lr, then.lr_min);
}

void zero_resumed_options_tell(zero_session *s, const zero_manifest *m)
{
    json_auto_t *now = zero_run_options_identity(&s->config);
    char *list = s->saving.resumed.changes;
    const size_t size = sizeof s->saving.resumed.changes;
    const char *key;
    json_t *value;
    if (s->world.size != m->table.layout.n_ranks)
        snprintf(list, size, "ranks %d (saved: %d)", s->world.size,
                 m->table.layout.n_ranks);
    json_object_foreach(now, key, value)
    {
        const json_t *then = json_object_get(m->options, key);
        if (!m->options || json_equal(value, then)) continue;
        if (!then && zero_run_options_is_as_ever(key, json_string_value(value))) continue;
        add(list, size, key, json_string_value(value),
            json_is_string(then) ? json_string_value(then) : "its default");
    }
    json_object_foreach(m->options, key, value)
    {
        if (!json_object_get(now, key))
            add(list, size, key, "at its default", json_string_value(value));
    }
    if (!zero_comm_is_root(&s->world)) return;
    char bits[256];
    zero_record_bits(s, bits, sizeof bits);
    if (!zero_same_text(bits, m->arithmetic))
        fprintf(
            stderr,
            "zero: warning: bits may differ from the run that was saved, which had: %s\n",
            ZERO_SHOWN(m->arithmetic));
    /* Another number of ranks that share the model changes no bits, but another order of
     * sums does. */
    int slices = s->engine.schedule.input.model->share.slices,
        then = m->table.layout.slices;
    if (slices != then)
        fprintf(stderr,
                "zero: warning: other sums: this run adds along %d slice%s, the one that "
                "was saved along %d, so bits differ from a run that never stopped; give "
                "--tp-slices %d\n",
                slices, slices == 1 ? "" : "s", then, then);
    note_rate(s, m);
    if (s->config.new_data && !zero_resumed_options_has_new_data(s, m))
        fprintf(stderr,
                "zero: note: --new-data has no effect: the checkpoint was trained on this "
                "data, which continues after sample %" PRId64 "\n",
                m->samples);
}
