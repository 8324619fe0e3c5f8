/* GPT-2 to and from Hugging Face's files: what is written is read back, what others write is
 * read as it is meant, and what does not fit is named. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/half.h"
#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

static const zero_gpt2_shape shape = {
    .layers = 2, .hidden = 24, .heads = 3, .seq = 10, .vocab = 71, .dropout = 0.1f};

#define DIR_NAME  "out"
#define FILE_NAME "made.safetensors"

static zero_model model_of(const zero_gpt2_shape *s)
{
    zero_model model;
    assert_int_equal(zero_gpt2_describe(s, &model), ZERO_OK);
    return model;
}

/* Element i of a tensor: numbers that bf16 holds exactly, other ones everywhere. */
static float value_of(int tensor, int64_t i)
{
    return (float)((i * 7 + tensor * 31) % 255 - 127) / 64.0f;
}

static zero_status fill(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    (void)arg;
    for (int64_t i = begin; i < end; i++) out[i - begin] = value_of(tensor, i);
    return ZERO_OK;
}

static const zero_weights values = {.fill = fill};

static void check_ok(zero_status st)
{
    if (st != ZERO_OK) fail_msg("%s", zero_last_error());
}

static int64_t size_of(const zero_tensor *t)
{
    return t->rows * t->cols;
}

static void assert_values(zero_hugging_face *file, const zero_model *model)
{
    zero_weights weights = zero_hugging_face_weights(file);
    for (int t = 0; t < model->n_tensors; t++) {
        int64_t n = size_of(&model->tensors[t]);
        float *all = malloc((size_t)n * sizeof *all);
        assert_non_null(all);
        for (int64_t cut = 0; cut < n; cut += 1 + n / 3) { /* any cut gives the same */
            check_ok(weights.fill(weights.arg, t, 0, cut, all));
            check_ok(weights.fill(weights.arg, t, cut, n, all + cut));
            for (int64_t i = 0; i < n; i++) assert_true(all[i] == value_of(t, i));
        }
        free(all);
    }
}

static void remove_dir(const char *name)
{
    zero_storage_dir here;
    check_ok(zero_storage_open(".", &here));
    check_ok(zero_storage_remove(&here, name));
    zero_storage_close(&here);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- both ways ---- */

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    zero_model model = model_of(&shape);
    zero_hugging_face file;
    check_ok(zero_hugging_face_write(DIR_NAME, &model, &values));
    check_ok(zero_hugging_face_open(DIR_NAME, &model, &file));
    assert_values(&file, &model);
    zero_hugging_face_close(&file);
    check_ok(zero_hugging_face_open(DIR_NAME "/model.safetensors", &model, &file));
    zero_hugging_face_close(&file);
    assert_false(exists(".tmp-" DIR_NAME));
    remove_dir(DIR_NAME);
    zero_model_destroy(&model);
}

/* More than fits the buffers on the way, of no whole number of them. */
static void a_matrix_of_many_buffers_is_read_back(void **state)
{
    (void)state;
    zero_gpt2_shape large = {
        .layers = 1, .hidden = 96, .heads = 2, .seq = 5, .vocab = 1021};
    zero_model model = model_of(&large);
    zero_hugging_face file;
    check_ok(zero_hugging_face_write(DIR_NAME "/", &model, &values));
    check_ok(zero_hugging_face_open(DIR_NAME "/", &model, &file));
    assert_values(&file, &model);
    zero_hugging_face_close(&file);
    remove_dir(DIR_NAME);
    zero_model_destroy(&model);
}

static void assert_entry(const zero_safetensors *table, const char *name, int n_dims,
                         int64_t rows, int64_t cols)
{
    const zero_safetensors_entry *e = zero_safetensors_find(table, name);
    if (!e) fail_msg("%s is not there", name);
    assert_string_equal(e->type, "F32");
    assert_int_equal(e->n_dims, n_dims);
    assert_int_equal(e->dims[0], rows);
    if (n_dims == 2) assert_int_equal(e->dims[1], cols);
}

