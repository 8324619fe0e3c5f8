/* The compiled programs: what they compute, where their memory lies, what they cost. */
#include "shadow.h"

#include <inttypes.h>
#include <string.h>

#include "nn/gpt2.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const zero_gpt2_shape shapes[] = {
    {.layers = 1, .hidden = 4, .heads = 1, .seq = 3, .vocab = 5},
    {.layers = 2, .hidden = 24, .heads = 3, .seq = 17, .vocab = 50},
    {.layers = 5, .hidden = 16, .heads = 4, .seq = 300, .vocab = 7},
    {.layers = 3, .hidden = 8, .heads = 2, .seq = 9, .vocab = 4099},
};
static const int64_t buckets[] = {1100, 5000, 1 << 20};

#define MAX_M     4
#define MAX_RANKS 5

/* On two nodes as far as the ranks reach, with `collectives`. */
static void compile_on_nodes(const zero_model *model, int M, const zero_layout *layout,
                             zero_algorithm collectives, zero_schedule *s)
{
    zero_plan_input input = {.model = model,
                             .n_ranks = layout->size,
                             .micro_batch = 2,
                             .seq = model->seq,
                             .accumulation = M,
                             .bucket = 5000,
                             .collectives = collectives,
                             .layout = layout,
                             .rank = layout->size - 1};
    assert_int_equal(zero_schedule_compile(s, &input), ZERO_OK);
}

static void compile_with(const zero_model *model, int M, int ranks, int64_t bucket,
                         zero_schedule *s)
{
    zero_plan_input input = {.model = model,
                             .n_ranks = ranks,
                             .micro_batch = 2,
                             .seq = model->seq,
                             .accumulation = M,
                             .bucket = bucket};
    assert_int_equal(zero_schedule_compile(s, &input), ZERO_OK);
}

static void for_all_algorithms(const zero_model *model, int M, int ranks,
                               void (*check)(const zero_schedule *s))
{
    for (int a = 0; a < ZERO_ALGORITHMS; a++) {
        zero_layout layout;
        zero_schedule s;
        int nodes = a != ZERO_ALGORITHM_SHM && ranks % 2 == 0 ? 2 : 1;
        assert_int_equal(zero_layout_init_blocks(&layout, ranks, nodes), ZERO_OK);
        compile_on_nodes(model, M, &layout, (zero_algorithm)a, &s);
        check(&s);
        zero_schedule_destroy(&s);
        zero_layout_destroy(&layout);
    }
}

/* Every shape, M, number of ranks and bucket, and every algorithm. */
static void for_all(void (*check)(const zero_schedule *s))
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        zero_model model;
        assert_int_equal(zero_gpt2_describe(&shapes[i], &model), ZERO_OK);
        for (int M = 1; M <= MAX_M; M++)
            for (int ranks = 1; ranks <= MAX_RANKS; ranks++) {
                zero_schedule s;
                int64_t bucket = buckets[(size_t)(M + ranks) % COUNT(buckets)];
                compile_with(&model, M, ranks, bucket, &s);
                check(&s);
                zero_schedule_destroy(&s);
                for_all_algorithms(&model, M, ranks, check);
            }
        zero_model_destroy(&model);
    }
}

static int64_t padded(const zero_schedule *s)
{
    int64_t sum = 0;
    for (int g = 0; g < s->input.model->n_groups; g++)
        sum += zero_partition_padded(&s->groups[g].partition);
    return sum;
}

static int count_ops(const zero_program *p, zero_op op)
{
    int n = 0;
    for (int at = 0; at < p->length; at++) n += p->code[at].op == op;
    return n;
}

/* ---- what the programs compute ---- */

static void walk_step(const zero_schedule *s)
{
    shadow w;
    shadow_walk(&w, s, ZERO_PROGRAM_STEP);
    for (int g = 0; g < s->input.model->n_groups; g++)
        assert_true(w.reduces[g] == 1 && w.gathers[g] == 1 && w.updates[g] == 1);
    assert_true(w.losses == 1 && w.overflows == 1);
    shadow_free(&w);
}

static void a_step_computes_reduces_and_updates_every_group_once(void **state)
{
    (void)state;
    for_all(walk_step);
}

