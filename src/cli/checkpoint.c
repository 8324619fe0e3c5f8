/* zero checkpoint: shows, verifies and exports checkpoints. One process reads; no MPI. */
#include "cli/options.h"

#include "base/embedded.h"
#include "base/legible.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/list.h"
#include "checkpoint/model.h"
#include "cli/overwriting.h"
#include "facts/form.h"
#include "io/json_input.h"
#include "report/text.h"

extern const zero_embedded zero_cli_forms[];

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

/* The manifest, which is a tree already, with what a text needs besides. */
static zero_status show(zero_checkpoint *c, const char *found,
                        ZERO_UNUSED const checkpoint_options *o)
{
    const zero_manifest *m = &c->manifest;
    char path[ZERO_STORAGE_FILE_PATH], shape[ZERO_PLAN_TEXT];
    ZERO_AT_END(zero_bytes_destroy) zero_bytes bytes = {0};
    json_auto_t *tree = NULL;
    json_t *text;
    const char *key;
    void *next;
    char line[2 * ZERO_SHOWN_BYTES], parts[ZERO_RULE_TEXT];
    size_t n = 0;
    zero_storage_path(&c->dir, ZERO_MANIFEST_NAME, path);
    ZERO_TRY(zero_bytes_read(&bytes, path));
    ZERO_TRY(zero_json_parse(path, bytes.bytes, bytes.len, &tree));
    json_t *lines = json_array();
    /* Options as words, in lines of about 80 columns. */
    json_object_foreach(m->options, key, text)
    {
        const char *word = json_is_string(text) ? json_string_value(text) : "?";
        if (n + strlen(key) + strlen(word) > 76) {
            json_array_append_new(lines, json_string(line));
            n = 0;
        }
        int added = snprintf(line + n, sizeof line - n, "%s--%s %s", n > 0 ? " " : "",
                             ZERO_SHOWN(key), ZERO_SHOWN(word));
        n = zero_min_size(n + (size_t)added, sizeof line - 1);
    }
    if (n > 0) json_array_append_new(lines, json_string(line));
    zero_text_shape(&m->shape, shape);
    json_object_foreach_safe(json_object_get(tree, "kept"), next, key, text) zero_put_whole(
        json_object_get(tree, "kept"), key, (int64_t)json_string_length(text));
    zero_rule_list_parts(m->table.layout.optimizer, parts);
    zero_put_members(tree, "{s:o, s:s, s:s*, s:s, s:I, s:o, s:I}", "found",
                     json_string_nocheck(found), "parts", parts, "about",
                     m->has_shape ? m->shape.kind->about : NULL, "shape_text", shape,
                     "vocab", m->shape.vocab, "lines", lines, "all_bytes", bytes_of(m));
    return zero_form_print(zero_embedded_text(zero_cli_forms, "checkpoint"), "show", tree,
                           zero_legible_print, stdout);
}

/* ---- verify ---- */

static zero_status verify_one(const char *path)
{
    ZERO_AT_END(zero_checkpoint_close) zero_checkpoint c = {0};
    ZERO_TRY(zero_checkpoint_open(path, NULL, &c));
    ZERO_TRY(zero_checkpoint_verify(&c));
    const zero_state_layout *l = &c.manifest.table.layout;
    printf("%s: OK: step %" PRId64 ", %d shard%s", ZERO_SHOWN(path), c.manifest.step,
           l->n_ranks, l->n_ranks == 1 ? "" : "s");
    if (zero_state_table_is_shared(&c.manifest.table))
        printf(" (--tp %d --tp-slices %d)", l->tp, l->slices);
    printf(", %s, digest %s\n", ZERO_BYTES(bytes_of(&c.manifest)), c.manifest.digest);
    return ZERO_OK;
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
        zero_print(one, "%.*s/%s", ZERO_STORAGE_PATH - 1, path, name);
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
    while (verb < N_VERBS && !zero_same_text(name, verbs[verb])) verb++;
    ZERO_INVALID_IF(verb == N_VERBS && nearest, "checkpoint %s: did you mean '%s'?", name,
                    nearest);
    ZERO_INVALID_IF(
        verb == N_VERBS,
        "checkpoint %s: expected show, verify or export (zero checkpoint --help)", name);
    const char *path = given->operands[1];
    if (verb == VERIFY) {
        char found[PATH_BYTES];
        ZERO_AT_END(zero_storage_close) zero_storage_dir dir = {0};
        ZERO_FREED int64_t *steps = NULL;
        int n = 0;
        ZERO_TRY(zero_checkpoint_find(path, found, sizeof found));
        if (zero_same_text(found, path)) return verify_one(path);
        ZERO_TRY(zero_storage_open(path, &dir));
        ZERO_TRY(zero_checkpoint_list(&dir, &steps, &n));
        return verify_all(&dir, path, steps, n);
    }
    return use_newest(path, o, verb == SHOW ? show : export_to);
}

const zero_command zero_command_checkpoint = {
#include "cli/options/checkpoint.command"
    .run = run,
};