static void names_and_shapes_are_theirs(void **state)
{
    (void)state;
    zero_model model = model_of(&shape);
    zero_file file;
    zero_safetensors table;
    zero_bytes header = {0};
    check_ok(zero_hugging_face_write(DIR_NAME, &model, &values));
    check_ok(zero_file_open(DIR_NAME "/model.safetensors", &file));
    check_ok(zero_safetensors_read_header(&file, &header));
    check_ok(zero_safetensors_parse("", file.bytes, &header, &table));
    assert_int_equal(table.n, 2 + 2 * 12 + 2); /* no head */
    assert_string_equal(zero_safetensors_metadata(&table, "format"), "pt");
    assert_entry(&table, "transformer.wte.weight", 2, 71, 24);
    assert_entry(&table, "transformer.wpe.weight", 2, 10, 24);
    assert_entry(&table, "transformer.h.1.ln_1.weight", 1, 24, 0);
    assert_entry(&table, "transformer.h.1.attn.c_attn.weight", 2, 24, 72);
    assert_entry(&table, "transformer.h.1.attn.c_attn.bias", 1, 72, 0);
    assert_entry(&table, "transformer.h.0.mlp.c_fc.weight", 2, 24, 96);
    assert_entry(&table, "transformer.h.0.mlp.c_proj.weight", 2, 96, 24);
    assert_entry(&table, "transformer.ln_f.bias", 1, 24, 0);
    assert_true(file.bytes == header.len + 4 * (uint64_t)model.n_params); /* no padding */
    zero_safetensors_destroy(&table);
    zero_bytes_destroy(&header);
    zero_file_close(&file);
    remove_dir(DIR_NAME);
    zero_model_destroy(&model);
}

static void the_configuration_is_theirs(void **state)
{
    (void)state;
    zero_bytes text = {0};
    zero_gpt2_shape read;
    json_t *root;
    int64_t n;
    const char *word;
    double real;
    check_ok(zero_hugging_face_write_config(&shape, &text));
    check_ok(zero_hugging_face_read_config("c", &text, &read));
    assert_true(read.layers == 2 && read.hidden == 24 && read.heads == 3);
    assert_true(read.seq == 10 && read.vocab == 71);
    check_ok(zero_json_parse("c", text.bytes, text.len, &root));
    check_ok(zero_json_whole("c", root, "n_ctx", 10, 10, &n));
    check_ok(zero_json_text("c", root, "model_type", &word));
    assert_string_equal(word, "gpt2");
    check_ok(zero_json_text("c", root, "activation_function", &word));
    assert_string_equal(word, "gelu_new");
    check_ok(zero_json_real("c", root, "layer_norm_epsilon", &real));
    assert_true(real == 1e-5);
    check_ok(zero_json_real("c", root, "attn_pdrop", &real));
    assert_true((float)real == 0.1f);
    assert_true(json_is_null(json_object_get(root, "eos_token_id")));
    json_decref(root);
    zero_bytes_destroy(&text);
}

static zero_status fail_late(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    if (tensor < 9) return fill(arg, tensor, begin, end, out);
    return zero_fail(ZERO_ERR_FORMAT, "the shard is torn");
}

static void refused_write(const char *path, const zero_weights *weights, zero_status code,
                          const char *text)
{
    zero_model model = model_of(&shape);
    assert_int_equal(zero_hugging_face_write(path, &model, weights), code);
    if (!strstr(zero_last_error(), text))
        fail_msg("'%s' lacks '%s'", zero_last_error(), text);
    assert_false(exists(".tmp-" DIR_NAME));
    zero_model_destroy(&model);
}

static void a_directory_is_there_completely_or_not_at_all(void **state)
{
    (void)state;
    zero_model model = model_of(&shape);
    zero_weights torn = {.fill = fail_late};
    refused_write(DIR_NAME, &torn, ZERO_ERR_FORMAT, "the shard is torn");
    assert_false(exists(DIR_NAME));
    assert_int_equal(mkdir(".tmp-" DIR_NAME, 0700), 0); /* of one that was killed */
    assert_int_equal(close(creat(".tmp-" DIR_NAME "/model.safetensors", 0600)), 0);
    assert_int_equal(mkdir(DIR_NAME, 0700), 0);
    check_ok(zero_hugging_face_write(DIR_NAME, &model, &values));
    assert_true(exists(DIR_NAME "/config.json") && !exists(".tmp-" DIR_NAME));
    refused_write(DIR_NAME, &values, ZERO_ERR_INVALID, "out is there already");
    refused_write("nowhere/" DIR_NAME, &values, ZERO_ERR_IO, "nowhere/");
    refused_write("..", &values, ZERO_ERR_INVALID, "the name of a directory");
    refused_write("/", &values, ZERO_ERR_INVALID, "the name of a directory");
    refused_write("", &values, ZERO_ERR_INVALID, "the name of a directory");
    remove_dir(DIR_NAME);
    zero_model_destroy(&model);
}

