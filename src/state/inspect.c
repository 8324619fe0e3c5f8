#include "state/inspect.h"

static void *chunk(const zero_runner *r, size_t k)
{
    return zero_runner_buffer(r, r->schedule->first_chunk + (int)(k % 2));
}

static size_t piece_bytes(size_t bytes, size_t k)
{
    return zero_min_size(ZERO_INSPECT_PIECE, bytes - k * ZERO_INSPECT_PIECE);
}

/* On a device the next piece is copied while one is looked at. */
zero_status zero_inspect(zero_runner *r, const void *memory, size_t bytes,
                         zero_inspect_look *look, void *arg)
{
    size_t n = (bytes + ZERO_INSPECT_PIECE - 1) / ZERO_INSPECT_PIECE;
    zero_ticket tickets[2] = {0, 0};
    if (!r->link.memory) {
        ZERO_TRY(r->backend->sync(&r->math)); /* the host reads what the backend wrote */
        look(arg, memory, bytes);
        return ZERO_OK;
    }
    for (size_t k = 0; k <= n && n > 0; k++) {
        if (k < n)
            zero_link_fetch(&r->link, chunk(r, k),
                            (const char *)memory + k * ZERO_INSPECT_PIECE,
                            piece_bytes(bytes, k), &tickets[k % 2]);
        if (k == 0) continue;
        zero_link_wait(&r->link, tickets[(k - 1) % 2]);
        look(arg, chunk(r, k - 1), piece_bytes(bytes, k - 1));
    }
    return zero_link_status(&r->link);
}

zero_status zero_overwrite(zero_runner *r, void *memory, size_t bytes,
                           zero_inspect_fill *fill, void *arg)
{
    size_t n = (bytes + ZERO_INSPECT_PIECE - 1) / ZERO_INSPECT_PIECE;
    zero_ticket tickets[2] = {0, 0};
    if (!r->link.memory) {
        ZERO_TRY(r->backend->sync(&r->math)); /* it may still read there */
        fill(arg, memory, bytes);
        return ZERO_OK;
    }
    for (size_t k = 0; k < n; k++) {
        zero_link_wait(&r->link, tickets[k % 2]);
        fill(arg, chunk(r, k), piece_bytes(bytes, k));
        zero_link_store(&r->link, (char *)memory + k * ZERO_INSPECT_PIECE, chunk(r, k),
                        piece_bytes(bytes, k), &tickets[k % 2]);
    }
    zero_link_wait(&r->link, tickets[0]);
    zero_link_wait(&r->link, tickets[1]);
    return zero_link_status(&r->link);
}
