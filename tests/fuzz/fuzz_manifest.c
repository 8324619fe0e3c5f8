#include <string.h>

#include "checkpoint/manifest.h"
#include "fuzz.h"

/* What a reader's time is spent on, if a file makes it work: the shards that it looks at for tensors, and
 * the tensors that it cuts. Both functions are wrapped (CMakeLists.txt). */
static size_t looks, cuts;

zero_range __real_zero_partition_shard(const zero_partition *part, int rank);
zero_range __wrap_zero_partition_shard(const zero_partition *part, int rank);
zero_status __real_zero_share_cut(const zero_share *share, zero_tensor *tensor);
zero_status __wrap_zero_share_cut(const zero_share *share, zero_tensor *tensor);

zero_range __wrap_zero_partition_shard(const zero_partition *part, int rank)
{
    looks++;
    return __real_zero_partition_shard(part, rank);
}

zero_status __wrap_zero_share_cut(const zero_share *share, zero_tensor *tensor)
{
    cuts++;
    return __real_zero_share_cut(share, tensor);
}

/* The work grows with the file, and not with the product of two numbers in it; but each rank of a TP group
 * has parts of its own, up to a limit. */
static void check_work(size_t size, const zero_manifest *m)
{
    size_t parts = (size_t)ZERO_PARTS_MOST;
    if (m) {
        const zero_state_layout *l = &m->table.layout;
        parts = (size_t)m->table.n_tensors * (size_t)l->tp;
        FUZZ_LAW((int64_t)m->table.n_tensors * l->n_ranks <= ZERO_PIECES_MOST);
        FUZZ_LAW(parts <= (size_t)ZERO_PARTS_MOST);
    }
    FUZZ_LAW(cuts <= parts);
    FUZZ_LAW(looks <= size + 3 * parts);
}

/* The elements in the shards of one p, and those that its ranks hold. */
static int64_t count_shards(const zero_state_table *t, int p)
{
    zero_state_local local;
    int64_t found = 0;
    FUZZ_LAW(zero_state_local_init(&local, t, p) == ZERO_OK);
    for (int d = 0; d < t->layout.n_ranks / t->layout.tp; d++) {
        zero_extent *list = NULL;
        int n = 0;
        FUZZ_LAW(zero_state_table_extents(t, &local, d, &list, &n) == ZERO_OK);
        for (int i = 0; i < n; i++) {
            FUZZ_LAW(list[i].begin < list[i].end &&
                     list[i].end - list[i].begin <= zero_extent_most(t));
            found += list[i].end - list[i].begin;
        }
        free(list);
    }
    zero_state_local_destroy(&local);
    return found;
}

/* Together the shards hold each element of each part once, in extents of bounded length. */
static void check_extents(const zero_state_table *t)
{
    int64_t expected = 0, found = 0;
    for (int i = 0; i < t->n_tensors; i++)
        expected += t->tensors[i].rows * t->tensors[i].cols;
    if (t->layout.n_ranks > 64 || expected > (int64_t)1 << 24) return; /* to save time */
    for (int p = 0; p < t->layout.tp; p++) found += count_shards(t, p);
    FUZZ_LAW(found == ZERO_STATES * expected);
}

/* An accepted manifest, written and read again, is written equally. */
static void check_round_trip(const zero_manifest *m)
{
    zero_bytes text = {0}, again = {0};
    zero_manifest back = {0};
    FUZZ_LAW(zero_manifest_write(m, &text) == ZERO_OK);
    FUZZ_LAW(zero_manifest_parse("f", text.bytes, text.len, &back) == ZERO_OK);
    FUZZ_LAW(zero_manifest_write(&back, &again) == ZERO_OK);
    FUZZ_LAW(text.len == again.len && memcmp(text.bytes, again.bytes, text.len) == 0);
    zero_manifest_destroy(&back);
    zero_bytes_destroy(&again);
    zero_bytes_destroy(&text);
}

static void parse(const void *bytes, size_t len)
{
    zero_manifest m = {0};
    looks = cuts = 0;
    zero_status st = zero_manifest_parse("f", bytes, len, &m);
    check_work(len, st == ZERO_OK ? &m : NULL);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return;
    check_extents(&m.table);
    check_round_trip(&m);
    zero_manifest_destroy(&m);
}

/* Reads it unchanged and with a correct last line: a fuzzer does not find checksums by chance. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char tail[ZERO_MANIFEST_TAIL];
    zero_bytes text = {0};
    size_t body = size;
    parse(data, size);
    if (size >= sizeof tail - 1 &&
        memcmp(data + size - sizeof tail + 1, " \"checksum\"", 11) == 0)
        body -= sizeof tail - 1;
    zero_manifest_tail(data, body, tail);
    FUZZ_LAW(zero_bytes_append(&text, data, body) == ZERO_OK);
    FUZZ_LAW(zero_bytes_append(&text, tail, sizeof tail - 1) == ZERO_OK);
    /* Memory that ends with the text, so a sanitizer sees one byte too many. */
    uint8_t *exact = malloc(text.len);
    FUZZ_LAW(exact != NULL);
    memcpy(exact, text.bytes, text.len);
    parse(exact, text.len);
    free(exact);
    zero_bytes_destroy(&text);
    return 0;
}