static void walk_forward(const zero_schedule *s)
{
    shadow w;
    int n_units = s->input.model->n_units;
    shadow_walk(&w, s, ZERO_PROGRAM_EVALUATE);
    assert_int_equal(w.losses, 1);
    shadow_free(&w);
    shadow_walk(&w, s, ZERO_PROGRAM_GENERATE);
    shadow_free(&w);
    assert_int_equal(s->programs[ZERO_PROGRAM_EVALUATE].length, n_units + 2);
    assert_int_equal(s->programs[ZERO_PROGRAM_GENERATE].length, n_units);
}

static void evaluation_and_generation_only_go_forward(void **state)
{
    (void)state;
    for_all(walk_forward);
}

static void check_counts(const zero_schedule *s)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    int M = s->input.accumulation, U = s->input.model->n_units,
        G = s->input.model->n_groups;
    assert_int_equal(count_ops(p, ZERO_OP_LOAD), M);
    assert_int_equal(count_ops(p, ZERO_OP_FORWARD), M * U);
    assert_int_equal(count_ops(p, ZERO_OP_BACKWARD), M * U);
    assert_int_equal(count_ops(p, ZERO_OP_ACCUMULATE), (M - 1) * G);
    assert_int_equal(count_ops(p, ZERO_OP_REDUCE_WAIT), G);
    assert_int_equal(count_ops(p, ZERO_OP_GATHER_WAIT), G);
}

static void a_step_has_no_instruction_too_many(void **state)
{
    (void)state;
    for_all(check_counts);
}

/* Position of the first instruction of a kind, for a group. */
static int find(const zero_program *p, zero_op op, int group)
{
    int at = 0;
    while (at < p->length && (p->code[at].op != op || p->code[at].group != group)) at++;
    assert_true(at < p->length);
    return at;
}

/* All but the last group have computation between begin and wait of both collectives. */
static void check_overlap(const zero_schedule *s)
{
    const zero_model *model = s->input.model;
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    for (int g = 0; g < model->n_groups; g++) {
        if (zero_model_last_writer(model, g) == 0) continue;
        int begin = find(p, ZERO_OP_REDUCE, g), end = find(p, ZERO_OP_REDUCE_WAIT, g),
            n = 0;
        for (int at = begin; at < end; at++) n += p->code[at].op == ZERO_OP_BACKWARD;
        assert_true(n > 0);
    }
}

static void reductions_have_a_backward_to_hide_behind(void **state)
{
    (void)state;
    for_all(check_overlap);
}

/* ---- where the memory lies ---- */

/* An instruction's operands, written down again without the code under test. */
static int named_buffers(const zero_instruction *i, int *list)
{
    const int all[] = {i->in,     i->out,      i->stream, i->saved,  i->work,
                       i->logits, i->row_loss, i->tokens, i->buffer, i->staging};
    int n = 0;
    for (size_t k = 0; k < COUNT(all); k++)
        if (all[k] != ZERO_NO_BUFFER) list[n++] = all[k];
    for (int k = 0; k < ZERO_UNIT_GROUPS; k++) {
        if (i->param[k] != ZERO_NO_BUFFER) list[n++] = i->param[k];
        if (i->grad[k] != ZERO_NO_BUFFER) list[n++] = i->grad[k];
    }
    return n;
}

typedef struct {
    int first, last;
} span;

/* spans[id]: from the first to the last instruction of the program that names the buffer;
 * buffers of the whole run are alive throughout. */
static span *find_spans(const zero_schedule *s, zero_program_kind kind)
{
    const zero_program *p = &s->programs[kind];
    span *spans = calloc((size_t)s->n_buffers, sizeof *spans);
    assert_non_null(spans);
    for (int id = 0; id < s->n_buffers; id++) {
        bool always = s->buffers[id].program == ZERO_PROGRAM_ALL;
        spans[id] = always ? (span){0, p->length - 1} : (span){p->length, -1};
    }
    for (int at = 0; at < p->length; at++) {
        int list[ZERO_MAX_OPERANDS], n = named_buffers(&p->code[at], list);
        for (int k = 0; k < n; k++) {
            if (at < spans[list[k]].first) spans[list[k]].first = at;
            if (at > spans[list[k]].last) spans[list[k]].last = at;
        }
    }
    return spans;
}

static void for_all_programs(const zero_schedule *s,
                             void (*check)(const zero_schedule *s, zero_program_kind kind,
                                           const span *spans))
{
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++) {
        span *spans = find_spans(s, (zero_program_kind)kind);
        check(s, (zero_program_kind)kind, spans);
        free(spans);
    }
}

