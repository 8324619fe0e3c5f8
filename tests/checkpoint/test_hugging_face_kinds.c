/* Each architecture in Hugging Face's files: names, shapes and config.json as transformers has
 * them, of version 4 and 5; and what another calculation would be is refused by its name. */
#define TEST_HAS_MAIN
#include "support/hugging_face_test.h"

#include "io/json_input.h"
#include "nn/shape.h"
#include "support/laws.h"
#include "support/table.h"

/* ---- small models ---- */

static zero_shape of(int kind)
{
    zero_shape s = {.layers = 2,
                    .hidden = 12,
                    .heads = kind == ZERO_NEOX ? 3 : 6,
                    .kv_heads = kind == ZERO_NEOX ? 3 : 2,
                    .head_size =
                        kind == ZERO_QWEN3 || kind == ZERO_NEOX ? 4 : 2, /* H D is not C */
                    .inner = 20,
                    .seq = 24,
                    .vocab = 71,
                    .theta = 5e5,
                    .eps = 1e-6,
                    .rotary = kind == ZERO_NEOX ? 0.5 : 0.0,
                    .tied = kind == ZERO_QWEN2,
                    .kind = &zero_architectures[kind]};
    if (kind == ZERO_LLAMA) {
        s.scaling.factor = 8.0, s.scaling.low = 1.0, s.scaling.high = 4.0;
        s.scaling.seq = 16;
    }
    return zero_shape_complete(&s);
}

static bool equal(const zero_shape *a, const zero_shape *b)
{
    bool same = a->kind == b->kind;
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++)
        same &= zero_shape_get(a, &zero_shape_fields[i]) ==
                zero_shape_get(b, &zero_shape_fields[i]);
    return same;
}

static void write_model(const zero_model *model, int64_t file_bytes)
{
    check_ok(zero_hugging_face_write(
        DIR_NAME,
        &(zero_hugging_face_export){model, &values, NULL, NULL, file_bytes, ZERO_FP32}));
}

static void check_read(const zero_shape *s, const zero_model *model)
{
    zero_hugging_face file;
    zero_shape found;
    check_ok(zero_hugging_face_find_shape(DIR_NAME, &found));
    assert_true(equal(&found, s));
    check_ok(zero_hugging_face_open(DIR_NAME, model, &file));
    assert_values(&file, model);
    zero_hugging_face_close(&file);
}

TEST(each_architecture_is_read_back)
{
    for (int kind = ZERO_LLAMA; kind < ZERO_ARCHITECTURES; kind++) {
        zero_shape s = of(kind);
        zero_model model = built(&s);
        for (int k = 0; k < 2; k++) {
            write_model(&model, k == 0 ? 0 : 3000);
            assert_int_equal(exists(DIR_NAME "/model.safetensors.index.json"), k);
            check_read(&s, &model);
            remove_dir(DIR_NAME);
        }
        zero_model_destroy(&model);
    }
}

/* ---- names ---- */

TEST(names_and_shapes_are_theirs)
{
    static const int tensors[] = {[ZERO_LLAMA] = 1 + 2 * 9 + 2,
                                  [ZERO_MISTRAL] = 1 + 2 * 9 + 2,
                                  [ZERO_QWEN2] = 1 + 2 * 12 + 1, /* tied: no head */
                                  [ZERO_QWEN3] = 1 + 2 * 11 + 2,
                                  [ZERO_NEOX] = 1 + 2 * 12 + 3};
    for (int kind = ZERO_LLAMA; kind < ZERO_ARCHITECTURES; kind++) {
        zero_shape s = of(kind);
        zero_model model = built(&s);
        zero_safetensors table;
        write_model(&model, 0);
        read_table(&table);
        assert_int_equal(table.n, tensors[kind]);
        for (test_table t = table_open("checkpoint/names.txt"); table_next(&t);)
            if (strstr(t.field[0], zero_architectures[kind].name))
                assert_entry(&table, t.field[1], atoi(t.field[2]), atoi(t.field[3]));
        zero_safetensors_destroy(&table);
        remove_dir(DIR_NAME);
        zero_model_destroy(&model);
    }
}

/* ---- config.json ---- */

#define SIZES \
    "\"hidden_size\": 12, \"num_hidden_layers\": 2, \"num_attention_heads\": 6, " \
    "\"intermediate_size\": 20, \"vocab_size\": 71, \"max_position_embeddings\": 24"
#define LLAMA "\"model_type\": \"llama\", " SIZES
#define NEOX  "\"model_type\": \"gpt_neox\", " SIZES

static zero_status read_text(const char *json, zero_shape *s)
{
    zero_bytes text = {0};
    check_ok(zero_bytes_append(&text, json, strlen(json)));
    zero_status st = zero_hugging_face_read_config("config.json", &text, s);
    zero_bytes_destroy(&text);
    return st;
}

