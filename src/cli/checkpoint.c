/* zero checkpoint: shows, verifies and exports checkpoints. One process reads; no MPI. */
#include "cli/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/legible.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/list.h"
#include "checkpoint/model.h"
#include "checkpoint/read.h"
#include "cli/command.h"
#include "cli/overwriting.h"
#include "nn/shape.h"
#include "report/text.h"

#define PATH_BYTES (ZERO_STORAGE_PATH + ZERO_CHECKPOINT_NAME)

typedef struct {
    const char *to; /* NULL: not given */
    int64_t shard_bytes;
    const char *dtype;
} checkpoint_options;

static uint64_t bytes_of(const zero_manifest *m)
{
    uint64_t sum = m->tokenizer.bytes;
    for (int r = 0; r < m->table.layout.n_ranks; r++) sum += m->shards[r].bytes;
    return sum;
}

/* ---- show ---- */

static void show_options(const zero_manifest *m)
{
    const char *key;
    json_t *value;
    size_t column = 0;
    if (!m->options) return;
    printf("  options       ");
    json_object_foreach(m->options, key, value)
    {
        const char *text = json_is_string(value) ? json_string_value(value) : "?";
        if (column + strlen(key) + strlen(text) > 76) {
            printf("\n%16s", "");
            column = 0;
        }
        column += (size_t)printf("%s--%s %s", column > 0 ? " " : "", ZERO_SHOWN(key),
                                 ZERO_SHOWN(text));
    }
    printf("\n");
}

static void show_tensors(const zero_manifest *m)
{
    printf("  tensors       %d, each as master, momentum and variance in fp32\n",
           m->table.n_tensors);
    for (int i = 0; i < m->table.n_tensors; i++) {
        const zero_tensor *t = &m->table.tensors[i];
        printf("    %-36s %8" PRId64 " x %-8" PRId64 " group %d", ZERO_SHOWN(t->name),
               t->rows, t->cols, t->group);
        if (t->cut != ZERO_CUT_NONE) printf(", cut by %s", zero_manifest_cuts[t->cut]);
        if (zero_cut_parts(t) > 1) printf(" in %" PRId64 " parts", zero_cut_parts(t));
        printf("\n");
    }
}

static zero_status show(zero_checkpoint *c, const char *found, const checkpoint_options *o)
{
    (void)o;
    printf("%s\n", ZERO_SHOWN(found));
    printf("  step          %" PRId64, c->manifest.step);
    if (c->manifest.skipped > 0)
        printf(", of which %" PRId64 " were skipped", c->manifest.skipped);
    printf("; %" PRId64 " samples read\n", c->manifest.samples);
    if (c->manifest.loss_scale.type == ZERO_FP16) {
        printf("  loss scale    %g, after %" PRId64
               " clean steps; halves at the %s overflow\n",
               (double)c->manifest.loss_scale.scale, c->manifest.loss_scale.clean_steps,
               c->manifest.loss_scale.hysteresis > 1 ? "second" : "next");
    }
    int64_t n_params = 0;
    for (int i = 0; i < c->manifest.table.n_tensors; i++)
        n_params += c->manifest.table.tensors[i].rows * c->manifest.table.tensors[i].cols;
    char shape[ZERO_PLAN_TEXT];
    zero_text_shape(&c->manifest.shape, shape);
    printf("  model         ");
    if (c->manifest.has_shape)
        printf("%s, %s, V %" PRId64 "; ", c->manifest.shape.kind->about, shape,
               c->manifest.shape.vocab);
    printf("%" PRId64 " parameters, trained in %s\n", n_params,
           zero_type_name(c->manifest.loss_scale.type));
    const zero_state_layout *l = &c->manifest.table.layout;
    printf("  written by    %d rank%s, ", l->n_ranks, l->n_ranks == 1 ? "" : "s");
    if (zero_state_table_is_shared(&c->manifest.table))
        printf("--tp %d --tp-slices %d, ", l->tp, l->slices);
    printf("partition %s\n", zero_partition_scheme_name(l->scheme));
    printf("  arithmetic    %s\n", ZERO_SHOWN(c->manifest.arithmetic));
    printf("  digest        %s\n", c->manifest.digest);
    printf("  seed          %" PRId64 "\n", c->manifest.seed);
    show_options(&c->manifest);
    char name[64];
    printf("  files         %s\n", ZERO_BYTES(bytes_of(&c->manifest)));
    for (int r = 0; r < c->manifest.table.layout.n_ranks; r++) {
        zero_shard_name(r, c->manifest.table.layout.n_ranks, name);
        printf("    %-36s %14" PRIu64 " bytes\n", name, c->manifest.shards[r].bytes);
    }
    if (c->manifest.has_tokenizer)
        printf("    %-36s %14" PRIu64 " bytes\n", ZERO_TOKENIZER_NAME,
               c->manifest.tokenizer.bytes);
    const char *kept;
    json_t *text;
    json_object_foreach(c->manifest.kept, kept, text)
    {
        printf("    %-36s %14zu bytes, kept for export\n", kept, json_string_length(text));
    }
    show_tensors(&c->manifest);
    return ZERO_OK;
}

/* ---- verify ---- */

