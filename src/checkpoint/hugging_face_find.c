/* The files of a model, by what a user names: a folder, a file, or a folder of the hub's
 * cache. */

#include "base/text.h"
#include "checkpoint/hugging_face.h"

#define INDEX_END ".index.json"

void zero_hugging_face_beside(const zero_hugging_face_found *found, const char *name,
                              char path[ZERO_STORAGE_FILE_PATH])
{
    snprintf(path, ZERO_STORAGE_FILE_PATH, "%s/%s", found->folder, name);
}

static bool has(const zero_hugging_face_found *found, const char *name)
{
    char path[ZERO_STORAGE_FILE_PATH];
    zero_hugging_face_beside(found, name, path);
    return zero_path_look(path) != ZERO_PATH_OF_NOTHING;
}

/* ---- weights that are not read ---- */

/* In the order in which a folder is searched for them. */
static const struct {
    const char *name, *what;
    bool is_adapter;
} others[] = {{"pytorch_model.bin", "a file of PyTorch", false},
              {"pytorch_model.bin" INDEX_END, "the index of PyTorch's files", false},
              {"tf_model.h5", "a file of TensorFlow", false},
              {"flax_model.msgpack", "a file of Flax", false},
              {"adapter_model.safetensors", "an adapter beside a model", true}};

enum { N_OTHERS = ZERO_COUNT(others) };

zero_status zero_hugging_face_check_weights(const zero_hugging_face_found *found)
{
    char path[ZERO_STORAGE_FILE_PATH];
    for (int i = 0; i < N_OTHERS; i++) {
        zero_hugging_face_beside(found, others[i].name, path);
        bool is_there = !found->weights[0] && zero_path_look(path) != ZERO_PATH_OF_NOTHING;
        if (is_there || zero_ends_in(found->weights, others[i].name)) {
            const char *file = is_there ? path : found->weights;
            ZERO_FAIL_IF(others[i].is_adapter, ZERO_ERR_UNSUPPORTED,
                         "%.200s: %s: merge it into the model with peft's "
                         "merge_and_unload(), and save that with save_pretrained('OUT')",
                         file, others[i].what);
            return zero_fail(
                ZERO_ERR_UNSUPPORTED,
                "%.200s: %s, and this program reads safetensors: convert the folder with "
                "python3 -c \"from transformers import AutoModelForCausalLM as M; "
                "M.from_pretrained('%.200s').save_pretrained('OUT')\"",
                file, others[i].what, found->folder);
        }
    }
    if (found->weights[0]) {
        /* PyTorch's files, whose names may be anything, are zip archives; old ones are
         * pickles. */
        unsigned char first[4] = {0};
        ZERO_AT_END(zero_file_close) zero_file file = {0};
        ZERO_TRY(zero_file_open(found->weights, &file));
        ZERO_TRY(zero_file_read(&file, 0, first, zero_min_size(file.bytes, sizeof first)));
        if (memcmp(first, "PK\3\4", 4) != 0 && memcmp(first, "\200\2", 2) != 0)
            return ZERO_OK;
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "%.200s: a file of PyTorch, and this program reads safetensors: "
                         "convert it with python3 -c \"import torch, safetensors.torch as "
                         "s; s.save_file({k: v.clone() for k, v in torch.load('%.200s', "
                         "weights_only=True).items()}, 'model.safetensors')\"",
                         found->weights, found->weights);
    }
    return zero_fail(ZERO_ERR_IO,
                     "%s: holds no weights: expected " ZERO_HUGGING_FACE_MODEL
                     ", or " ZERO_HUGGING_FACE_INDEX " with the files that it names",
                     found->folder);
}

/* ---- the hub's cache ---- */

#define MAIN           "refs/main"
#define REVISION_BYTES 200

/* ---- what was named ---- */

static zero_status find_in_folder(zero_hugging_face_found *found)
{
    if (has(found, "snapshots") && !has(found, ZERO_HUGGING_FACE_CONFIG)) {
        /* models--NAME/refs/main has the name of a folder in models--NAME/snapshots. */
        char path[ZERO_STORAGE_FILE_PATH];
        ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
        zero_hugging_face_beside(found, MAIN, path);
        ZERO_FAIL_IF(!has(found, MAIN), ZERO_ERR_IO,
                     "%s: a folder of the hub's cache without " MAIN
                     ": give one of the folders in its snapshots/",
                     found->folder);
        ZERO_TRY(zero_bytes_read_at_most(&text, path, REVISION_BYTES));
        ZERO_TRY(zero_bytes_append(&text, "", 1));
        char folder[ZERO_STORAGE_FILE_PATH];
        int n = (int)strcspn((const char *)text.bytes, "/\r\n");
        bool is_name = n > 0 && text.bytes[0] != '.' && text.bytes[n] != '/';
        if (is_name)
            is_name = zero_print(folder, "%s/snapshots/%.*s", found->folder, n,
                                 (const char *)text.bytes) < (int)sizeof found->folder;
        ZERO_FORMAT_IF(!is_name, "%s: expected the name of a snapshot", path);
        memcpy(found->folder, folder, sizeof found->folder);
    }
    found->is_index =
        !has(found, ZERO_HUGGING_FACE_MODEL) && has(found, ZERO_HUGGING_FACE_INDEX);
    const char *name = found->is_index ? ZERO_HUGGING_FACE_INDEX : ZERO_HUGGING_FACE_MODEL;
    if (has(found, name)) zero_hugging_face_beside(found, name, found->weights);
    return ZERO_OK;
}

zero_status zero_hugging_face_find(const char *path, zero_hugging_face_found *found)
{
    zero_hugging_face_found f = {.folder = ""};
    ZERO_TRY(zero_storage_check_length(path, ZERO_STORAGE_PATH - REVISION_BYTES - 64));
    const zero_path_kind kind = zero_path_look(path);
    ZERO_FAIL_IF(kind == ZERO_PATH_OF_NOTHING && errno == ENOENT, ZERO_ERR_IO,
                 "%s: no such file or folder: expected " ZERO_HUGGING_FACE_MODEL
                 " or its folder; a model of the Hugging Face hub is downloaded first: hf "
                 "download NAME --local-dir DIR",
                 path);
    if (kind == ZERO_PATH_OF_DIRECTORY) {
        size_t n = strlen(path);
        while (n > 1 && path[n - 1] == '/') n--;
        zero_print(f.folder, "%.*s", (int)n, path);
        ZERO_TRY(find_in_folder(&f));
    } else {
        const char *slash = strrchr(path, '/');
        int n = slash ? (int)(slash - path) : 1;
        zero_print(f.folder, "%.*s", n > 0 ? n : 1, slash ? path : ".");
        zero_print(f.weights, "%s", path);
        f.is_index = zero_ends_in(path, INDEX_END);
    }
    *found = f;
    return ZERO_OK;
}