/* ---- files of others ---- */

typedef struct {
    const char *name, *type;
    int n_dims;
    int64_t dims[4];
} made_tensor;

/* What is done to a file that would be good. */
typedef struct {
    const char *prefix, *type;
    const char *without; /* this tensor is left out */
    made_tensor extra[3];
    const char *reshaped; /* this one has the dimensions of extra[0] */
    int head;             /* 1: the embedding once more; 2: another one */
    float spoilt;         /* at spoilt_at of the tensor `spoils`, unless that is NULL */
    const char *spoils;
    int64_t spoilt_at;
} made_file;

static void put(zero_bytes *data, const char *type, float value)
{
    uint32_t bits;
    uint16_t half = type[0] == 'B' ? zero_to_bf16(value) : zero_to_fp16(value);
    memcpy(&bits, &value, sizeof bits);
    if (strcmp(type, "F16") == 0 || strcmp(type, "BF16") == 0)
        check_ok(zero_bytes_append(data, &half, sizeof half));
    else
        check_ok(zero_bytes_append(data, &bits, sizeof bits));
}

static void put_tensor(zero_bytes *data, const made_file *made, int t, int64_t n,
                       const char *name)
{
    for (int64_t i = 0; i < n; i++) {
        bool spoils = made->spoils && strcmp(made->spoils, name) == 0;
        put(data, made->type,
            spoils && i == made->spoilt_at ? made->spoilt : value_of(t, i));
    }
}

static void put_zeros(zero_bytes *data, const made_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->n_dims; i++) n *= t->dims[i];
    for (int64_t i = 0; i < n; i++) put(data, t->type, 0.0f);
}

static void add_entry(zero_safetensors_entry *e, const char *name, const char *type, int n,
                      const int64_t *dims)
{
    *e = (zero_safetensors_entry){.name = name, .type = type, .n_dims = n};
    memcpy(e->dims, dims, (size_t)n * sizeof *dims);
}