/* A window over all positions is none; a smaller one is as many as there are. GPT-NeoX says what part
 * of a head turns, in either version's way. */
TEST(files_of_both_versions_say_the_same)
{
    enum { FIELDS = 9 };
    for (test_table t = table_open("checkpoint/read_kinds.txt"); table_next(&t);) {
        char json[1000], *at = t.field[1];
        double want[FIELDS];
        zero_shape s;
        const char *sizes = strchr(t.field[0], '$');
        snprintf(json, sizeof json, "%.*s" SIZES "%s", (int)(sizes - t.field[0]),
                 t.field[0], sizes + 1);
        for (int i = 0; i < FIELDS; i++) want[i] = strtod(at, &at);
        if (read_text(json, &s) != ZERO_OK) fail_msg("%s: %s", json, zero_last_error());
        const double found[FIELDS] = {s.theta,
                                      s.eps,
                                      s.scaling.factor,
                                      (double)s.kv_heads,
                                      (double)s.head_size,
                                      (double)s.seq,
                                      (double)s.scaling.seq,
                                      s.tied,
                                      s.rotary};
        for (int i = 0; i < FIELDS; i++)
            if (found[i] != want[i]) fail_msg("%s: %g, not %g", json, found[i], want[i]);
        assert_true(s.layers == 2 && s.hidden == 12 && s.heads == 6 && s.inner == 20 &&
                    s.vocab == 71);
        if (want[2] > 0) assert_true(s.scaling.low == 1 && s.scaling.high == 4);
    }
}

TEST(another_calculation_is_refused_by_its_name)
{
    for (test_table t = table_open("checkpoint/refused_kinds.txt"); table_next(&t);) {
        char json[1000];
        zero_shape s;
        snprintf(json, sizeof json, "{%s%s%s}",
                 *t.field[0] == 'l'   ? LLAMA
                 : *t.field[0] == 'g' ? NEOX
                                      : "",
                 *t.field[0] != '-' && *t.field[1] ? ", " : "", t.field[1]);
        assert_int_equal(read_text(json, &s), status_of(t.field[2]));
        assert_told(t.field[3]);
    }
}

/* The configuration that is written, which is read as the same shape. */
static json_t *written(const zero_shape *s, const json_t *kept)
{
    zero_model model = built(s);
    zero_bytes text = {0};
    zero_shape found;
    json_t *root;
    check_ok(zero_hugging_face_write_config(
        &(zero_hugging_face_export){.model = &model, .kept = kept}, &text));
    check_ok(zero_hugging_face_read_config("c", &text, &found));
    if (!kept) assert_true(equal(&found, s));
    check_ok(zero_json_parse("c", text.bytes, text.len, &root));
    zero_bytes_destroy(&text);
    zero_model_destroy(&model);
    return root;
}

/* The keys of version 4, which version 5 reads, too. */
TEST(what_is_written_is_read_by_both_versions)
{
    const zero_shape s = of(ZERO_LLAMA);
    json_t *root = written(&s, NULL);
    LAWS(root, "torch_dtype && !dtype && !rope_parameters && rope_theta == 5e5",
         "rope_scaling/rope_type == \"llama3\"");
    assert_true(json_is_null(json_object_get(root, "sliding_window")));
    json_decref(root);
}

/* An imported model's own members stay, and its length, whatever it was trained on. */
TEST(a_configuration_that_was_kept_keeps_its_length_and_window)
{
    zero_shape s = of(ZERO_MISTRAL);
    s.seq = 8;
    json_t *kept = json_pack(
        "{s:s}", "config.json",
        "{\"model_type\": \"mistral\", \"sliding_window\": 10, \"bos_token_id\": 1, "
        "\"eos_token_id\": [2, 3], \"dtype\": \"bfloat16\", \"x\": 1, " SIZES
        ", \"rope_parameters\": {\"rope_theta\": 7.0, \"rope_type\": \"default\"}}");
    json_t *root = written(&s, kept);
    LAWS(root, "max_position_embeddings == 24 && sliding_window == 10",
         "num_key_value_heads == 2 && x == 1 && bos_token_id == 1 && count(eos_token_id) "
         "== 2",
         "rope_theta == 5e5 && torch_dtype == \"float32\" && !dtype && !rope_parameters");
    json_decref(root);
    json_decref(kept);
}

/* ---- files of others ---- */

/* Writes the model's file again, its names with `prefix` in place of "model.", or before all
 * of them if that is kept; with a head and angles beside it. head: 0 none, 1 equal to the
 * words, 2 another. */
