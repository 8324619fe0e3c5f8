#include "checkpoint/hugging_face_copies.h"

#include "base/hash.h"

struct copies {
    zero_hugging_face *f;
    zero_comm *world;
    uint64_t *of;    /* [size] each rank's copy, by a number that is no other's */
    uint64_t *words; /* [n_blocks][2] */
};

/* ---- blocks ---- */

/* The tensor that a block is of, and its elements. */
static int locate(const zero_hugging_face *f, int block, int64_t *begin, int64_t *end)
{
    int t = 0;
    while (f->first_block[t + 1] <= block) t++;
    const zero_tensor *tensor = &f->model->tensors[t];
    *begin = (block - f->first_block[t]) * f->block_len;
    *end = zero_min(*begin + f->block_len, tensor->rows * tensor->cols);
    return t;
}

static zero_status read_whole(zero_hugging_face *f, int block)
{
    int64_t begin, end;
    int tensor = locate(f, block, &begin, &end);
    if (f->blocks[block].n == zero_divide_up(end - begin, ZERO_HUGGING_FACE_PIECE))
        return ZERO_OK;
    f->blocks[block] = (zero_hugging_face_block){.n = 0};
    return zero_hugging_face_reread(f, tensor, begin, end);
}

/* ---- votes on blocks ---- */

/* The or of all ranks' numbers for each block, and of their complements, from ranks that
 * read it. They have a bit in common if two numbers differ. */
static zero_status vote(struct copies *c, bool on_copies)
{
    const zero_hugging_face *f = c->f;
    uint64_t mine = c->of[c->world->rank];
    for (int b = 0; b < f->n_blocks; b++) {
        uint64_t number = on_copies ? mine : f->blocks[b].sum;
        c->words[2 * b] = f->blocks[b].is_read ? number : 0;
        c->words[2 * b + 1] = f->blocks[b].is_read ? ~number : 0;
    }
    return zero_comm_or(c->world, 2 * (int64_t)f->n_blocks, c->words);
}

static bool differ(const struct copies *c, int block)
{
    return (c->words[2 * block] & c->words[2 * block + 1]) != 0;
}

/* ---- copies ---- */

static zero_status name_copies(struct copies *c)
{
    uint64_t number = (uint64_t)c->world->layout.node_of[c->world->rank] + 1;
    for (int i = 0; i < c->f->n_files; i++) {
        uint64_t place[2];
        ZERO_TRY(zero_file_place(&c->f->files[i], place));
        number = XXH3_64bits_withSeed(place, sizeof place, number);
    }
    c->of[c->world->rank] = number | 1; /* 0 is nobody's */
    return ZERO_OK;
}

/* ---- telling ---- */

/* The lowest rank whose block is that of most; of[] has the ranks' hashes. *n: how many
 * have it. */
static int most_frequent(const struct copies *c, int *n)
{
    int best = 0;
    *n = 0;
    for (int r = 0; r < c->world->size; r++) {
        int same = 0;
        for (int k = 0; k < c->world->size; k++) same += c->of[k] == c->of[r];
        if (same > *n) best = r;
        *n = same > *n ? same : *n;
    }
    return best;
}

/* runs[size]: each rank's long run of zeros. */
static zero_status gather_zeros(const zero_hugging_face *f, zero_comm *world, double **runs)
{
    const zero_hugging_face_zeros *z = &f->zeros;
    const double mine[] = {(double)z->tensor, (double)z->begin, (double)z->end};
    *runs = malloc((size_t)world->size * sizeof mine);
    ZERO_TRY(zero_agree(
        world, zero_allocated(*runs, "no memory for what %d ranks read", world->size)));
    return zero_comm_all_gather_doubles(world, 3, mine, *runs);
}

static zero_status describe(const struct copies *c, int block, const double *runs)
{
    const zero_hugging_face *f = c->f;
    int64_t begin, end;
    int tensor = locate(f, block, &begin, &end), rank = c->world->rank, n;
    const char *path = f->files[f->places[tensor].file].path;
    const char *name = f->model->tensors[tensor].name;
    char where[200] = "";
    int model = most_frequent(c, &n);
    ZERO_FAIL_IF(n == c->world->size, ZERO_ERR_IO, "%s: changed while it was read, in %s",
                 path, name);
    if (c->of[rank] == c->of[model]) return ZERO_OK;
    for (int k = 0; k < 2 && !where[0]; k++) {
        const double *run = runs + 3 * (k == 0 ? rank : model);
        if (run[0] >= 0.0)
            zero_print(where, ", where %s has zeros from element %" PRId64 " to %" PRId64,
                       k == 0 ? "it" : "the other", (int64_t)run[1], (int64_t)run[2] - 1);
    }
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s differs from rank %d's copy in %s, elements %" PRId64
                     " to %" PRId64 "%s: every node needs the same files",
                     path, model, name, begin, end - 1, where);
}