/* The tensors of the model in reverse order, which is as good as any. */
static void make(const made_file *made)
{
    enum { MOST = 64 };
    static char names[MOST][96];
    zero_safetensors_entry entries[MOST];
    zero_bytes data = {0}, header = {0};
    zero_model model = model_of(&shape);
    int n = 0;
    for (int t = model.n_tensors - 1; t >= 0; t--) {
        const zero_tensor *own = &model.tensors[t];
        const int64_t matrix[] = {own->rows, own->cols};
        if (made->without && strcmp(made->without, own->name) == 0) continue;
        bool reshaped = made->reshaped && strcmp(made->reshaped, own->name) == 0;
        snprintf(names[n], sizeof names[n], "%s%s", made->prefix, own->name);
        if (reshaped)
            add_entry(&entries[n], names[n], made->type, made->extra[0].n_dims,
                      made->extra[0].dims);
        else
            add_entry(&entries[n], names[n], made->type, own->decays ? 2 : 1,
                      own->decays ? matrix : &own->cols);
        put_tensor(&data, made, t, size_of(own), own->name);
        n++;
    }
    for (int k = 0; k < 3 && made->extra[k].name; k++) {
        const made_tensor *extra = &made->extra[k];
        add_entry(&entries[n++], extra->name, extra->type, extra->n_dims, extra->dims);
        put_zeros(&data, extra);
    }
    if (made->head) {
        const int64_t dims[] = {shape.vocab, shape.hidden};
        add_entry(&entries[n++], "lm_head.weight", made->type, 2, dims);
        put_tensor(&data, made, made->head - 1, dims[0] * dims[1], "");
    }
    check_ok(zero_safetensors_write_header(n, entries, 0, NULL, &header));
    int fd = open(FILE_NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(write(fd, header.bytes, header.len) == (ssize_t)header.len);
    assert_true(write(fd, data.bytes, data.len) == (ssize_t)data.len);
    assert_int_equal(close(fd), 0);
    zero_bytes_destroy(&data);
    zero_bytes_destroy(&header);
    zero_model_destroy(&model);
}

static void reads(made_file made)
{
    zero_hugging_face file;
    zero_model model = model_of(&shape);
    if (!made.prefix) made.prefix = "";
    if (!made.type) made.type = "F32";
    make(&made);
    check_ok(zero_hugging_face_open(FILE_NAME, &model, &file));
    assert_values(&file, &model);
    zero_hugging_face_close(&file);
    zero_model_destroy(&model);
}

#define MASK(layer) \
    { \
        "h." layer ".attn.bias", "F32", 4, \
        { \
            1, 1, 10, 10 \
        } \
    }

static void files_of_others_are_read_as_they_are_meant(void **state)
{
    (void)state;
    reads((made_file){0});
    reads((made_file){.prefix = "transformer."});
    reads((made_file){.type = "F16"});
    reads((made_file){.type = "BF16", .prefix = "transformer."});
    reads((made_file){.extra = {MASK("0"), MASK("1")}});
    reads((made_file){.extra = {{"transformer.h.1.attn.masked_bias", "F32", 0, {0}}},
                      .prefix = "transformer."});
    reads((made_file){.head = 1});
    reads((made_file){.head = 1, .type = "F16"});
}

/* The status of opening and reading all of it. */
static zero_status read_all(const zero_model *model)
{
    zero_hugging_face file;
    ZERO_TRY(zero_hugging_face_open(FILE_NAME, model, &file));
    zero_weights weights = zero_hugging_face_weights(&file);
    zero_status st = ZERO_OK;
    for (int t = 0; st == ZERO_OK && t < model->n_tensors; t++) {
        int64_t n = size_of(&model->tensors[t]);
        float *all = malloc((size_t)n * sizeof *all);
        assert_non_null(all);
        st = weights.fill(weights.arg, t, 0, n, all);
        free(all);
    }
    zero_hugging_face_close(&file);
    return st;
}

static void refuses_as(const zero_gpt2_shape *s, zero_status code, const char *const *texts)
{
    zero_model model = model_of(s);
    zero_status st = read_all(&model);
    if (st != code) fail_msg("status %d: %s", (int)st, zero_last_error());
    for (int i = 0; texts[i]; i++)
        if (!strstr(zero_last_error(), texts[i]))
            fail_msg("'%s' lacks '%s'", zero_last_error(), texts[i]);
    zero_model_destroy(&model);
}

#define REFUSES(code, file, ...) \
    do { \
        made_file made_ = file; \
        if (!made_.prefix) made_.prefix = ""; \
        if (!made_.type) made_.type = "F32"; \
        make(&made_); \
        refuses_as(&shape, (code), (const char *const[]){__VA_ARGS__, NULL}); \
    } while (0)
#define MADE(...) ((made_file){__VA_ARGS__})

static void what_does_not_fit_is_named_with_its_shapes(void **state)
{
    (void)state;
    REFUSES(ZERO_ERR_FORMAT, MADE(.without = "h.1.ln_2.bias"),
            "made.safetensors does not hold this model", "h.1.ln_2.bias [24] is missing");
    REFUSES(ZERO_ERR_FORMAT, MADE(.extra = {{"h.0.attn.rotary", "F32", 2, {3, 4}}}),
            "h.0.attn.rotary [3, 4] is none of the model's");
    REFUSES(ZERO_ERR_FORMAT,
            MADE(.reshaped = "h.0.mlp.c_fc.weight", .extra = {{NULL, NULL, 2, {96, 24}}}),
            "h.0.mlp.c_fc.weight is [96, 24] and should be [24, 96]");
    REFUSES(ZERO_ERR_FORMAT,
            MADE(.reshaped = "h.0.ln_1.bias", .extra = {{NULL, NULL, 2, {1, 24}}}),
            "h.0.ln_1.bias is [1, 24] and should be [24]");
    REFUSES(ZERO_ERR_FORMAT, MADE(.type = "I32"), "wte.weight has type I32", "more");
    REFUSES(ZERO_ERR_FORMAT,
            MADE(.without = "ln_f.bias",
                 .extra = {{"a\033b", "F32", 1, {2}}, {"other", "F32", 1, {2}}}),
            "ln_f.bias [24] is missing; ", "a?b [2] is none", "other [2] is none");
    REFUSES(ZERO_ERR_FORMAT,
            MADE(.prefix = "transformer.", .extra = {{"ln_f.bias", "F32", 1, {24}}}),
            "ln_f.bias is there twice, with and without transformer.");
    REFUSES(ZERO_ERR_UNSUPPORTED, MADE(.head = 2), "lm_head.weight is not wte.weight");
    REFUSES(ZERO_ERR_FORMAT, MADE(.extra = {{"lm_head.weight", "F32", 2, {70, 24}}}),
            "lm_head.weight is [70, 24] and should be [71, 24]");
    REFUSES(ZERO_ERR_UNSUPPORTED, MADE(.extra = {{"lm_head.weight", "F16", 2, {71, 24}}}),
            "lm_head.weight is not wte.weight");
}

static void numbers_that_are_not_finite_are_named_by_their_place(void **state)
{
    (void)state;
    REFUSES(ZERO_ERR_FORMAT,
            MADE(.spoils = "wpe.weight", .spoilt = INFINITY, .spoilt_at = 50),
            "wpe.weight[2, 2] is inf");
    REFUSES(
        ZERO_ERR_FORMAT,
        MADE(.spoils = "h.0.ln_2.weight", .spoilt = NAN, .spoilt_at = 23, .type = "F16"),
        "h.0.ln_2.weight[23] is ", "nan");
    REFUSES(
        ZERO_ERR_FORMAT,
        MADE(.spoils = "ln_f.bias", .spoilt = -INFINITY, .spoilt_at = 0, .type = "BF16"),
        "ln_f.bias[0] is -inf");
}

static void another_shape_is_told_by_the_options_that_give_it(void **state)
{
    (void)state;
    made_file made = {.prefix = "", .type = "F32"};
    make(&made);
    zero_gpt2_shape other = shape;
    other.vocab = 512;
    refuses_as(&other, ZERO_ERR_INVALID,
               (const char *const[]){"(vocab 512)", "give --vocab 71,", NULL});
    other =
        (zero_gpt2_shape){.layers = 3, .hidden = 48, .heads = 3, .seq = 32, .vocab = 71};
    refuses_as(&other, ZERO_ERR_INVALID,
               (const char *const[]){"(layers 3, hidden 48, seq 32)",
                                     "give --layers 2 --hidden 24 --seq 10,", NULL});
}

static void what_is_no_such_file_is_refused(void **state)
{
    (void)state;
    zero_hugging_face file;
    zero_model model = model_of(&shape);
    assert_int_equal(mkdir(DIR_NAME, 0700), 0);
    assert_int_equal(zero_hugging_face_open(DIR_NAME, &model, &file), ZERO_ERR_IO);
    assert_non_null(strstr(zero_last_error(), DIR_NAME "/model.safetensors"));
    assert_int_equal(rmdir(DIR_NAME), 0);
    assert_int_equal(zero_hugging_face_open("/dev/zero", &model, &file), ZERO_ERR_IO);
    make(&(made_file){.prefix = "", .type = "F32"});
    assert_int_equal(truncate(FILE_NAME, 5000), 0);
    assert_int_equal(zero_hugging_face_open(FILE_NAME, &model, &file), ZERO_ERR_FORMAT);
    zero_model_destroy(&model);
}

/* ---- configurations of others ---- */

static zero_status open_with(const char *json, const zero_gpt2_shape *s)
{
    zero_hugging_face file;
    zero_model model = model_of(s);
    FILE *config = fopen("config.json", "w");
    assert_non_null(config);
    fputs(json, config);
    assert_int_equal(fclose(config), 0);
    zero_status st = zero_hugging_face_open(FILE_NAME, &model, &file);
    if (st == ZERO_OK) zero_hugging_face_close(&file);
    zero_model_destroy(&model);
    assert_int_equal(unlink("config.json"), 0);
    return st;
}

static void the_configuration_beside_it_must_agree(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        zero_status expected;
        const char *text;
    } cases[] = {
        {"{}", ZERO_OK, ""},
        {"{\"n_head\": 3, \"n_inner\": null, \"layer_norm_epsilon\": 1e-05}", ZERO_OK, ""},
        {"{\"n_embd\": 24, \"n_inner\": 96, \"activation_function\": "
         "\"gelu_pytorch_tanh\", \"n_layer\": 2}",
         ZERO_OK, ""},
        {"{\"n_head\": 4}", ZERO_ERR_INVALID, "(heads 3): give --heads 4,"},
        {"{\"n_layer\": 12}", ZERO_ERR_INVALID, "config.json holds a GPT-2 of another"},
        {"{\"activation_function\": \"gelu\"}", ZERO_ERR_UNSUPPORTED, "with \"gelu_new\""},
        {"{\"layer_norm_epsilon\": 1e-6}", ZERO_ERR_UNSUPPORTED, "1e-06"},
        {"{\"n_embd\": 24, \"n_inner\": 48}", ZERO_ERR_UNSUPPORTED, "4 n_embd = 96"},
        {"{\"scale_attn_by_inverse_layer_idx\": true}", ZERO_ERR_UNSUPPORTED, "is true"},
        {"{\"scale_attn_weights\": false}", ZERO_ERR_UNSUPPORTED, "is false"},
        {"{\"tie_word_embeddings\": false}", ZERO_ERR_UNSUPPORTED, "tie_word"},
        {"{\"model_type\": \"gptj\"}", ZERO_ERR_UNSUPPORTED, "gptj"},
        {"{\"n_head\": \"3\"}", ZERO_ERR_FORMAT, "n_head"},
        {"[]", ZERO_ERR_FORMAT, "object"},
        {"{", ZERO_ERR_FORMAT, "config.json"},
    };
    make(&(made_file){.prefix = "", .type = "F32"});
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        zero_status st = open_with(cases[i].json, &shape);
        if (st != cases[i].expected) fail_msg("%s: %s", cases[i].json, zero_last_error());
        if (st != ZERO_OK && !strstr(zero_last_error(), cases[i].text))
            fail_msg("'%s' lacks '%s'", zero_last_error(), cases[i].text);
    }
}

