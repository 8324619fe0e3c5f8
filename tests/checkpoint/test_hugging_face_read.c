/* GPT-2 from Hugging Face's files: files of other programs are read correctly, and mismatches are
 * named. */
#define TEST_HAS_MAIN
#include "support/hugging_face_test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/half.h"

/* ---- files of others ---- */

typedef struct {
    const char *name, *type;
    int n_dims;
    int64_t dims[4];
} made_tensor;

/* The differences of a file from a plain one; a zeroed struct: none. */
typedef struct {
    const char *prefix, *type;
    const char *without; /* this tensor is missing */
    made_tensor extra[3];
    const char *reshaped;  /* this one has the dimensions of extra[0] */
    int head;              /* 1: equal to the embedding; 2: another one */
    const char *head_name; /* NULL: lm_head.weight */
    float spoilt;          /* at spoilt_at of the tensor `spoils`, unless that is NULL */
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

/* The tensors of the model in reverse order; any order is valid. */
static void make(const made_file *made)
{
    enum { MOST = 64 };
    static char names[MOST][96];
    zero_safetensors_entry entries[MOST];
    zero_bytes data = {0}, header = {0};
    zero_model model = built(&shape);
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
        add_entry(&entries[n++], made->head_name ? made->head_name : "lm_head.weight",
                  made->type, 2, dims);
        put_tensor(&data, made, made->head - 1, dims[0] * dims[1], "");
    }
    check_ok(zero_safetensors_write_header(n, entries, NULL, &header));
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
    zero_model model = built(&shape);
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

TEST(files_of_other_programs_are_read_correctly)
{
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

/* torch.compile, DDP, DeepSpeed and classes around a model add to its names. */
TEST(any_one_prefix_may_stand_before_the_names)
{
    static const char *const prefixes[] = {"_orig_mod.", "_orig_mod.transformer.",
                                           "module.transformer.", "model._orig_mod.gpt."};
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        char head[96], mask[96];
        snprintf(mask, sizeof mask, "%sh.1.attn.bias", prefixes[i]);
        snprintf(head, sizeof head, "%s", prefixes[i]);
        char *inner = strstr(head, "transformer.");
        strcpy(inner ? inner : head + strlen(head), "lm_head.weight");
        reads((made_file){.prefix = prefixes[i], .extra = {{mask, "F32", 2, {10, 10}}}});
        reads((made_file){.prefix = prefixes[i], .head = 1, .head_name = head});
    }
}

/* Rows follow each other in a file, so elements keep their places. */
TEST(the_first_of_more_positions_are_read)
{
    zero_shape shorter = shape, longer = shape, found;
    zero_hugging_face file;
    made_file made = {.prefix = "", .type = "F32"};
    make(&made);
    check_ok(zero_hugging_face_find_shape(FILE_NAME, &found));
    assert_true(found.layers == 2 && found.hidden == 24 && found.heads == 0);
    assert_true(found.seq == 10 && found.vocab == 71);
    for (shorter.seq = 1; shorter.seq < 10; shorter.seq += 4) {
        zero_model model = built(&shorter);
        check_ok(zero_hugging_face_open(FILE_NAME, &model, &file));
        assert_values(&file, &model);
        zero_hugging_face_close(&file);
        zero_model_destroy(&model);
    }
    longer.seq = 11;
    zero_model model = built(&longer);
    assert_fails(zero_hugging_face_open(FILE_NAME, &model, &file), ZERO_ERR_INVALID,
                 "give --seq 10,");
    zero_model_destroy(&model);
}

/* The status of opening the file and reading all of it. */
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

static void refuses_as(const zero_shape *s, zero_status code, const char *const *texts)
{
    zero_model model = built(s);
    zero_status st = read_all(&model);
    if (st != code) fail_msg("status %d: %s", (int)st, zero_last_error());
    for (int i = 0; texts[i]; i++) assert_told(texts[i]);
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

TEST(what_does_not_fit_is_named_with_its_shapes)
{
    REFUSES(ZERO_ERR_FORMAT, MADE(.without = "h.1.ln_2.bias"),
            "made.safetensors does not hold this model", "h.1.ln_2.bias [24] is missing");
    REFUSES(ZERO_ERR_FORMAT, MADE(.extra = {{"h.0.attn.rotary", "F32", 2, {3, 4}}}),
            "h.0.attn.rotary [3, 4] is not one of the model's");
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
            "ln_f.bias [24] is missing; ", "a\\u{1B}b [2] is not one of",
            "other [2] is not one of");
    REFUSES(ZERO_ERR_FORMAT,
            MADE(.prefix = "transformer.", .extra = {{"ln_f.bias", "F32", 1, {24}}}),
            "ln_f.bias [24] is not one of the model's");
    REFUSES(
        ZERO_ERR_FORMAT,
        MADE(.reshaped = "h.0.attn.c_attn.weight", .extra = {{NULL, NULL, 2, {72, 24}}}),
        "is [72, 24] and should be [24, 72], transposed: this is nn.Linear's order");
    REFUSES(ZERO_ERR_FORMAT, MADE(.without = "wte.weight"),
            "not the weights of a GPT-2: expected matrices wte.weight and wpe.weight",
            "its first tensor is ln_f.bias");
    REFUSES(ZERO_ERR_UNSUPPORTED, MADE(.head = 2), "lm_head.weight is not wte.weight");
    REFUSES(ZERO_ERR_FORMAT, MADE(.extra = {{"lm_head.weight", "F32", 2, {70, 24}}}),
            "lm_head.weight is [70, 24] and should be [71, 24]");
    REFUSES(ZERO_ERR_UNSUPPORTED, MADE(.extra = {{"lm_head.weight", "F16", 2, {71, 24}}}),
            "lm_head.weight is not wte.weight");
}

TEST(numbers_that_are_not_finite_are_named_by_their_place)
{
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

TEST(another_shape_is_told_by_the_options_that_give_it)
{
    made_file made = {.prefix = "", .type = "F32"};
    make(&made);
    zero_shape other = shape;
    other.vocab = 512;
    refuses_as(&other, ZERO_ERR_INVALID,
               (const char *const[]){"(vocab 512)", "give --vocab 71,", NULL});
    other = (zero_shape){.layers = 3, .hidden = 48, .heads = 3, .seq = 32, .vocab = 71};
    refuses_as(&other, ZERO_ERR_INVALID,
               (const char *const[]){"(layers 3, hidden 48, seq 32)",
                                     "give --layers 2 --hidden 24 --seq 10,", NULL});
}

TEST(other_files_are_refused)
{
    zero_hugging_face file;
    zero_model model = built(&shape);
    assert_int_equal(zero_hugging_face_open("/dev/zero", &model, &file), ZERO_ERR_IO);
    make(&(made_file){.prefix = "", .type = "F32"});
    assert_int_equal(truncate(FILE_NAME, 5000), 0);
    assert_int_equal(zero_hugging_face_open(FILE_NAME, &model, &file), ZERO_ERR_FORMAT);
    zero_model_destroy(&model);
}

/* ---- configurations of others ---- */

static zero_status open_with(const char *json, const zero_shape *s)
{
    zero_hugging_face file;
    zero_model model = built(s);
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

TEST(the_configuration_beside_it_must_agree)
{
    make(&(made_file){.prefix = "", .type = "F32"});
    for (test_table t = table_open("checkpoint/configs_beside.txt"); table_next(&t);) {
        zero_status st = open_with(t.field[0], &shape);
        if (st != status_of(t.field[1])) fail_msg("%s: %s", t.field[0], zero_last_error());
        if (st != ZERO_OK) assert_told(t.field[2]);
    }
}

int main(void)
{
    return run_here(enter, leave);
}
