/* The files of a model are found where users have them: in a folder, in several files, in the hub's
 * cache. Files of other formats are named, with what to do. */
#define TEST_HAS_MAIN
#include "support/hugging_face_test.h"

#include <sys/stat.h>

static void put(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void put_text(const char *path, const char *text)
{
    put(path, text, strlen(text));
}

static void reads_values(const char *path)
{
    zero_hugging_face file;
    zero_shape found;
    zero_model model = built(&shape);
    check_ok(zero_hugging_face_find_shape(path, &found));
    assert_true(found.layers == 2 && found.heads == 3 && found.vocab == 71);
    check_ok(zero_hugging_face_open(path, &model, &file));
    assert_values(&file, &model);
    zero_hugging_face_close(&file);
    zero_model_destroy(&model);
}

static void refuses(const char *path, zero_status code, const char *text)
{
    zero_shape found;
    zero_status st = zero_hugging_face_find_shape(path, &found);
    if (st != code || !strstr(zero_last_error(), text))
        fail_msg("status %d, '%s' lacks '%s'", (int)st, zero_last_error(), text);
}

static void write_folder(void)
{
    zero_model model = built(&shape);
    check_ok(write_to(DIR_NAME, &model, &values, NULL));
    zero_model_destroy(&model);
}

TEST(a_folder_and_its_file_are_one_model)
{
    write_folder();
    reads_values(DIR_NAME);
    reads_values(DIR_NAME "//");
    reads_values(DIR_NAME "/model.safetensors");
    assert_int_equal(chdir(DIR_NAME), 0);
    reads_values(".");
    reads_values("model.safetensors");
    assert_int_equal(chdir(".."), 0);
    remove_dir(DIR_NAME);
}

/* ---- several files ---- */

/* Every second tensor of the file goes into one more file. */
static void write_part(const zero_file *from, const zero_safetensors *table, int which,
                       const char *path)
{
    zero_safetensors_entry entries[64];
    zero_bytes out = {0}, data = {0};
    int n = 0;
    for (int i = which; i < table->n; i += 2) {
        const zero_safetensors_entry *e = &table->entries[i];
        entries[n++] = *e;
        check_ok(zero_bytes_reserve(&data, e->end - e->begin));
        check_ok(zero_file_read(from, e->begin, data.bytes + data.len, e->end - e->begin));
        data.len += e->end - e->begin;
    }
    check_ok(zero_safetensors_write_header(n, entries, NULL, &out));
    check_ok(zero_bytes_append(&out, data.bytes, data.len));
    put(path, out.bytes, out.len);
    zero_bytes_destroy(&data);
    zero_bytes_destroy(&out);
}

/* `torn`: the index says that all tensors are in the first file. */
static void write_index(const zero_safetensors *table, bool torn)
{
    FILE *file = fopen(DIR_NAME "/model.safetensors.index.json", "w");
    assert_non_null(file);
    fprintf(file, "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {");
    for (int i = 0; i < table->n; i++)
        fprintf(file, "%s\"%s\": \"%s\"", i > 0 ? ", " : "", table->entries[i].name,
                torn || i % 2 == 0 ? "a.safetensors" : "b.safetensors");
    fprintf(file, "}}\n");
    assert_int_equal(fclose(file), 0);
}

TEST(several_files_are_one_model)
{
    zero_file file;
    zero_safetensors table;
    zero_bytes header = {0};
    write_folder();
    check_ok(zero_file_open(DIR_NAME "/model.safetensors", &file));
    check_ok(zero_safetensors_read_header(&file, &header));
    check_ok(zero_safetensors_parse("", file.bytes, &header, &table));
    write_part(&file, &table, 0, DIR_NAME "/a.safetensors");
    write_part(&file, &table, 1, DIR_NAME "/b.safetensors");
    assert_int_equal(unlink(DIR_NAME "/model.safetensors"), 0);
    write_index(&table, true);
    refuses(DIR_NAME, ZERO_ERR_FORMAT, "index.json: \"weight_map\": the file \"a.safe");
    write_index(&table, false);
    reads_values(DIR_NAME);
    reads_values(DIR_NAME "/model.safetensors.index.json");
    refuses(DIR_NAME "/b.safetensors", ZERO_ERR_FORMAT, "b.safetensors");
    assert_int_equal(unlink(DIR_NAME "/b.safetensors"), 0);
    refuses(DIR_NAME, ZERO_ERR_IO, DIR_NAME "/b.safetensors: cannot be opened");
    zero_safetensors_destroy(&table);
    zero_bytes_destroy(&header);
    zero_file_close(&file);
    remove_dir(DIR_NAME);
}

/* ---- the hub's cache ---- */

#define CACHE    "models--a--b"
#define SNAPSHOT CACHE "/snapshots/0123abcd"

TEST(the_main_snapshot_of_the_hubs_cache_is_taken)
{
    write_folder();
    assert_int_equal(mkdir(CACHE, 0700) + mkdir(CACHE "/refs", 0700), 0);
    assert_int_equal(mkdir(CACHE "/snapshots", 0700) + mkdir(CACHE "/blobs", 0700), 0);
    refuses(CACHE, ZERO_ERR_IO, "without refs/main: give one of the folders in its snap");
    put_text(CACHE "/refs/main", "0123abcd\n");
    refuses(CACHE, ZERO_ERR_IO, SNAPSHOT ": holds no weights");
    assert_int_equal(rename(DIR_NAME, SNAPSHOT), 0);
    assert_int_equal(rename(SNAPSHOT "/model.safetensors", CACHE "/blobs/x"), 0);
    assert_int_equal(symlink("../../blobs/x", SNAPSHOT "/model.safetensors"), 0);
    reads_values(CACHE);
    reads_values(SNAPSHOT);
    static const char *const names[] = {"", "\n", "..", "../../x", "a/b", ".hidden"};
    for (size_t i = 0; i < COUNT(names); i++) {
        put_text(CACHE "/refs/main", names[i]);
        refuses(CACHE, ZERO_ERR_FORMAT, "refs/main: expected the name of a snapshot");
    }
    assert_int_equal(unlink(CACHE "/refs/main") + unlink(CACHE "/blobs/x"), 0);
    assert_int_equal(unlink(SNAPSHOT "/model.safetensors"), 0);
    assert_int_equal(unlink(SNAPSHOT "/config.json"), 0);
    assert_int_equal(unlink(SNAPSHOT "/generation_config.json"), 0);
    assert_int_equal(rmdir(SNAPSHOT) + rmdir(CACHE "/snapshots"), 0);
    assert_int_equal(rmdir(CACHE "/refs") + rmdir(CACHE "/blobs") + rmdir(CACHE), 0);
}

/* ---- other formats ---- */

TEST(other_formats_are_named_with_what_to_do)
{
    static const struct {
        const char *name, *text;
    } files[] = {
        {"pytorch_model.bin", "a file of PyTorch, and this program reads safetensors"},
        {"pytorch_model.bin.index.json", "M.from_pretrained('out').save_pretrained("},
        {"tf_model.h5", "a file of TensorFlow"},
        {"flax_model.msgpack", "a file of Flax"},
        {"adapter_model.safetensors", "merge_and_unload()"},
    };
    assert_int_equal(mkdir(DIR_NAME, 0700), 0);
    refuses(DIR_NAME, ZERO_ERR_IO, "holds no weights: expected model.safetensors, or ");
    for (size_t i = 0; i < COUNT(files); i++) {
        char path[100];
        snprintf(path, sizeof path, DIR_NAME "/%s", files[i].name);
        put_text(path, "x");
        refuses(DIR_NAME, ZERO_ERR_UNSUPPORTED, files[i].text);
        refuses(path, ZERO_ERR_UNSUPPORTED, path);
        assert_int_equal(unlink(path), 0);
    }
    put(FILE_NAME, "PK\3\4xxxxxxxx", 12);
    refuses(FILE_NAME, ZERO_ERR_UNSUPPORTED, "torch.load('" FILE_NAME "'");
    put(FILE_NAME, "\200\2xxxxxxxx", 10);
    refuses(FILE_NAME, ZERO_ERR_UNSUPPORTED, "a file of PyTorch");
    put(FILE_NAME, "", 0);
    refuses(FILE_NAME, ZERO_ERR_FORMAT, "found 0 bytes in all");
    put_text(DIR_NAME "/pytorch_model.bin", "x");
    put_text(DIR_NAME "/config.json",
             "{\"model_type\": \"gptj\"}"); /* the first thing to say */
    refuses(DIR_NAME, ZERO_ERR_UNSUPPORTED, "a model of the type gptj");
    refuses("openai-community/gpt2", ZERO_ERR_IO, "hf download NAME --local-dir DIR");
    remove_dir(DIR_NAME);
}

int main(void)
{
    return run_here(enter, leave);
}
