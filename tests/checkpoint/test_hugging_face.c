/* GPT-2 to Hugging Face's files: they have the right names and shapes, are read back, and exist
 * completely or not at all. */
#define TEST_HAS_MAIN
#include "support/hugging_face_test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "data/tokenizer_find.h"
#include "io/json_input.h"
#include "support/laws.h"

#define GOLDEN TEST_SOURCE_DIR "/tests/golden/tokenizers/"

TEST(what_is_written_is_read_back)
{
    zero_model model = built(&shape);
    zero_hugging_face file;
    check_ok(write_to(DIR_NAME, &model, &values, NULL));
    check_ok(zero_hugging_face_open(DIR_NAME, &model, &file));
    assert_values(&file, &model);
    zero_hugging_face_close(&file);
    check_ok(zero_hugging_face_open(DIR_NAME "/model.safetensors", &model, &file));
    zero_hugging_face_close(&file);
    assert_false(exists(".tmp-" DIR_NAME));
    remove_dir(DIR_NAME);
    zero_model_destroy(&model);
}

/* More than the buffers hold, and not a multiple of them. */
TEST(a_matrix_of_many_buffers_is_read_back)
{
    zero_shape large = {.layers = 1, .hidden = 96, .heads = 2, .seq = 5, .vocab = 1021};
    zero_model model = built(&large);
    zero_hugging_face file;
    check_ok(write_to(DIR_NAME "/", &model, &values, NULL));
    check_ok(zero_hugging_face_open(DIR_NAME "/", &model, &file));
    assert_values(&file, &model);
    zero_hugging_face_close(&file);
    remove_dir(DIR_NAME);
    zero_model_destroy(&model);
}

TEST(names_and_shapes_are_theirs)
{
    zero_model model = built(&shape);
    zero_safetensors table;
    check_ok(write_to(DIR_NAME, &model, &values, NULL));
    assert_true(read_table(&table) == 4 * (uint64_t)model.n_params); /* no padding */
    assert_int_equal(table.n, 2 + 2 * 12 + 2);                       /* no head */
    assert_string_equal(zero_safetensors_metadata(&table, "format"), "pt");
    assert_entry(&table, "transformer.wte.weight", 71, 24);
    assert_entry(&table, "transformer.wpe.weight", 10, 24);
    assert_entry(&table, "transformer.h.1.ln_1.weight", 0, 24);
    assert_entry(&table, "transformer.h.1.attn.c_attn.weight", 24, 72);
    assert_entry(&table, "transformer.h.1.attn.c_attn.bias", 0, 72);
    assert_entry(&table, "transformer.h.0.mlp.c_fc.weight", 24, 96);
    assert_entry(&table, "transformer.h.0.mlp.c_proj.weight", 96, 24);
    assert_entry(&table, "transformer.ln_f.bias", 0, 24);
    zero_safetensors_destroy(&table);
    remove_dir(DIR_NAME);
    zero_model_destroy(&model);
}

/* The names of the files that the index at DIR_NAME has, and its metadata. */
static void check_index(const zero_model *model, int n_files)
{
    zero_bytes text = {0};
    zero_safetensors_index index;
    int64_t n;
    char name[64], path[100];
    check_ok(zero_bytes_read(&text, DIR_NAME "/model.safetensors.index.json"));
    check_ok(zero_safetensors_read_index("i", &text, &index));
    assert_int_equal(index.n_files, n_files);
    for (int i = 0; i < n_files; i++) {
        snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", i + 1, n_files);
        assert_string_equal(index.files[i], name);
        snprintf(path, sizeof path, DIR_NAME "/%s", name);
        assert_true(exists(path));
    }
    const json_t *about = json_object_get(index.root, "metadata");
    check_ok(zero_json_whole("i", about, "total_size", 0, INT64_MAX, &n));
    assert_int_equal(n, 4 * model->n_params);
    assert_int_equal(json_object_size(json_object_get(index.root, "weight_map")),
                     model->n_tensors);
    assert_false(exists(DIR_NAME "/model.safetensors"));
    zero_safetensors_destroy_index(&index);
    zero_bytes_destroy(&text);
}

