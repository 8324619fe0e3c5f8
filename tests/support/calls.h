/* calls.h - each operation of a backend, described once: its arrays, which have names, and
 * the call (operations.c). It can be made at any site, and what two sites have made of it
 * compared.
 *
 *     const shape s = {.B = 2, .T = 3, .C = 17, .type = ZERO_BF16};
 *     call want = make_call(&oracle, op, &s), got = make_call(&site, op, &s);
 *     compare_calls(&got, &want, 5e-6);
 *
 * All arrays of a call lie in one piece of the site's memory, with ones around them, which
 * are NaN to whoever reads past an end. Bytes that are read only, or that no array has,
 * must stay. */
#pragma once

#include "support/math_test.h"

/* Where calls are made. */
typedef struct site site;
struct site {
    const char *name;
    const zero_backend *ops;
    zero_math math;
    char *memory; /* that calls see */
    size_t bytes;
    /* Fills the memory from an image; reads it back when the calls have ended. */
    void (*load)(site *w, const char *image, size_t bytes);
    void (*save)(site *w, char *image, size_t bytes);
    int turns;    /* a call is made so often, and has the same bits each time; 0: once */
    int turn;     /* the one that load() begins */
    int64_t room; /* bytes for partial sums that lie among the arrays, and where */
    void *room_at;
    bool
        is_gpu; /* rows of 16 bits have weights of 16 bits, and more arrays are near ones */
    bool is_held; /* a team of threads is held for the turns */
};

enum {
    TURN_A = 1,
    TURN_B = 2,
    STRIDES = 4,
    FEW_ROWS = 8,
    WIDE_A = 16,
    WIDE_C = 32,
    WAYS = 64,
    LONGEST_PAST = 300
};

typedef struct {
    int64_t B, T, C;      /* rows are B T, of C numbers */
    int64_t H, K, V;      /* heads and those of keys; words, or what a product sums over */
    zero_type type, rows; /* of weights, and of rows */
    zero_type numbers;    /* all arrays hold numbers that this type has, too */
    zero_type factors;
    bool is_odd; /* NaN, infinities, denormals and zeros of both signs are among them */
    bool in_place, accumulate, drops;
    bool lacks;               /* what may be NULL: means, biases, positions, gains */
    int shift;                /* of all arrays, in their elements; */
    int only;                 /* of this one alone, from 1 on */
    int tells;                /* 1: of changed parameters, of which are none; 2: two */
    float p;                  /* of dropout; 0: that of `drops` */
    const zero_adamw *recipe; /* or test_recipe() */
    int ways, slices, parts;  /* of a product */
    const int64_t *past;      /* [B] */
    int64_t first, words;     /* of an embedding: those of a rank, if words > 0 */
} shape;

typedef struct call call;
typedef void making(call *c);

typedef struct {
    const char *name;
    making *make;
    const char *near; /* arrays that sites compute nearly alike; others have equal bits */
    const char *near_on_gpu; /* and these */
    /* Arrays made from rows as the call has stored them, and the call of these rows. */
    const char *later;
    making *again;
    making *first; /* the oracle's call whose results this one begins with */
} operation;

extern const operation operations[];
extern const int n_operations;
const operation *operation_named(const char *name);

/* Names are separated by spaces; NULL: none. */
bool is_among(const char *names, const char *name);

typedef enum { READ, WRITTEN, BOTH, WORK } usage; /* WORK: written; nobody's business */

typedef struct {
    const char *name, *from; /* from: the name that decides how it begins */
    int part;                /* of several arrays of this name */
    zero_type type;
    usage access;
    int64_t n;
    size_t at; /* in the images */
} array;

enum { MOST_ARRAYS = 24 };

struct call {
    site *where;
    const operation *op;
    shape s;
    const call *given; /* arrays begin as its arrays of these names have ended; or NULL */
    array arrays[MOST_ARRAYS];
    int n_arrays, turn;
    bool has_weights, has_rows;
    char *before, *after, *other; /* images of the site's memory */
    size_t used, room;
};

/* ---- making calls ---- */

call make_call(site *w, const operation *op, const shape *s);
/* With what the oracle has made first, which others may be given, too. */
call make_call_given(site *w, const operation *op, const shape *s, const call *given);
call make_first(const operation *op, const shape *s);
void drop_call(call *c);

/* NULL if the call has no array of this name. */
const array *array_named(const call *c, const char *name);
/* Its numbers as the call has left or (`begins`) found them; the caller frees them. */
float *floats_of(const call *c, const array *x, bool begins);

/* What both have written: near arrays to a part of the largest number, unless numbers are
 * odd; of others got has want's, rounded to its type. With 0 no array is a near one. */
void compare_calls(const call *got, const call *want, double tolerance);

/* The call on 16-bit numbers, in rows, in weights and in both, has the bits of the one on
 * fp32, rounded once. That one is left in `wide`, which the caller drops. */
void check_types(site *w, const operation *op, shape s, zero_type type, const call *given,
                 call *wide);

/* A site whose arrays are the host's, in `memory` of HOST_BYTES, which sites may share. The
 * scratch starts as NaN. */
#define HOST_BYTES ((size_t)64 << 20)
site host_site(const char *name, const zero_backend *ops, test_pool *pool, char *memory,
               int threads);

/* ---- describing them: addresses are the site's ---- */

void *place(call *c, array x, bool may_be_odd);
void begin_array(const call *c, const array *x, bool may_be_odd);
void *numbers(call *c, const char *name, const char *from, zero_type type, int64_t n,
              usage how);
void *rows(call *c, const char *name, int64_t n, usage how);
void *weights(call *c, const char *name, int64_t n); /* which are read */
void *rows_like(call *c, const char *name, const char *from, int64_t n, usage how);
float *floats(call *c, const char *name, int64_t n, usage how);
float *sums(call *c, const char *name, int64_t n); /* which are defined, or added to */
const int32_t *tokens(call *c, int64_t n, int64_t V);

/* Rows that a call writes, which may be those that it reads: *x. */
void *rows_from(call *c, const char *name, const char *from, int64_t n, const void **x);

/* What an array begins as, to be changed. */
void *image(const call *c, const void *at);

/* True while the call has to be made (again). Then its results are there. */
bool next(call *c);

static inline int64_t rows_of(const call *c)
{
    return c->s.B * c->s.T;
}

static inline int64_t numbers_of(const call *c)
{
    return rows_of(c) * c->s.C;
}

zero_dropout dropout_of(const call *c);

making make_swiglu, make_swiglu_backward, make_turn, make_turn_backward, make_attention,
    make_attention_backward, make_remember, make_recall;

#define MAKE(c, operation, ...) \
    while (next(c)) (c)->where->ops->operation(&(c)->where->math, __VA_ARGS__)