static void check_alive(const zero_schedule *s, zero_program_kind kind, const span *spans)
{
    for (int id = 0; id < s->n_buffers; id++) {
        const zero_buffer *b = &s->buffers[id];
        if (b->program != kind) continue;
        assert_true(spans[id].first <= spans[id].last); /* somebody uses it */
        assert_int_equal(b->first, spans[id].first);
        assert_int_equal(b->last, spans[id].last);
    }
}

static void check_lifetimes(const zero_schedule *s)
{
    for_all_programs(s, check_alive);
}

static void
a_buffer_lives_from_the_first_instruction_that_names_it_to_the_last(void **state)
{
    (void)state;
    for_all(check_lifetimes);
}

static void check_pairs(const zero_schedule *s, zero_program_kind kind, const span *spans)
{
    (void)kind;
    for (int i = 0; i < s->n_buffers; i++)
        for (int k = 0; k < i; k++) {
            const zero_buffer *a = &s->buffers[i], *b = &s->buffers[k];
            bool together =
                spans[i].first <= spans[k].last && spans[k].first <= spans[i].last;
            if (a->shared || b->shared) continue; /* an array of its own */
            bool apart =
                a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
            if (together && !apart)
                fail_msg("buffers %d [%zu +%zu] and %d [%zu +%zu] overlap", i, a->offset,
                         a->bytes, k, b->offset, b->bytes);
        }
}

/* Gradients lie in the window if neighbours shall read them, each in an array of its own. */
static void check_window(const zero_schedule *s)
{
    bool wanted =
        zero_algorithm_needs_window(s->input.collectives, zero_schedule_layout(s));
    size_t bytes = 0;
    int arrays = 0;
    for (int id = 0; id < s->n_buffers; id++) {
        if (!s->buffers[id].shared) continue;
        assert_int_equal(s->buffers[id].array, arrays++);
        assert_true(s->buffers[id].program == ZERO_PROGRAM_ALL);
        bytes += s->buffers[id].bytes;
    }
    assert_true(bytes == s->window_bytes && arrays == s->n_arrays);
    assert_int_equal(arrays, wanted ? s->input.model->n_groups : 0);
    for (int g = 0; g < s->input.model->n_groups; g++)
        assert_true(s->buffers[s->groups[g].grad].shared == wanted);
}

static void check_layout(const zero_schedule *s)
{
    for_all_programs(s, check_pairs);
    check_window(s);
    for (int id = 0; id < s->n_buffers; id++) {
        const zero_buffer *b = &s->buffers[id];
        if (b->shared) continue;
        assert_true(b->offset % ZERO_BUFFER_ALIGN == 0);
        assert_true(b->offset + b->bytes <= s->arena_bytes);
        bool persistent = b->program == ZERO_PROGRAM_ALL;
        assert_true(persistent == (b->offset < s->persistent_bytes));
        if (persistent) assert_true(b->offset + b->bytes <= s->persistent_bytes);
    }
}

static void buffers_that_are_alive_together_never_overlap(void **state)
{
    (void)state;
    for_all(check_layout);
}

/* ---- the ledger ---- */

struct peaks {
    size_t total, by_class[ZERO_CLASSES];
};

static void find_peaks(const zero_schedule *s, zero_program_kind kind, const span *spans,
                       struct peaks *most)
{
    for (int at = 0; at < s->programs[kind].length; at++) {
        struct peaks now = {0};
        for (int id = 0; id < s->n_buffers; id++) {
            if (at < spans[id].first || at > spans[id].last) continue;
            now.total += s->buffers[id].bytes;
            now.by_class[s->buffers[id].class] += s->buffers[id].bytes;
        }
        if (now.total > most->total) most->total = now.total;
        for (int c = 0; c < ZERO_CLASSES; c++)
            if (now.by_class[c] > most->by_class[c]) most->by_class[c] = now.by_class[c];
    }
}

static void check_peaks(const zero_schedule *s)
{
    struct peaks most = {0};
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++) {
        span *spans = find_spans(s, (zero_program_kind)kind);
        find_peaks(s, (zero_program_kind)kind, spans, &most);
        free(spans);
    }
    assert_true(s->peak_bytes == most.total &&
                s->peak_bytes <= s->arena_bytes + s->window_bytes);
    for (int c = 0; c < ZERO_CLASSES; c++)
        assert_true(s->class_peak[c] == most.by_class[c]);
}

static void the_ledger_is_the_sum_of_what_is_alive(void **state)
{
    (void)state;
    for_all(check_peaks);
}