/* ---- the hash ---- */

static uint64_t fingerprint(made_file made)
{
    uint64_t hash;
    zero_hugging_face file;
    zero_model model = model_of(&shape);
    made.prefix = "";
    if (!made.type) made.type = "F32";
    make(&made);
    check_ok(zero_hugging_face_open(FILE_NAME, &model, &file));
    check_ok(zero_hugging_face_fingerprint(&file, &hash));
    zero_hugging_face_close(&file);
    zero_model_destroy(&model);
    return hash;
}

static void other_files_have_other_fingerprints(void **state)
{
    (void)state;
    uint64_t plain = fingerprint((made_file){0});
    assert_true(plain == fingerprint((made_file){0}));
    assert_true(plain != fingerprint((made_file){.type = "F16"}));
    assert_true(plain != fingerprint((made_file){.spoils = "h.1.mlp.c_fc.bias",
                                                 .spoilt = 3.0f,
                                                 .spoilt_at = 2}));
}

/* ---- */

static char work[] = "/tmp/hugging-face-XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(work) && chdir(work) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    unlink(FILE_NAME);
    return chdir("/") == 0 && rmdir(work) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_matrix_of_many_buffers_is_read_back),
        cmocka_unit_test(names_and_shapes_are_theirs),
        cmocka_unit_test(the_configuration_is_theirs),
        cmocka_unit_test(a_directory_is_there_completely_or_not_at_all),
        cmocka_unit_test(files_of_others_are_read_as_they_are_meant),
        cmocka_unit_test(what_does_not_fit_is_named_with_its_shapes),
        cmocka_unit_test(numbers_that_are_not_finite_are_named_by_their_place),
        cmocka_unit_test(another_shape_is_told_by_the_options_that_give_it),
        cmocka_unit_test(what_is_no_such_file_is_refused),
        cmocka_unit_test(the_configuration_beside_it_must_agree),
        cmocka_unit_test(other_files_have_other_fingerprints),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