/* Whatever the limit is, no file has more than it, but one tensor alone; and no tensor
 * begins a file that would have fitted into the one before. */
TEST(a_large_model_lies_in_several_files)
{
    static const int64_t limits[] = {1, 4 * 71 * 24, 4 * 71 * 24 + 4 * 10 * 24, 12000,
                                     30000};
    zero_model model = built(&shape);
    for (size_t k = 0; k < COUNT(limits); k++) {
        zero_hugging_face file;
        int n_files = 0;
        int64_t bytes = INT64_MAX / 2;
        for (int i = 0; i < model.n_tensors; i++) {
            int64_t own = 4 * size_of(&model.tensors[i]);
            if (bytes + own > limits[k]) n_files++;
            bytes = bytes + own > limits[k] ? own : bytes + own;
        }
        const zero_hugging_face_export e = {&model, &values,   NULL,
                                            NULL,   limits[k], ZERO_FP32};
        check_ok(zero_hugging_face_write(DIR_NAME, &e));
        check_index(&model, n_files);
        check_ok(zero_hugging_face_open(DIR_NAME, &model, &file));
        assert_int_equal(file.n_files, n_files);
        assert_values(&file, &model);
        zero_hugging_face_close(&file);
        remove_dir(DIR_NAME);
    }
    zero_hugging_face_export e = {&model,   &values, NULL, NULL, 4 * model.n_params,
                                  ZERO_FP32};
    check_ok(zero_hugging_face_write(DIR_NAME, &e));
    assert_true(exists(DIR_NAME "/model.safetensors"));
    assert_false(exists(DIR_NAME "/model.safetensors.index.json"));
    remove_dir(DIR_NAME);
    zero_model_destroy(&model);
}

/* The values are exact in all of these types. */
TEST(numbers_are_of_the_type_that_is_wished)
{
    static const char *const theirs[ZERO_TYPES] = {"float32", "bfloat16", "float16"};
    zero_model model = built(&shape);
    for (int type = 0; type < ZERO_TYPES; type++) {
        const zero_hugging_face_export e = {&model, &values, NULL,
                                            NULL,   9000,    (zero_type)type};
        zero_hugging_face file;
        zero_bytes text = {0};
        json_t *root;
        check_ok(zero_hugging_face_write(DIR_NAME, &e));
        check_ok(zero_hugging_face_open(DIR_NAME, &model, &file));
        assert_int_equal(file.places[3].type, type);
        assert_true((file.n_files > 7) == (type == ZERO_FP32));
        assert_values(&file, &model);
        zero_hugging_face_close(&file);
        check_ok(zero_bytes_read(&text, DIR_NAME "/config.json"));
        check_ok(zero_json_parse("c", text.bytes, text.len, &root));
        assert_string_equal(json_string_value(json_object_get(root, "torch_dtype")),
                            theirs[type]);
        json_decref(root);
        zero_bytes_destroy(&text);
        remove_dir(DIR_NAME);
    }
    zero_model_destroy(&model);
}

static zero_status fill_large(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    (void)tensor;
    for (int64_t i = begin; i < end; i++) out[i - begin] = *(const float *)arg;
    return ZERO_OK;
}

TEST(a_number_that_fp16_cannot_hold_is_named)
{
    float large = 65519.0f; /* rounds to the largest */
    zero_model model = built(&shape);
    const zero_weights weights = {.fill = fill_large, .arg = &large};
    const zero_hugging_face_export e = {&model, &weights, NULL, NULL, 0, ZERO_FP16};
    check_ok(zero_hugging_face_write(DIR_NAME, &e));
    remove_dir(DIR_NAME);
    large = -65520.0f;
    assert_int_equal(zero_hugging_face_write(DIR_NAME, &e), ZERO_ERR_INVALID);
    assert_non_null(strstr(zero_last_error(), "wte.weight has -65520, which fp16 cannot"));
    assert_false(exists(DIR_NAME));
    zero_model_destroy(&model);
}