static void check_states(const zero_schedule *s)
{
    size_t psi = (size_t)padded(s), M = (size_t)s->input.accumulation;
    size_t gradients = s->class_peak[ZERO_CLASS_GRADIENTS];
    size_t accumulators = s->class_peak[ZERO_CLASS_ACCUMULATORS];
    assert_true(s->class_peak[ZERO_CLASS_PARAMETERS] == 4 * psi);
    assert_true(s->class_peak[ZERO_CLASS_OPTIMIZER] == 8 * psi);
    if (M == 1) {
        assert_true(gradients == 4 * psi && accumulators == 0); /* 16 Psi in all */
    } else {
        assert_true(accumulators == 4 * psi && gradients > 0 && gradients < 4 * psi);
    }
}

static void model_states_take_16_bytes_per_padded_parameter(void **state)
{
    (void)state;
    for_all(check_states);
}

static void check_traffic(const zero_schedule *s)
{
    int64_t N = s->input.n_ranks, once = (N - 1) * (padded(s) / N) * 4;
    assert_true(padded(s) % N == 0);
    for (int op = 0; op < ZERO_OP_KINDS; op++) {
        zero_traffic t = zero_schedule_traffic(s, (zero_op)op);
        zero_volume v = zero_traffic_total(&t);
        bool moves = op == ZERO_OP_REDUCE || op == ZERO_OP_GATHER;
        assert_true(v.bytes_received == (moves ? once : 0));
        assert_true(v.bytes_sent == v.bytes_received);
    }
}

/* 2 (N-1)/N Psi elements of 4 bytes, whatever M. */
static void a_step_moves_the_papers_volume(void **state)
{
    (void)state;
    for_all(check_traffic);
}

/* What is read in neighbours' memory needs no staging. `mpi` stages whole pieces. */
static void check_staging(const zero_schedule *s)
{
    size_t bucket = (size_t)s->input.bucket, staged = s->class_peak[ZERO_CLASS_BUCKETS];
    zero_algorithm a = s->input.collectives;
    if (a == ZERO_ALGORITHM_MPI) return;
    bool sends = a == ZERO_ALGORITHM_P2P ? s->input.n_ranks > 1
                                         : zero_schedule_layout(s)->n_nodes > 1;
    assert_true(staged <= bucket * sizeof(float));
    assert_true((staged > 0) == sends);
}

static void the_bucket_bounds_what_is_staged(void **state)
{
    (void)state;
    for_all(check_staging);
}

/* From depth to depth every class grows by the same amount: the model states and, since all
 * blocks wait for their backward, the activations; the rest not at all. */
static void beside_the_model_states_only_activations_grow_with_depth(void **state)
{
    (void)state;
    for (int M = 1; M <= 2; M++) {
        size_t peak[4][ZERO_CLASSES];
        for (int depth = 0; depth < 4; depth++) {
            zero_gpt2_shape shape = shapes[1];
            zero_model model;
            zero_schedule s;
            shape.layers = 2 + depth;
            assert_int_equal(zero_gpt2_describe(&shape, &model), ZERO_OK);
            compile_with(&model, M, 3, 1000, &s);
            memcpy(peak[depth], s.class_peak, sizeof peak[depth]);
            zero_schedule_destroy(&s);
            zero_model_destroy(&model);
        }
        for (int c = 0; c < ZERO_CLASSES; c++) {
            bool grows = c == ZERO_CLASS_PARAMETERS || c == ZERO_CLASS_OPTIMIZER ||
                         c == ZERO_CLASS_ACTIVATIONS ||
                         c == (M > 1 ? ZERO_CLASS_ACCUMULATORS : ZERO_CLASS_GRADIENTS);
            size_t step = peak[1][c] - peak[0][c];
            assert_true(grows == (step > 0));
            for (int depth = 2; depth < 4; depth++)
                assert_true(peak[depth][c] - peak[depth - 1][c] == step);
        }
    }
}

static void microbatches_share_their_memory(void **state)
{
    (void)state;
    zero_model model;
    zero_schedule two, many;
    assert_int_equal(zero_gpt2_describe(&shapes[1], &model), ZERO_OK);
    compile_with(&model, 2, 3, 1000, &two);
    compile_with(&model, 16, 3, 1000, &many);
    assert_memory_equal(two.class_peak, many.class_peak, sizeof two.class_peak);
    assert_true(two.peak_bytes == many.peak_bytes && two.arena_bytes == many.arena_bytes);
    zero_schedule_destroy(&two);
    zero_schedule_destroy(&many);
    zero_model_destroy(&model);
}

