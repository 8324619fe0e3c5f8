#include "lists/mirror.h"

#include "base/number.h"

#define LINE 64 /* bytes */

static bool has_mirrors(const zero_collective_spec *spec)
{
    return spec->on_device && !spec->direct;
}

/* Bytes of the `count` elements of a piece. */
static size_t piece_bytes(const zero_collective_spec *spec, zero_type type)
{
    return (size_t)spec->count * zero_element_size(type);
}

zero_mirrors zero_collective_mirrors(const zero_collective_spec *spec, int size, int rank)
{
    if (!has_mirrors(spec)) return (zero_mirrors){0};
    /* The array that has the most pieces: a sum's `in`, else `out`; and the bytes before
     * this rank's piece of it. */
    bool has_root = zero_collective_has_root(spec->kind);
    size_t piece = piece_bytes(spec, spec->type), own = has_root ? 0 : (size_t)rank * piece;
    size_t whole = zero_round_up_size((has_root ? 1 : (size_t)size) * piece, LINE);
    size_t sum = zero_round_up_size(piece_bytes(spec, spec->result), LINE);
    if (!zero_collective_sums(spec->kind)) return (zero_mirrors){own, 0, whole};
    if (spec->type == spec->result) return (zero_mirrors){0, own, whole};
    return (zero_mirrors){0, whole, whole + sum};
}

zero_collective_spec zero_collective_mirrored(const zero_collective_spec *spec)
{
    zero_collective_spec mirrored = *spec;
    if (has_mirrors(spec)) mirrored.stride = spec->count;
    return mirrored;
}

/* The next neighbour's own piece lies one piece further on. */
size_t zero_collective_in_apart(const zero_collective_spec *spec)
{
    bool is_piece = has_mirrors(spec) && spec->kind == ZERO_ALL_GATHER;
    return spec->in_apart + (is_piece ? piece_bytes(spec, spec->type) : 0);
}

size_t zero_collective_out_apart(const zero_collective_spec *spec)
{
    bool is_piece = has_mirrors(spec) && spec->kind == ZERO_REDUCE_SCATTER &&
                    spec->type == spec->result;
    return spec->out_apart + (is_piece ? piece_bytes(spec, spec->type) : 0);
}
