#include "checkpoint/hugging_face.h"

#include "base/hash.h"

#define PIECE ZERO_HUGGING_FACE_PIECE

/* ---- values ---- */

/* Counts a whole piece by its bytes: no copy of the file has others. */
static void count_piece(zero_hugging_face *f, int tensor, int64_t begin, int64_t n,
                        const unsigned char *bytes)
{
    const zero_tensor *t = &f->model->tensors[tensor];
    zero_type type = f->places[tensor].type;
    zero_hugging_face_block *block =
        &f->blocks[f->first_block[tensor] + begin / f->block_len];
    block->is_read = true;
    if (begin % PIECE != 0 || (n < PIECE && begin + n < t->rows * t->cols)) return;
    block->sum += XXH3_64bits_withSeed(bytes, (size_t)n * zero_type_size(type),
                                       (uint64_t)begin + (uint64_t)type);
    block->n++;
}

/* A download that has not finished leaves zeros, and training does not: two rows of a
 * matrix, or all of a tensor, are more than chance. Biases may be zeros. */
static void note_zero(zero_hugging_face *f, int tensor, int64_t element)
{
    const zero_tensor *t = &f->model->tensors[tensor];
    zero_hugging_face_zeros *run = &f->run;
    if (t->init == ZERO_INIT_ZEROS) return;
    if (run->tensor != tensor || run->end != element)
        *run = (zero_hugging_face_zeros){tensor, element, element};
    run->end++;
    bool is_long = run->end - run->begin >= zero_min(2 * t->cols, t->rows * t->cols);
    bool is_first =
        f->zeros.tensor < 0 || (f->zeros.tensor == tensor && f->zeros.begin == run->begin);
    if (is_long && is_first) f->zeros = *run;
}

/* Reads n <= PIECE elements of a tensor, from `begin` on. */
static zero_status read_some(zero_hugging_face *f, int tensor, int64_t begin, int64_t n,
                             float *out)
{
    _Alignas(float) unsigned char bytes[PIECE * sizeof(float)];
    const zero_hugging_face_place *place = &f->places[tensor];
    const zero_file *file = &f->files[place->file];
    size_t size = zero_type_size(place->type);
    ZERO_TRY(
        zero_file_read(file, place->at + (uint64_t)begin * size, bytes, (size_t)n * size));
    zero_convert(place->type, ZERO_FP32, n, bytes,
                 out); /* the file is little-endian, too */
    uint32_t odd = 0;  /* no zero, and finite, as nearly all are: this loop is vectors */
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &out[i], sizeof bits);
        odd |= (bits & INT32_MAX) - 1u >= 0x7f7fffffu;
    }
    for (int64_t i = 0; odd && i < n; i++) {
        if (!isfinite(out[i])) {
            const zero_tensor *t = &f->model->tensors[tensor];
            char row[32] = "";
            if (t->decays) zero_print(row, "%" PRId64 ", ", (begin + i) / t->cols);
            return zero_fail(
                ZERO_ERR_FORMAT, "%s: %s[%s%" PRId64 "] is %g: expected finite numbers",
                file->path, t->name, row, (begin + i) % t->cols, (double)out[i]);
        }
        if (out[i] == 0.0f) note_zero(f, tensor, begin + i);
    }
    count_piece(f, tensor, begin, n, bytes);
    return ZERO_OK;
}

static zero_status fill(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    for (int64_t at = begin, stop; at < end; at = stop) {
        stop = zero_min((at / PIECE + 1) * PIECE, end);
        ZERO_TRY(read_some(arg, tensor, at, stop - at, out + (at - begin)));
    }
    return ZERO_OK;
}

zero_weights zero_hugging_face_weights(zero_hugging_face *file)
{
    return (zero_weights){.fill = fill, .arg = file};
}

