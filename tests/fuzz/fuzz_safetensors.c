#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "io/safetensors.h"

/* One unnamed file serves all inputs. */
static zero_file file_of(const uint8_t *data, size_t size)
{
    static FILE *stream;
    if (!stream) stream = tmpfile();
    FUZZ_LAW(stream != NULL);
    zero_file file = {.fd = fileno(stream), .bytes = size, .path = "f"};
    FUZZ_LAW(ftruncate(file.fd, 0) == 0);
    FUZZ_LAW(size == 0 || pwrite(file.fd, data, size, 0) == (ssize_t)size);
    return file;
}

static void check_table(const zero_safetensors *table, uint64_t at, uint64_t size)
{
    for (int i = 0; i < table->n; i++) {
        const zero_safetensors_entry *e = &table->entries[i];
        FUZZ_LAW(e->begin == at && e->end >= at);
        FUZZ_LAW(e->n_dims >= 0 && e->n_dims <= ZERO_SAFETENSORS_DIMS && e->n >= 0);
        FUZZ_LAW((uint64_t)e->n <= e->end - e->begin);
        FUZZ_LAW(zero_safetensors_find(table, e->name) == e);
        at = e->end;
    }
    FUZZ_LAW(at == size);
    FUZZ_LAW(zero_safetensors_find(table, "__metadata__") == NULL);
}

/* The same tensors with a header of ours give the same table. */
static void check_round_trip(const zero_safetensors *table)
{
    zero_bytes header = {0};
    zero_safetensors back = {0};
    size_t bytes = (size_t)table->n * sizeof *table->entries;
    zero_safetensors_entry *entries = malloc(bytes + 1);
    FUZZ_LAW(entries != NULL);
    memcpy(entries, table->entries, bytes);
    FUZZ_LAW(zero_safetensors_write_header(table->n, entries, NULL, &header) == ZERO_OK);
    uint64_t size = table->n > 0 ? entries[table->n - 1].end : header.len;
    FUZZ_LAW(zero_safetensors_parse("f", size, &header, &back) == ZERO_OK);
    check_table(&back, header.len, size);
    for (int i = 0; i < table->n; i++) {
        const zero_safetensors_entry *e = zero_safetensors_find(&back, entries[i].name);
        FUZZ_LAW(e && strcmp(e->type, entries[i].type) == 0 &&
                 e->begin == entries[i].begin);
        FUZZ_LAW(memcmp(e->dims, entries[i].dims, sizeof e->dims) == 0);
    }
    free(entries);
    zero_safetensors_destroy(&back);
    zero_bytes_destroy(&header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zero_bytes header = {0};
    zero_safetensors table = {0};
    zero_file file = file_of(data, size);
    zero_status st = zero_safetensors_read_header(&file, &header);
    FUZZ_LAW(header.len <= size);
    if (st == ZERO_OK) st = zero_safetensors_parse("f", size, &header, &table);
    fuzz_check_refusal(st);
    if (st == ZERO_OK) {
        check_table(&table, header.len, size);
        check_round_trip(&table);
    }
    zero_safetensors_destroy(&table);
    zero_bytes_destroy(&header);
    return 0;
}
