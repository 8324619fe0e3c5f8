#include "data/cuts.h"

#include <stdatomic.h>

#include "data/ascii.h"
#include "math/threads.h"

size_t zero_cut_at(const unsigned char *text, size_t len, size_t from)
{
    for (size_t at = zero_max_size(from, 1); at < len; at++)
        if ((text[at] == ' ' || text[at] == '\n') &&
            zero_ascii_class_of(text[at - 1]) == ZERO_ASCII_LETTER)
            return at;
    return len;
}

/* Several for each thread, because threads may have cores of different speed. */
enum { PARTS_EACH = 4 };

int64_t zero_cut_parts(size_t len, int threads)
{
    if (threads <= 1) return 1;
    return zero_max(
        1, zero_min((int64_t)PARTS_EACH * threads, (int64_t)(len / ZERO_CUT_PART)));
}

typedef struct {
    const unsigned char *text;
    const size_t *borders; /* [n + 1] */
    int64_t n;
    _Atomic int64_t next; /* the part that the next thread takes */
    zero_part_work *work;
    void *arg;
} job;

static void take_parts(ZERO_UNUSED int thread, void *arg)
{
    job *j = arg;
    for (int64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->n;)
        j->work(j->arg, i, j->text + j->borders[i], j->borders[i + 1] - j->borders[i]);
}

zero_status zero_cut_run(const unsigned char *text, size_t len, int64_t n, int threads,
                         zero_part_work *work, void *arg)
{
    ZERO_FREED size_t *borders = NULL;
    ZERO_TRY(zero_new(&borders, n + 1, "parts of a text"));
    for (int64_t i = 1; i < n; i++) {
        const size_t wish = len / (size_t)n * (size_t)i;
        borders[i] = zero_cut_at(text, len, zero_max_size(wish, borders[i - 1]));
    }
    borders[n] = len;
    job j = {.text = text, .borders = borders, .n = n, .work = work, .arg = arg};
    zero_cpu_each_thread(threads, take_parts, &j);
    return ZERO_OK;
}