zero_status zero_hugging_face_reread(zero_hugging_face *file, int tensor, int64_t begin,
                                     int64_t end)
{
    float values[PIECE];
    for (int64_t at = begin; at < end; at += PIECE)
        ZERO_TRY(fill(file, tensor, at, zero_min(at + PIECE, end), values));
    return ZERO_OK;
}

/* ---- opening ---- */

/* A head may be stored beside the embedding, and must be equal to it. */
static zero_status check_head(const zero_hugging_face *f, zero_hugging_face_place head)
{
    const zero_tensor *wte = &f->model->tensors[ZERO_WTE];
    zero_hugging_face_place own = f->places[ZERO_WTE];
    size_t bytes = (size_t)(wte->rows * wte->cols) * zero_type_size(own.type);
    bool same = head.type == own.type;
    for (size_t k = 0; same && k < bytes; k += PIECE) {
        unsigned char a[PIECE], b[PIECE];
        size_t n = zero_min_size(bytes - k, PIECE);
        ZERO_TRY(zero_file_read(&f->files[own.file], own.at + k, a, n));
        ZERO_TRY(zero_file_read(&f->files[head.file], head.at + k, b, n));
        same = memcmp(a, b, n) == 0;
    }
    ZERO_FAIL_IF(
        !same, ZERO_ERR_UNSUPPORTED, "%s: %s is not %s: the model has one matrix for both",
        f->files[head.file].path,
        zero_hugging_face_head(((const zero_shape *)f->model->shape)->kind), wte->name);
    return ZERO_OK;
}

/* Adds a file and its tensors. */
static zero_status open_file(const char *path, zero_hugging_face *f, zero_safetensors *all)
{
    ZERO_AT_END(zero_safetensors_destroy) zero_safetensors table = {0};
    ZERO_AT_END(zero_bytes_destroy) zero_bytes header = {0};
    zero_file *file = &f->files[f->n_files];
    ZERO_TRY(zero_file_open(path, file));
    f->n_files++;
    ZERO_TRY(zero_safetensors_read_header(file, &header));
    ZERO_TRY(zero_safetensors_parse(path, file->bytes, &header, &table));
    return zero_safetensors_add(path, &table, f->n_files - 1, all);
}

/* Opens the files, and makes a table of their tensors. */
static zero_status open_files(const zero_hugging_face_found *found, zero_hugging_face *f,
                              zero_safetensors *all)
{
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    ZERO_AT_END(zero_safetensors_destroy_index) zero_safetensors_index index = {0};
    ZERO_TRY(zero_hugging_face_check_weights(found));
    if (!found->is_index) {
        ZERO_TRY(zero_new(&f->files, 1, "files"));
        return open_file(found->weights, f, all);
    }
    ZERO_TRY(zero_bytes_read_at_most(&text, found->weights, ZERO_SAFETENSORS_HEADER));
    ZERO_TRY(zero_safetensors_read_index(found->weights, &text, &index));
    ZERO_TRY(zero_new(&f->files, index.n_files, "files"));
    for (int i = 0; i < index.n_files; i++) {
        char path[ZERO_STORAGE_FILE_PATH];
        zero_hugging_face_beside(found, index.files[i], path);
        ZERO_TRY(open_file(path, f, all));
    }
    return zero_safetensors_check_index(found->weights, &index, all);
}

/* Finds and opens a model. Its shape is that of its tensors, and what they do not show is
 * config.json's, which is read first, in case the files are of another kind of model. */
