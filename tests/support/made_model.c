#include "support/test.h"

#include "support/made_model.h"

#include "support/tree_oracle.h"

#define SEQ        8
#define MAX_UNITS  6
#define MAX_GROUPS 5

static zero_unit_sizes sizes(const zero_unit *unit, int64_t B, int64_t T)
{
    const made_unit *made = (const made_unit *)unit->shape + unit->index;
    zero_unit_sizes n = made->sizes;
    return (zero_unit_sizes){.out = B * T * n.out,
                             .saved = B * T * n.saved,
                             .forward_work = B * T * n.forward_work,
                             .backward_work = B * T * n.backward_work,
                             .logits = B * T * n.logits,
                             .row_loss = B * T * n.row_loss,
                             .cache = B * T * n.cache};
}

static zero_unit_part part_of(const zero_unit *unit, zero_pass pass, int64_t B, int64_t T,
                              int64_t index)
{
    const made_unit *made = (const made_unit *)unit->shape + unit->index;
    const made_pass *p = &made->passes[pass];
    if (p->n == 0) return (zero_unit_part){.is_last = true};
    zero_unit_part part = p->part[index];
    part.count *= B * T * (part.join == ZERO_JOIN_SUM ? 3 : 1);
    if (part.join == ZERO_JOIN_SUM && T == 1)
        part.count *= 8; /* of a token; ranks divide it */
    part.is_last = index == p->n - 1;
    return part;
}

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = malloc(bytes);
    assert_non_null(copy);
    return memcpy(copy, data, bytes);
}

static void fill_unit(zero_model *model, int u, const made_unit *made)
{
    zero_unit *unit = &model->units[u];
    *unit = (zero_unit){.index = u,
                        .n_groups = made->n_groups,
                        .shape = model->shape,
                        .backward_without_params = made->backward_without_params,
                        .computes_by_layers = true,
                        .recompute_without_out = made->recompute_without_out,
                        .part = part_of,
                        .continues = true,
                        .sizes = sizes};
    memcpy(unit->groups, made->groups, sizeof unit->groups);
}

zero_model made_model(int n_groups, const int64_t *n_params, int n_units,
                      const made_unit *units)
{
    zero_model model = {.n_groups = n_groups,
                        .n_units = n_units,
                        .seq = SEQ,
                        .input_bytes = 4,
                        .target_bytes = 4};
    model.groups = calloc((size_t)n_groups, sizeof *model.groups);
    model.units = calloc((size_t)n_units, sizeof *model.units);
    model.shape = copy_of(units, (size_t)n_units * sizeof *units);
    assert_true(model.groups && model.units);
    for (int g = 0; g < n_groups; g++) {
        model.groups[g].n_params = n_params[g];
        model.n_params += n_params[g];
    }
    for (int u = 0; u < n_units; u++) fill_unit(&model, u, &units[u]);
    return model;
}

void made_share(zero_model *model, zero_share share)
{
    model->share = share;
    for (int u = 0; u < model->n_units; u++) model->units[u].share = share;
}

/* ---- at random ---- */

int made_draw(uint64_t *random, int n)
{
    *random = oracle_mix(*random);
    return (int)(*random >> 33) % n;
}

static int64_t draw_params(uint64_t *random)
{
    static const int most[] = {1, 64, 65, 300, 4000};
    return made_draw(random, most[made_draw(random, 5)] + 1);
}

/* At most one join is in flight, and none is left at the end. */
static made_pass draw_pass(uint64_t *random)
{
    made_pass pass = {.n = 1 + made_draw(random, MADE_PARTS)};
    bool is_joining = false;
    for (int k = 0; k < pass.n; k++) {
        zero_unit_part *part = &pass.part[k];
        bool is_last = k == pass.n - 1;
        part->waits = is_joining && (is_last || made_draw(random, 2));
        is_joining = is_joining && !part->waits;
        if (!is_last && !is_joining) part->join = (zero_join)made_draw(random, 3);
        part->count = 1 + made_draw(random, 3);
        is_joining = is_joining || part->join != ZERO_JOIN_NONE;
    }
    return pass;
}

static void draw_parts(uint64_t *random, made_unit *unit)
{
    for (int p = 0; p < MADE_PASSES; p++) unit->passes[p] = draw_pass(random);
}

static made_unit draw_unit(uint64_t *random, bool is_last)
{
    made_unit unit = {.backward_without_params = made_draw(random, 4) == 0,
                      .recompute_without_out = made_draw(random, 2) == 0};
    unit.sizes = (zero_unit_sizes){.out = is_last ? made_draw(random, 2) : 1,
                                   .saved = made_draw(random, 3),
                                   .forward_work = made_draw(random, 3),
                                   .backward_work = made_draw(random, 4),
                                   .cache = made_draw(random, 3)};
    if (!is_last) unit.sizes.out += made_draw(random, 3);
    if (is_last) unit.sizes.logits = 1 + made_draw(random, 5);
    if (is_last) unit.sizes.row_loss = 1;
    return unit;
}

static bool reads(const made_unit *unit, int group)
{
    return (unit->n_groups > 0 && unit->groups[0] == group) ||
           (unit->n_groups > 1 && unit->groups[1] == group);
}

static void read_too(made_unit *unit, int group)
{
    if (unit->n_groups < ZERO_UNIT_GROUPS && !reads(unit, group))
        unit->groups[unit->n_groups++] = group;
}

/* Units have room for two groups each: with this few groups every group finds a unit. */
zero_model made_random(uint64_t *random)
{
    int n_units = 1 + made_draw(random, MAX_UNITS);
    int most = 2 * n_units < MAX_GROUPS ? 2 * n_units : MAX_GROUPS;
    int n_groups = 1 + made_draw(random, most);
    int64_t n_params[MAX_GROUPS];
    made_unit units[MAX_UNITS];
    uint64_t of_parts = *random; /* models stay what they were before units had parts */
    for (int u = 0; u < n_units; u++) units[u] = draw_unit(random, u == n_units - 1);
    for (int g = 0; g < n_groups; g++) {
        n_params[g] = draw_params(random);
        int u = made_draw(random, n_units);
        while (units[u].n_groups == ZERO_UNIT_GROUPS) u = (u + 1) % n_units;
        read_too(&units[u], g);
    }
    for (int k = made_draw(random, 6); k > 0; k--)
        read_too(&units[made_draw(random, n_units)], made_draw(random, n_groups));
    for (int u = 0; u < n_units; u++) draw_parts(&of_parts, &units[u]);
    return made_model(n_groups, n_params, n_units, units);
}