TEST(the_configuration_is_theirs)
{
    zero_bytes text = {0};
    zero_shape read;
    json_t *root;
    zero_model model = built(&shape);
    check_ok(zero_hugging_face_write_config(&(zero_hugging_face_export){.model = &model},
                                            &text));
    zero_model_destroy(&model);
    check_ok(zero_hugging_face_read_config("c", &text, &read));
    assert_true(read.layers == 2 && read.hidden == 24 && read.heads == 3);
    assert_true(read.seq == 10 && read.vocab == 71);
    check_ok(zero_json_parse("c", text.bytes, text.len, &root));
    LAWS(root, "n_ctx == 10 && model_type == \"gpt2\"",
         "activation_function == \"gelu_new\" && layer_norm_epsilon == 1e-5",
         "abs(attn_pdrop - 0.1) < 1e-8");
    assert_true(json_is_null(json_object_get(root, "eos_token_id")));
    json_decref(root);
    zero_bytes_destroy(&text);
}

/* ---- what began in other files ---- */

#define HUGE_LENGTH "1000000000000000019884624838656" /* transformers' for "any" */

static const char *const foreign[][2] = {
    {"config.json", "{\"model_type\": \"gpt2\", \"hidden_size\": 24, \"n_positions\": 16, "
                    "\"eos_token_id\": 5, \"pad_token_id\": 6, \"attn_pdrop\": 0.1, "
                    "\"dtype\": \"bfloat16\", \"x\": {\"y\": [1.25e-07, null]}}"},
    {"tokenizer_config.json",
     "{\"eos_token\": {\"content\": \"</s>\"},\n \"model_max_length\" : " HUGE_LENGTH
     ", \"model_input_names\": [\"input_ids\"]}"},
    {"chat_template.jinja", "{{ 'a\"b\\n\xc3\xa9' }}\n"},
    {"special_tokens_map.json", "{ \"eos_token\" : \"</s>\" }"}};

enum { N_FOREIGN = COUNT(foreign) };

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The files, kept as a run keeps them. */
static json_t *keep_foreign(void)
{
    zero_hugging_face_found found;
    json_t *kept = NULL;
    char path[100];
    assert_int_equal(mkdir(DIR_NAME, 0700), 0);
    for (int i = 0; i < N_FOREIGN; i++) {
        snprintf(path, sizeof path, DIR_NAME "/%s", foreign[i][0]);
        put(path, foreign[i][1]);
    }
    put(DIR_NAME "/README.md", "not kept");
    check_ok(zero_hugging_face_find(DIR_NAME, &found));
    check_ok(zero_hugging_face_keep(&found, true, &kept));
    remove_dir(DIR_NAME);
    assert_int_equal(json_object_size(kept), N_FOREIGN);
    check_ok(zero_hugging_face_check_kept("", kept));
    return kept;
}

/* `positions`: of the model that is written. */
static void write_kept(const json_t *kept, int64_t positions)
{
    zero_shape s = shape;
    s.seq = positions;
    zero_model model = built(&s);
    zero_tokenizer tok;
    check_ok(zero_tokenizer_open(GOLDEN "gpt2.json", &tok));
    const zero_hugging_face_export e = {&model, &values, &tok, kept, 0, ZERO_FP32};
    check_ok(zero_hugging_face_write(DIR_NAME, &e));
    zero_tokenizer_destroy(&tok);
    zero_model_destroy(&model);
}

static void assert_is(const char *name, const char *text)
{
    char path[200];
    zero_bytes found = {0};
    snprintf(path, sizeof path, DIR_NAME "/%s", name);
    check_ok(zero_bytes_read(&found, path));
    if (found.len != strlen(text) || memcmp(found.bytes, text, found.len) != 0)
        fail_msg("%s is '%.*s'", path, (int)found.len, found.bytes);
    zero_bytes_destroy(&found);
}

TEST(files_that_were_kept_are_written_as_they_were)
{
    json_t *kept = keep_foreign();
    write_kept(kept, 16);
    for (int i = 1; i < N_FOREIGN; i++) assert_is(foreign[i][0], foreign[i][1]);
    assert_is("generation_config.json",
              "{\n  \"eos_token_id\": 5,\n  \"pad_token_id\": 6\n}\n");
    remove_dir(DIR_NAME);
    json_object_set_new(kept, "generation_config.json", json_string("{\"top_k\": 3}"));
    write_kept(kept, 16);
    assert_is("generation_config.json", "{\"top_k\": 3}");
    remove_dir(DIR_NAME);
    json_decref(kept);
}