static zero_status open_model(const char *path, zero_hugging_face_found *found,
                              zero_hugging_face *f, zero_safetensors *all,
                              zero_shape *shape)
{
    char config[ZERO_STORAGE_FILE_PATH];
    zero_shape said = {.kind = &zero_architectures[ZERO_GPT2]};
    ZERO_TRY(zero_hugging_face_find(path, found));
    /* The shape in the config.json of the folder; without one that of an unknown
     * GPT-2. */
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    zero_hugging_face_beside(found, ZERO_HUGGING_FACE_CONFIG, config);
    if (zero_path_look(config) != ZERO_PATH_OF_NOTHING) {
        ZERO_TRY(zero_bytes_read(&text, config));
        ZERO_TRY(zero_hugging_face_read_config(config, &text, &said));
    }
    ZERO_TRY(open_files(found, f, all));
    zero_shape shown = {.kind = said.kind};
    ZERO_TRY(zero_hugging_face_shape(found->weights, all, &shown));
    ZERO_TRY(zero_hugging_face_check_config(config, found->weights, &said, &shown));
    *shape = said;
    zero_shape_overlay(shape, &shown);
    return ZERO_OK;
}

#define BLOCKS_MOST 65536 /* beside one for each tensor */

static zero_status take_blocks(const zero_model *m, zero_hugging_face *f)
{
    f->model = m;
    ZERO_TRY(zero_new(&f->places, m->n_tensors, "tensors"));
    /* A block has a power of two of pieces, the same in all tensors. */
    f->block_len = 16 * PIECE;
    while (m->n_params / f->block_len > BLOCKS_MOST) f->block_len *= 2;
    ZERO_TRY(zero_new(&f->first_block, m->n_tensors + 1, "blocks"));
    for (int i = 0; i < m->n_tensors; i++)
        f->first_block[i + 1] =
            f->first_block[i] +
            (int)zero_divide_up(m->tensors[i].rows * m->tensors[i].cols, f->block_len);
    f->n_blocks = f->first_block[m->n_tensors];
    f->run.tensor = f->zeros.tensor = -1;
    return zero_new(&f->blocks, f->n_blocks + 1, "blocks");
}

zero_status zero_hugging_face_open(const char *path, const zero_model *model,
                                   zero_hugging_face *file)
{
    ZERO_AT_END(zero_hugging_face_close) zero_hugging_face f = {.model = model};
    ZERO_AT_END(zero_safetensors_destroy) zero_safetensors table = {0};
    zero_hugging_face_found found;
    zero_hugging_face_place head;
    zero_shape shape;
    ZERO_TRY(take_blocks(model, &f));
    ZERO_TRY(open_model(path, &found, &f, &table, &shape));
    ZERO_TRY(zero_hugging_face_compare(found.weights, &shape, model->shape));
    ZERO_TRY(zero_hugging_face_match(found.weights, &table, model, f.places, &head));
    if (head.at > 0) ZERO_TRY(check_head(&f, head));
    ZERO_GIVE(file, f);
    return ZERO_OK;
}

zero_status zero_hugging_face_open_table(const char *path, const zero_safetensors *table,
                                         const zero_model *model, zero_hugging_face *file)
{
    ZERO_AT_END(zero_hugging_face_close) zero_hugging_face f = {.model = model};
    zero_hugging_face_place head;
    ZERO_TRY(take_blocks(model, &f));
    ZERO_TRY(zero_new(&f.files, 1, "files"));
    ZERO_TRY(zero_file_open(path, f.files));
    f.n_files = 1;
    ZERO_TRY(zero_hugging_face_match(path, table, model, f.places, &head));
    if (head.at > 0) ZERO_TRY(check_head(&f, head));
    ZERO_GIVE(file, f);
    return ZERO_OK;
}

void zero_hugging_face_close(zero_hugging_face *file)
{
    for (int i = 0; i < file->n_files; i++) zero_file_close(&file->files[i]);
    zero_free(file->files, file->places, file->blocks, file->first_block);
    *file = (zero_hugging_face){0};
}

zero_status zero_hugging_face_find_shape(const char *path, zero_shape *shape)
{
    ZERO_AT_END(zero_hugging_face_close) zero_hugging_face f = {.n_files = 0};
    ZERO_AT_END(zero_safetensors_destroy) zero_safetensors table = {0};
    zero_hugging_face_found found;
    return open_model(path, &found, &f, &table, shape);
}
