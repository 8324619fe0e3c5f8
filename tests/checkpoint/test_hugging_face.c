/* GPT-2 to Hugging Face's files: they have the right names and shapes, are read back, and exist
 * completely or not at all. */
#include "support/hugging_face_test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "data/tokenizer_find.h"
#include "io/json_input.h"

#define GOLDEN TEST_SOURCE_DIR "/tests/golden/tokenizers/"

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    zero_model model = model_of(&shape);
    zero_hugging_face file;
    check_ok(zero_hugging_face_write(DIR_NAME, &model, &values, NULL));
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
static void a_matrix_of_many_buffers_is_read_back(void **state)
{
    (void)state;
    zero_gpt2_shape large = {
        .layers = 1, .hidden = 96, .heads = 2, .seq = 5, .vocab = 1021};
    zero_model model = model_of(&large);
    zero_hugging_face file;
    check_ok(zero_hugging_face_write(DIR_NAME "/", &model, &values, NULL));
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
    if (!e) fail_msg("%s is missing", name);
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
    check_ok(zero_hugging_face_write(DIR_NAME, &model, &values, NULL));
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
    check_ok(zero_hugging_face_write_config(&shape, NULL, &text));
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
    zero_model model = model_of(&shape);
    zero_tokenizer tok = tokenizer_of(file);
    check_ok(zero_hugging_face_write(DIR_NAME, &model, &values, &tok));
    zero_tokenizer back = tokenizer_of(DIR_NAME);
    int32_t token;
    assert_true(zero_tokenizer_same_texts(&tok, &back, &token));
    zero_tokenizer_destroy(&back);
    zero_tokenizer_destroy(&tok);
    zero_model_destroy(&model);
}

static void the_tokenizer_goes_with_the_weights(void **state)
{
    (void)state;
    static const char own[] =
        "{\"format\": \"zero tokenizer\", \"version\": 1, \"name\": \"bpe:257\", "
        "\"merges\": [[101, 32]]}";
    write_with(GOLDEN "gpt2.json");
    assert_holds("generation_config.json", "\"eos_token_id\": 0");
    assert_holds("config.json", "\"eos_token_id\": 0");
    assert_holds("tokenizer_config.json", "\"eos_token\": \"<|endoftext|>\"");
    assert_holds("tokenizer_config.json", "\"model_max_length\": 10");
    remove_dir(DIR_NAME);

    FILE *file = fopen(FILE_NAME, "w");
    assert_true(file && fputs(own, file) >= 0 && fclose(file) == 0);
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

static void exports_are_for_all_users_unless_the_umask_forbids(void **state)
{
    (void)state;
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
    zero_model model = model_of(&shape);
    assert_int_equal(zero_hugging_face_write(path, &model, weights, NULL), code);
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
    assert_int_equal(mkdir(".tmp-" DIR_NAME, 0700), 0); /* left by a crash */
    assert_int_equal(close(creat(".tmp-" DIR_NAME "/model.safetensors", 0600)), 0);
    assert_int_equal(mkdir(DIR_NAME, 0700), 0);
    check_ok(zero_hugging_face_write(DIR_NAME, &model, &values, NULL));
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_matrix_of_many_buffers_is_read_back),
        cmocka_unit_test(names_and_shapes_are_theirs),
        cmocka_unit_test(the_configuration_is_theirs),
        cmocka_unit_test(the_tokenizer_goes_with_the_weights),
        cmocka_unit_test(exports_are_for_all_users_unless_the_umask_forbids),
        cmocka_unit_test(a_directory_is_there_completely_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