/* ---- sizes and refusals ---- */

/* 16 TB of model states on each rank: no machine has the memory, and none is needed. */
static void a_model_of_10_to_the_12_parameters_is_compiled(void **state)
{
    (void)state;
    zero_gpt2_shape shape = {
        .layers = 128, .hidden = 25600, .heads = 160, .seq = 2048, .vocab = 50257};
    zero_model model;
    zero_schedule s;
    assert_int_equal(zero_gpt2_describe(&shape, &model), ZERO_OK);
    compile_with(&model, 4, 1024, 1 << 17, &s);
    assert_true(padded(&s) >= model.n_params && model.n_params > INT64_C(1000000000000));
    assert_true(s.persistent_bytes >= 16 * (size_t)padded(&s));
    assert_true(s.arena_bytes >= s.peak_bytes && s.peak_bytes > s.persistent_bytes);
    check_traffic(&s);
    check_lifetimes(&s);
    walk_step(&s);
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* The plan of a tiny model with one number changed. */
static zero_plan_input tiny_plan(const zero_model *model)
{
    return (zero_plan_input){.model = model,
                             .n_ranks = 2,
                             .micro_batch = 1,
                             .seq = model->seq,
                             .accumulation = 1,
                             .bucket = 1100};
}

static void assert_refused(const zero_plan_input *input, const char *text)
{
    zero_schedule s;
    assert_int_equal(zero_schedule_compile(&s, input), ZERO_ERR_INVALID);
    assert_non_null(strstr(zero_last_error(), text));
}

static void plans_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    zero_model model;
    assert_int_equal(zero_gpt2_describe(&shapes[0], &model), ZERO_OK);
    zero_plan_input input = tiny_plan(&model);
    input.bucket = 100;
    assert_refused(&input, "--bucket 100 is below the");
    input = tiny_plan(&model);
    input.micro_batch = INT64_MAX;
    assert_refused(&input, "at most 2^24 tokens");
    input = tiny_plan(&model);
    input.seq = model.seq + 1;
    assert_refused(&input, "the model takes 1 to");
    input = tiny_plan(&model);
    input.rank = 2;
    assert_refused(&input, "a plan for rank 2 of 2");
    input = tiny_plan(&model);
    input.accumulation = 0;
    assert_refused(&input, "each must be at least 1");
    zero_model_destroy(&model);
}

static void stages_that_are_not_built_are_refused(void **state)
{
    (void)state;
    zero_model model;
    assert_int_equal(zero_gpt2_describe(&shapes[0], &model), ZERO_OK);
    for (int stage = 1; stage <= 3; stage++) {
        zero_plan_input input = tiny_plan(&model);
        input.stage = stage;
        char option[] = {'-', '-', 's', 't', 'a', 'g', 'e', ' ', (char)('0' + stage), '\0'};
        zero_schedule s;
        assert_int_equal(zero_schedule_compile(&s, &input), ZERO_ERR_UNSUPPORTED);
        assert_non_null(strstr(zero_last_error(), option));
        zero_schedule_destroy(&s); /* a failed one may be destroyed like any other */
    }
    zero_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_computes_reduces_and_updates_every_group_once),
        cmocka_unit_test(evaluation_and_generation_only_go_forward),
        cmocka_unit_test(a_step_has_no_instruction_too_many),
        cmocka_unit_test(reductions_have_a_backward_to_hide_behind),
        cmocka_unit_test(
            a_buffer_lives_from_the_first_instruction_that_names_it_to_the_last),
        cmocka_unit_test(buffers_that_are_alive_together_never_overlap),
        cmocka_unit_test(the_ledger_is_the_sum_of_what_is_alive),
        cmocka_unit_test(model_states_take_16_bytes_per_padded_parameter),
        cmocka_unit_test(a_step_moves_the_papers_volume),
        cmocka_unit_test(the_bucket_bounds_what_is_staged),
        cmocka_unit_test(beside_the_model_states_only_activations_grow_with_depth),
        cmocka_unit_test(microbatches_share_their_memory),
        cmocka_unit_test(a_model_of_10_to_the_12_parameters_is_compiled),
        cmocka_unit_test(plans_that_make_no_sense_are_refused),
        cmocka_unit_test(stages_that_are_not_built_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