static zero_status verify_one(const char *path)
{
    zero_checkpoint c;
    ZERO_TRY(zero_checkpoint_open(path, NULL, &c));
    zero_status st = zero_checkpoint_verify(&c);
    if (st == ZERO_OK) {
        const zero_state_layout *l = &c.manifest.table.layout;
        printf("%s: OK: step %" PRId64 ", %d shard%s", ZERO_SHOWN(path), c.manifest.step,
               l->n_ranks, l->n_ranks == 1 ? "" : "s");
        if (zero_state_table_is_shared(&c.manifest.table))
            printf(" (--tp %d --tp-slices %d)", l->tp, l->slices);
        printf(", %s, digest %s\n", ZERO_BYTES(bytes_of(&c.manifest)), c.manifest.digest);
    }
    zero_checkpoint_close(&c);
    return st;
}

/* Verifies all of them, whatever is wrong with one; the first failure is the command's. A
 * checkpoint that a run removes while it is being read is not a failure. */
static zero_status verify_all(const zero_storage_dir *dir, const char *path,
                              const int64_t *steps, int n)
{
    char name[ZERO_CHECKPOINT_NAME], one[PATH_BYTES];
    zero_failure first = {.status = ZERO_OK};
    for (int i = 0; i < n; i++) {
        zero_checkpoint_name(steps[i], name);
        snprintf(one, sizeof one, "%.*s/%s", ZERO_STORAGE_PATH - 1, path, name);
        zero_status st = verify_one(one);
        if (st != ZERO_OK && !zero_storage_has(dir, name)) {
            printf("%s: removed by a run\n", ZERO_SHOWN(one));
            continue;
        }
        if (st != ZERO_OK) printf("%s: broken: %s\n", ZERO_SHOWN(one), zero_last_error());
        if (first.status == ZERO_OK) first = zero_failure_keep(st);
    }
    return zero_failure_restore(&first);
}

/* ---- export ---- */

static zero_status export_to(zero_checkpoint *c, const char *found,
                             const checkpoint_options *o)
{
    const char *to = o->to;
    const zero_shape *g = &c->manifest.shape;
    char shape[ZERO_PLAN_TEXT];
    int64_t began;
    zero_type type = ZERO_FP32;
    (void)zero_type_find(o->dtype, &type); /* an option's name is valid */
    ZERO_TRY(zero_overwriting_check_export(to, found));
    ZERO_TRY(zero_hugging_face_lost_positions(c->manifest.kept, g, &began));
    ZERO_TRY(zero_checkpoint_export(c, to, o->shard_bytes, type));
    zero_text_shape(g, shape);
    printf("%s: %s of step %" PRId64 " in %s, %s, V %" PRId64 "; %s", ZERO_SHOWN(to),
           g->kind->about, c->manifest.step, o->dtype, shape, g->vocab,
           c->manifest.has_tokenizer ? "with its tokenizer"
                                     : "no tokenizer: it was trained on tokens");
    if (began > 0)
        printf("; the first %" PRId64 " of the %" PRId64 " positions that it began with",
               g->seq, began);
    printf("\n");
    return ZERO_OK;
}

/* A run may remove the newest checkpoint before it is read to its end; then there is a
 * newer one. */
static zero_status use_newest(const char *path, const checkpoint_options *o,
                              zero_status (*use)(zero_checkpoint *c, const char *found,
                                                 const checkpoint_options *o))
{
    char found[PATH_BYTES];
    zero_status st;
    do {
        zero_checkpoint c = {0};
        ZERO_TRY(zero_checkpoint_find(path, found, sizeof found));
        st = zero_checkpoint_open(found, NULL, &c);
        if (st == ZERO_OK) st = use(&c, found, o);
        zero_checkpoint_close(&c);
    } while (st == ZERO_ERR_IO && zero_checkpoint_is_removed(path, found));
    return st;
}

/* ---- the command ---- */

enum { SHOW, VERIFY, EXPORT, N_VERBS };
static const char *const verbs[N_VERBS] = {"show", "verify", "export"};

static zero_status run(void *options, const zero_options *given)
{
    const checkpoint_options *o = options;
    const char *name = given->operands[0], *nearest = zero_suggest(name, N_VERBS, verbs);
    int verb = 0;
    while (verb < N_VERBS && strcmp(name, verbs[verb]) != 0) verb++;
    if (verb == N_VERBS && nearest)
        return zero_fail(ZERO_ERR_INVALID, "checkpoint %s: did you mean '%s'?", name,
                         nearest);
    if (verb == N_VERBS)
        return zero_fail(
            ZERO_ERR_INVALID,
            "checkpoint %s: expected show, verify or export (zero checkpoint --help)",
            name);
    const char *path = given->operands[1];
    if (verb == VERIFY) {
        char found[PATH_BYTES];
        zero_storage_dir dir;
        int64_t *steps = NULL;
        int n = 0;
        ZERO_TRY(zero_checkpoint_find(path, found, sizeof found));
        if (strcmp(found, path) == 0) return verify_one(path);
        ZERO_TRY(zero_storage_open(path, &dir));
        zero_status st = zero_checkpoint_list(&dir, &steps, &n);
        if (st == ZERO_OK) st = verify_all(&dir, path, steps, n);
        free(steps);
        zero_storage_close(&dir);
        return st;
    }
    return use_newest(path, o, verb == SHOW ? show : export_to);
}

const zero_command zero_command_checkpoint = {
#include "cli/options/checkpoint.command"
    .run = run,
};