TEST(a_configuration_that_was_kept_has_the_shape_that_is_written)
{
    zero_bytes text = {0};
    zero_shape read;
    json_t *kept = keep_foreign(), *root;
    write_kept(kept, 12);
    check_ok(zero_bytes_read(&text, DIR_NAME "/config.json"));
    check_ok(zero_hugging_face_read_config("c", &text, &read));
    assert_true(read.layers == 2 && read.heads == 3 && read.seq == 12 && read.vocab == 71);
    check_ok(zero_json_parse("c", text.bytes, text.len, &root));
    LAWS(root, "!hidden_size && !dtype && torch_dtype == \"float32\" && eos_token_id == 5",
         "attn_pdrop == 0.1 && x/y/0 == 1.25e-07");
    /* Texts of more tokens than the model has positions would not be cut. */
    const char *was = strstr(foreign[1][1], HUGE_LENGTH);
    char cut[200];
    snprintf(cut, sizeof cut, "%.*s12%s", (int)(was - foreign[1][1]), foreign[1][1],
             was + strlen(HUGE_LENGTH));
    assert_is("tokenizer_config.json", cut);
    zero_bytes_destroy(&text);
    remove_dir(DIR_NAME);
    json_decref(root);
    json_decref(kept);
}

TEST(a_length_that_the_positions_allow_stays)
{
    static const char own[] = "{\"model_max_length\": 9}";
    json_t *kept = keep_foreign();
    json_object_set_new(kept, "tokenizer_config.json", json_string(own));
    write_kept(kept, 12);
    assert_is("tokenizer_config.json", own);
    remove_dir(DIR_NAME);
    json_decref(kept);
}

TEST(what_cannot_be_kept_is_refused)
{
    zero_hugging_face_found found;
    json_t *kept = NULL;
    assert_int_equal(mkdir(DIR_NAME, 0700), 0);
    check_ok(zero_hugging_face_find(DIR_NAME, &found));
    check_ok(zero_hugging_face_keep(&found, true, &kept));
    assert_null(kept);
    put(DIR_NAME "/chat_template.jinja", "\xff");
    assert_int_equal(zero_hugging_face_keep(&found, true, &kept), ZERO_ERR_FORMAT);
    assert_non_null(
        strstr(zero_last_error(), "chat_template.jinja: expected text in UTF-8"));
    assert_int_equal(truncate(DIR_NAME "/chat_template.jinja", (4 << 20) + 1), 0);
    assert_fails(zero_hugging_face_keep(&found, true, &kept), ZERO_ERR_FORMAT, "4194304");
    assert_null(kept);
    remove_dir(DIR_NAME);
}

/* ---- the tokenizer ---- */

static void assert_holds(const char *name, const char *text)
{
    char path[200];
    zero_bytes found = {0};
    snprintf(path, sizeof path, DIR_NAME "/%s", name);
    check_ok(zero_bytes_read(&found, path));
    check_ok(zero_bytes_append(&found, "", 1));
    if (!strstr((char *)found.bytes, text)) fail_msg("%s lacks '%s'", path, text);
    zero_bytes_destroy(&found);
}

static zero_tokenizer tokenizer_of(const char *file)
{
    zero_tokenizer tok;
    check_ok(zero_tokenizer_open(file, &tok));
    return tok;
}

static void write_with(const char *file)
{
    zero_model model = built(&shape);
    zero_tokenizer tok = tokenizer_of(file);
    check_ok(write_to(DIR_NAME, &model, &values, &tok));
    zero_tokenizer back = tokenizer_of(DIR_NAME);
    int32_t token;
    assert_true(zero_tokenizer_same_texts(&tok, &back, &token));
    zero_tokenizer_destroy(&back);
    zero_tokenizer_destroy(&tok);
    zero_model_destroy(&model);
}