/* ---- all of it ---- */

zero_status zero_hugging_face_compare_copies(zero_hugging_face *file, zero_comm *world)
{
    ZERO_FREED uint64_t *of = NULL;
    ZERO_FREED uint64_t *words = NULL;
    zero_status st = zero_new(&of, world->size, "ranks");
    if (st == ZERO_OK) st = zero_new(&words, 2 * (size_t)file->n_blocks + 1, "blocks");
    ZERO_TRY(zero_agree(world, st));
    struct copies *c =
        &(struct copies){.f = file, .world = world, .of = of, .words = words};
    zero_hugging_face *f = c->f;
    int size = c->world->size, b;
    bool is_one_copy = true;
    ZERO_FREED double *runs = NULL;
    ZERO_TRY(zero_agree(c->world, name_copies(c)));
    ZERO_TRY(zero_comm_or(c->world, size, c->of));
    for (int r = 1; r < size; r++) is_one_copy &= c->of[r] == c->of[0];
    if (is_one_copy) return ZERO_OK;
    for (b = 0; st == ZERO_OK && b < f->n_blocks; b++) /* that this rank has begun */
        if (f->blocks[b].is_read) st = read_whole(f, b);
    ZERO_TRY(zero_agree_after_files(c->world, st));
    ZERO_TRY(vote(c, true));
    /* A block that ranks of one copy alone need is read from another copy, by a rank that
     * all choose alike. */
    for (b = 0; st == ZERO_OK && b < f->n_blocks; b++) {
        int reader = (int)(XXH3_64bits(&b, sizeof b) % (uint64_t)size);
        if (c->words[2 * b] == 0 || differ(c, b)) continue;
        while (c->of[reader] == c->words[2 * b]) reader = (reader + 1) % size;
        if (reader == c->world->rank) st = read_whole(f, b);
    }
    ZERO_TRY(zero_agree_after_files(c->world, st));
    ZERO_TRY(vote(c, false));
    for (b = 0; b < f->n_blocks && !differ(c, b); b++) {
    }
    if (b == f->n_blocks) return ZERO_OK;
    /* All ranks read the block again, so each can say whether it has what most have. */
    f->zeros.tensor = f->run.tensor = -1;
    f->blocks[b] = (zero_hugging_face_block){.n = 0};
    ZERO_TRY(zero_agree_after_files(c->world, read_whole(f, b)));
    for (int r = 0; r < size; r++) c->of[r] = r == c->world->rank ? f->blocks[b].sum : 0;
    ZERO_TRY(zero_comm_or(c->world, size, c->of));
    ZERO_TRY(gather_zeros(f, c->world, &runs));
    return zero_agree(c->world, describe(c, b, runs));
}

zero_status zero_hugging_face_tell_zeros(const zero_hugging_face *f, zero_comm *world,
                                         char text[ZERO_HUGGING_FACE_TEXT])
{
    zero_hugging_face_zeros z = {.tensor = -1};
    ZERO_FREED double *runs = NULL;
    text[0] = '\0';
    ZERO_TRY(gather_zeros(f, world, &runs));
    /* Each rank has seen a part, so runs that adjoin are one. */
    for (int r = 0; r < world->size; r++) {
        const double *run = runs + 3 * r;
        int tensor = (int)run[0];
        int64_t begin = (int64_t)run[1];
        bool is_earlier =
            z.tensor < 0 || tensor < z.tensor || (tensor == z.tensor && begin < z.begin);
        if (tensor >= 0 && is_earlier)
            z = (zero_hugging_face_zeros){tensor, begin, (int64_t)run[2]};
    }
    for (int r = 0; r < world->size; r++) {
        const double *run = runs + 3 * r;
        if ((int)run[0] == z.tensor && (int64_t)run[1] <= z.end)
            z.end = zero_max(z.end, (int64_t)run[2]);
    }
    if (z.tensor < 0) return ZERO_OK;
    const zero_tensor *t = &f->model->tensors[z.tensor];
    snprintf(text, ZERO_HUGGING_FACE_TEXT,
             "%.300s: %s has zeros from element %" PRId64 " to %" PRId64 " of %" PRId64
             ", as a download leaves that has not finished",
             f->files[f->places[z.tensor].file].path, t->name, z.begin, z.end - 1,
             t->rows * t->cols);
    return ZERO_OK;
}