static void rename_tensors(const zero_model *model, const char *prefix, bool has_own,
                           int head)
{
    zero_bytes out = {0};
    int n = model->n_tensors;
    const zero_architecture *kind = ((const zero_shape *)model->shape)->kind;
    const char *own = has_own ? kind->prefix : "";
    zero_safetensors_entry *entries = calloc((size_t)n + 2, sizeof *entries);
    char(*names)[128] = calloc((size_t)n + 2, sizeof *names);
    assert_true(entries && names);
    for (int i = 0; i < n; i++) {
        const zero_tensor *t = &model->tensors[i];
        bool is_head = strcmp(t->name, zero_hugging_face_head(kind)) == 0;
        snprintf(names[i], sizeof names[i], "%s%s%s", prefix, is_head ? "" : own, t->name);
        entries[i] = (zero_safetensors_entry){.name = names[i], .type = "F32"};
        if (t->decays) entries[i].dims[entries[i].n_dims++] = t->rows;
        entries[i].dims[entries[i].n_dims++] = t->cols;
    }
    snprintf(names[n], sizeof names[n], "%s%slayers.1.self_attn.rotary_emb.inv_freq",
             prefix, own);
    entries[n] =
        (zero_safetensors_entry){.name = names[n], .type = "F32", .n_dims = 1, .dims = {1}};
    snprintf(names[n + 1], sizeof names[n + 1], "%slm_head.weight", prefix);
    entries[n + 1] = (zero_safetensors_entry){
        .name = names[n + 1], .type = "F32", .n_dims = 2, .dims = {71, 12}};
    check_ok(zero_safetensors_write_header(n + 1 + (head > 0), entries, NULL, &out));
    for (int i = 0; i < n + 1 + (head > 0); i++) {
        int64_t size = (int64_t)(entries[i].end - entries[i].begin) / 4;
        for (int64_t k = 0; k < size; k++) {
            float value = value_of(i <= n ? i : 0, k) + (float)(i == n + 1 && head == 2);
            check_ok(zero_bytes_append(&out, &value, sizeof value));
        }
    }
    FILE *file = fopen(DIR_NAME "/model.safetensors", "w");
    assert_true(file && fwrite(out.bytes, 1, out.len, file) == out.len &&
                fclose(file) == 0);
    zero_bytes_destroy(&out);
    free(entries);
    free(names);
}

TEST(prefixes_heads_and_angles_of_other_files_are_read)
{
    static const char *const prefixes[] = {"", "_orig_mod.", "module.",
                                           "module._orig_mod."};
    for (int kind = ZERO_LLAMA; kind < ZERO_ARCHITECTURES; kind++) {
        zero_shape s = of(kind);
        zero_model model = built(&s);
        write_model(&model, 0);
        for (size_t i = 0; i < COUNT(prefixes); i++)
            for (int head = 0; head <= s.tied; head++) {
                rename_tensors(&model, prefixes[i], true, head);
                check_read(&s, &model);
            }
        if (s.tied) {
            zero_hugging_face file;
            rename_tensors(&model, "", false, 0); /* a model without a head */
            check_read(&s, &model);
            rename_tensors(&model, "", true, 2);
            assert_fails(zero_hugging_face_open(DIR_NAME, &model, &file),
                         ZERO_ERR_UNSUPPORTED, "lm_head.weight is not embed_tokens.weight");
        }
        remove_dir(DIR_NAME);
        zero_model_destroy(&model);
    }
}

TEST(another_shape_is_told_by_the_options_that_give_it)
{
    zero_shape s = of(ZERO_QWEN3), other;
    zero_model model = built(&s), wanted;
    zero_hugging_face file;
    write_model(&model, 0);
    other = s;
    other.kv_heads = 3, other.theta = 1e6,
    other.seq = 23; /* fewer positions are no other */
    wanted = built(&other);
    assert_fails(zero_hugging_face_open(DIR_NAME, &wanted, &file), ZERO_ERR_INVALID,
                 "(kv-heads 3, theta 1000000): give --kv-heads 2 --theta "
                 "500000,");
    zero_model_destroy(&wanted);
    other = of(ZERO_LLAMA);
    wanted = built(&other);
    assert_fails(zero_hugging_face_open(DIR_NAME, &wanted, &file), ZERO_ERR_INVALID,
                 "give --architecture qwen3");
    zero_model_destroy(&wanted);
    other = s;
    other.seq = 25;
    wanted = built(&other);
    assert_fails(zero_hugging_face_open(DIR_NAME, &wanted, &file), ZERO_ERR_INVALID,
                 "give --seq 24,");
    zero_model_destroy(&wanted);
    remove_dir(DIR_NAME);
    zero_model_destroy(&model);
}

int main(void)
{
    return run_here(enter, leave);
}
