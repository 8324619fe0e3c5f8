#include "data/material.h"

#include "data/stranger.h"

zero_status zero_material_list(const char *option, const char *others, const char *spec,
                               int token_bytes, const zero_listener *listener,
                               zero_listed *listed)
{
    ZERO_AT_END(zero_listed_close) zero_listed l = {.bytes = 0};
    ZERO_TRY(zero_files_list(option, others, spec, &l.files));
    zero_files *f = &l.files;
    char first[ZERO_STORAGE_FILE_PATH] = "";
    int64_t n_all = f->n, n = 0;
    for (int64_t i = 0; i < n_all; i++) {
        zero_tokens_format format;
        bool is_binary = false;
        char *path = f->paths[i];
        ZERO_AT_END(zero_file_close) zero_file file = {0};
        ZERO_TRY(zero_file_open(path, &file));
        ZERO_TRY(zero_tokens_detect(&file, token_bytes, &format, &is_binary));
        if (is_binary && !f->has_directory) return zero_stranger_refuse_binary(path);
        if (is_binary && n == i) zero_print(first, "%s", path);
        f->paths[i] = f->paths[n];
        f->paths[n] = path;
        if (is_binary) continue;
        if (n == 0) l.format = format;
        ZERO_FORMAT_IF(
            format.kind != l.format.kind || format.bytes != l.format.bytes,
            "%.400s is %s data, but %.400s is %s data; one corpus takes files of one kind",
            l.files.paths[0], zero_tokens_name(l.format), path, zero_tokens_name(format));
        l.format.is_assumed = l.format.is_assumed || format.is_assumed;
        l.bytes +=
            file.bytes / (uint64_t)format.bytes * (uint64_t)zero_tokens_width(format);
        n++;
    }
    if (n == 0) return zero_stranger_refuse_binary(first);
    int64_t n_left_out = n_all - n;
    if (n_left_out > 0)
        zero_listener_tell(listener,
                           "%s %.200s: %" PRId64
                           " of its files are not text and are left out, the first: %.200s",
                           option, spec, n_left_out, first);
    for (int64_t i = n; i < n_all; i++) free(f->paths[i]);
    f->n = n;
    ZERO_GIVE(listed, l);
    return ZERO_OK;
}

void zero_listed_close(zero_listed *listed)
{
    zero_files_destroy(&listed->files);
    *listed = (zero_listed){.bytes = 0};
}

static zero_status read_text(zero_bytes *all, const char *path)
{
    const size_t begin = all->len;
    ZERO_TRY(zero_bytes_read(all, path));
    unsigned char *text = all->bytes + begin;
    const size_t mark = zero_stranger_mark(text, all->len - begin);
    all->len -= mark;
    if (mark > 0) memmove(text, text + mark, all->len - begin);
    return ZERO_OK;
}

zero_status zero_material_read(zero_material *m, const zero_listed *listed, int64_t begin,
                               int64_t end, zero_tokens_limit limit)
{
    for (int64_t i = begin; i < end; i++) {
        const char *path = listed->files.paths[i];
        ZERO_TRY(listed->format.kind == ZERO_TOKENS_TEXT
                     ? read_text(&m->all, path)
                     : zero_tokens_read(path, listed->format, limit, &m->all));
    }
    return ZERO_OK;
}