TEST(the_tokenizer_goes_with_the_weights)
{
    static const char own[] =
        "{\"format\": \"zero tokenizer\", \"version\": 1, \"name\": \"bpe:257\", "
        "\"merges\": [[101, 32]]}";
    write_with(GOLDEN "gpt2.json");
    assert_holds("generation_config.json", "\"eos_token_id\": 0");
    assert_holds("config.json", "\"eos_token_id\": 0");
    assert_holds("tokenizer_config.json", "\"eos_token\": \"<|endoftext|>\"");
    assert_holds("tokenizer_config.json", "\"model_max_length\": 10");
    remove_dir(DIR_NAME);

    put(FILE_NAME, own);
    write_with(FILE_NAME);
    assert_holds("generation_config.json", "\"eos_token_id\": null");
    assert_holds("tokenizer_config.json", "\"PreTrainedTokenizerFast\"");
    assert_holds("tokenizer_config.json", "\"attention_mask\""); /* and no token types */
    assert_holds("tokenizer.json", "\"type\": \"ByteLevel\"");
    remove_dir(DIR_NAME);
}

static void assert_mode(const char *path, mode_t mode)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    if ((info.st_mode & 07777) != mode)
        fail_msg("%s has mode %o", path, (unsigned)info.st_mode & 07777);
}

TEST(exports_are_for_all_users_unless_the_umask_forbids)
{
    static const mode_t masks[] = {022, 077};
    for (int i = 0; i < 2; i++) {
        mode_t old = umask(masks[i]);
        write_with(GOLDEN "gpt2.json");
        umask(old);
        assert_mode(DIR_NAME, 0755 & ~masks[i]);
        assert_mode(DIR_NAME "/model.safetensors", 0644 & ~masks[i]);
        assert_mode(DIR_NAME "/config.json", 0644 & ~masks[i]);
        assert_mode(DIR_NAME "/tokenizer.json", 0644 & ~masks[i]);
        assert_mode(DIR_NAME "/tokenizer_config.json", 0644 & ~masks[i]);
        assert_mode(DIR_NAME "/generation_config.json", 0644 & ~masks[i]);
        remove_dir(DIR_NAME);
    }
}

static zero_status fail_late(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    if (tensor < 9) return fill(arg, tensor, begin, end, out);
    return zero_fail(ZERO_ERR_FORMAT, "the shard is torn");
}

static void refused_write(const char *path, const zero_weights *weights, zero_status code,
                          const char *text)
{
    zero_model model = built(&shape);
    assert_int_equal(write_to(path, &model, weights, NULL), code);
    assert_told(text);
    assert_false(exists(".tmp-" DIR_NAME));
    zero_model_destroy(&model);
}

TEST(a_directory_is_there_completely_or_not_at_all)
{
    zero_model model = built(&shape);
    zero_weights torn = {.fill = fail_late};
    refused_write(DIR_NAME, &torn, ZERO_ERR_FORMAT, "the shard is torn");
    assert_false(exists(DIR_NAME));
    assert_int_equal(mkdir(".tmp-" DIR_NAME, 0700), 0); /* left by a crash */
    assert_int_equal(close(creat(".tmp-" DIR_NAME "/model.safetensors", 0600)), 0);
    assert_int_equal(mkdir(DIR_NAME, 0700), 0);
    check_ok(write_to(DIR_NAME, &model, &values, NULL));
    assert_true(exists(DIR_NAME "/config.json") && !exists(".tmp-" DIR_NAME));
    refused_write(DIR_NAME, &values, ZERO_ERR_INVALID, "out exists");
    refused_write("nowhere/" DIR_NAME, &values, ZERO_ERR_IO, "nowhere: cannot be opened");
    refused_write("..", &values, ZERO_ERR_INVALID, "the name of a directory");
    refused_write("/", &values, ZERO_ERR_INVALID, "the name of a directory");
    refused_write("", &values, ZERO_ERR_INVALID, "the name of a directory");
    remove_dir(DIR_NAME);
    zero_model_destroy(&model);
}

int main(void)
{
    return run_here(enter, leave);
}
