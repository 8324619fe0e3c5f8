/* One step of stage 3: the program that every rank walks. */
#include "lesson/lessons.h"
#include "lesson/world.h"

#include <inttypes.h>
#include <math.h>

static const char *const plans[] = {
    "{model} --ranks {N} --global-batch {N} --dtype {dtype} --stage 3 --show-schedule",
    "{model} --ranks {N} --global-batch {N} --dtype {dtype} --stage 3", NULL};

static const char *const machines[] = {
    "{model} --data lesson --backend naive --global-batch {N} --dtype {dtype} --stage 3",
    NULL};

static const zero_schedule *schedule(const zero_course_world *w)
{
    return zero_world_schedule(w, 0);
}

/* ---- values ---- */

static double n_groups(const zero_course_world *w)
{
    return schedule(w)->input.model->n_groups;
}

static int last_group(const zero_course_world *w)
{
    return schedule(w)->input.model->n_groups - 1;
}

static double forwards(const zero_course_world *w)
{
    return zero_world_count(w, 0, ZERO_OP_FORWARD);
}

static double forwards_divided(const zero_course_world *w)
{
    return ceil(forwards(w) / zero_world_ranks(w));
}

static double forwards_of_all(const zero_course_world *w)
{
    return forwards(w) * zero_world_ranks(w);
}

static double only_layers(const zero_course_world *w)
{
    return (double)w->numbers->layers;
}

static double gathers(const zero_course_world *w)
{
    return zero_world_count(w, 0, ZERO_OP_GATHER);
}

static double gathers_twice(const zero_course_world *w)
{
    return 2.0 * n_groups(w);
}
static double gathers_thrice(const zero_course_world *w)
{
    return 3.0 * n_groups(w);
}

static double reduce_at(const zero_course_world *w)
{
    return zero_world_find(w, 0, ZERO_OP_REDUCE, last_group(w));
}

static double backward_at(const zero_course_world *w)
{
    const zero_model *m = schedule(w)->input.model;
    return zero_world_find(w, 0, ZERO_OP_BACKWARD, m->n_units - 2);
}

/* 0: REDUCE, 1: BACKWARD */
static double comes_first(const zero_course_world *w)
{
    return reduce_at(w) < backward_at(w) ? 0.0 : 1.0;
}

static double other_first(const zero_course_world *w)
{
    return 1.0 - comes_first(w);
}

static double length(const zero_course_world *w)
{
    return schedule(w)->programs[ZERO_PROGRAM_STEP].length;
}

/* The block's shard of rank 0, padding left out. */
static double updated(const zero_course_world *w)
{
    return (double)zero_range_len(
        zero_partition_shard(&schedule(w)->groups[1].partition, 0));
}

static double block(const zero_course_world *w)
{
    return (double)schedule(w)->groups[1].partition.n_params;
}

static double block_divided(const zero_course_world *w)
{
    return floor(block(w) / zero_world_ranks(w));
}

static double shard(const zero_course_world *w)
{
    return (double)schedule(w)->groups[1].partition.shard_len;
}

/* Where the memory peaks: 0 FORWARD, 1 BACKWARD, 2 UPDATE. */
static double peak_pass(const zero_course_world *w)
{
    const zero_schedule *s = schedule(w);
    switch (s->programs[s->peak_program].code[s->peak_at].op) {
    case ZERO_OP_FORWARD: return 0.0;
    case ZERO_OP_UPDATE: return 2.0;
    default: return 1.0;
    }
}

static double forward_pass(const zero_course_world *w)
{
    (void)w;
    return 0.0;
}

static double update_pass(const zero_course_world *w)
{
    (void)w;
    return 2.0;
}

static double peak_at(const zero_course_world *w)
{
    return schedule(w)->peak_at + 1;
}

static double gathered_once(const zero_course_world *w)
{
    const zero_instruction *i = &schedule(w)
                                     ->programs[ZERO_PROGRAM_STEP]
                                     .code[zero_world_find(w, 0, ZERO_OP_GATHER, 1) - 1];
    return (double)schedule(w)->buffers[i->buffer].bytes;
}

static double gathered_sent(const zero_course_world *w)
{
    const zero_exchange *x = &schedule(w)->groups[1].gather;
    return (double)zero_traffic_total(&x->traffic).bytes_sent;
}

static double gathered_without_padding(const zero_course_world *w)
{
    return block(w) * zero_world_element(w);
}

static double gathered_own(const zero_course_world *w)
{
    return gathered_once(w) / zero_world_ranks(w);
}

/* ---- real numbers ---- */

/* An element of block 0 in the shard of rank 0, and what rank `rank` adds to its gradient. */
static const zero_told_number *given(const zero_course_world *w, int rank)
{
    return &zero_world_told(w, rank, ZERO_OP_REDUCE, 1)->numbers[0];
}

static double element(const zero_course_world *w)
{
    return (double)given(w, 0)->at;
}
static double given0(const zero_course_world *w)
{
    return given(w, 0)->value;
}

static double reduced(const zero_course_world *w)
{
    return zero_world_told(w, 0, ZERO_OP_REDUCE_WAIT, 1)->numbers[0].value;
}

static double reduced_mean(const zero_course_world *w)
{
    return reduced(w) / zero_world_ranks(w);
}

static int reduced_at(const zero_course_world *w)
{
    return (int)zero_world_told(w, 0, ZERO_OP_REDUCE_WAIT, 1)->at;
}

static void show_given(const zero_course_world *w, FILE *out)
{
    for (int r = 0; r < (int)w->numbers->ranks; r++)
        fprintf(out, "  rank %d gives %16.9g\n", r, given(w, r)->value);
}

static double loss_of(const zero_course_world *w, int rank)
{
    int head = zero_lesson_model(w->machines[0].machine)->n_units - 1;
    return zero_world_told(w, rank, ZERO_OP_BACKWARD, head)->numbers[0].value;
}

static double loss(const zero_course_world *w)
{
    return w->machines[0].last.loss;
}
static double loss_sum(const zero_course_world *w)
{
    return loss(w) * zero_world_ranks(w);
}
static double loss0(const zero_course_world *w)
{
    return loss_of(w, 0);
}

static void show_losses(const zero_course_world *w, FILE *out)
{
    for (int r = 0; r < (int)w->numbers->ranks; r++)
        fprintf(out, "  rank %d, its own samples: %.9g\n", r, loss_of(w, r));
}

static int told_at(const zero_course_world *w, zero_op op)
{
    return (int)zero_world_told(w, 0, op, 1)->at;
}

static int gather_at(const zero_course_world *w)
{
    return told_at(w, ZERO_OP_GATHER);
}
static int update_at(const zero_course_world *w)
{
    return told_at(w, ZERO_OP_UPDATE);
}

static int loss_at(const zero_course_world *w)
{
    return (int)zero_world_told(w, 0, ZERO_OP_LOSS, -1)->at;
}

/* clang-format off */
static const zero_course_name names[] = {
    {"groups", n_groups}, {"gathers", gathers}, {"reduce", reduce_at}, {"backward", backward_at},
    {"length", length}, {"block", block}, {"shard", shard}, {"peak", peak_at},
    {"whole", gathered_once}, {"element", element}, {NULL, NULL},
};

static const zero_question questions[] = {
    {.screen =
        "A stage compiles the model into a program: a list of instructions that every rank walks, "
        "each with its own samples. This is a step of stage 3, shortened:\n"
        "  GATHER u, GATHER_WAIT u   all ranks' shards become the whole group here\n"
        "  FORWARD u, BACKWARD u     unit u computes, with this rank's samples\n"
        "  RELEASE u                 the gathered parameters are given back\n"
        "  REDUCE u, REDUCE_WAIT u   adds gradients; a rank gets its shard of the sum\n"
        "  UPDATE u                  Adam, on this rank's shard\n"
        "The model has {blocks} between the embedding and the head: each is a unit.",
     .ask = "How many FORWARDs stand in the program of ONE of the {N} ranks?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "instructions", .answer = forwards,
     .mistakes = {{forwards_divided, "That shares units out among ranks. ZeRO does not: each rank computes all units, for its own samples."},
                  {forwards_of_all, "That is of all ranks together."},
                  {only_layers, "The embedding and the head are units, too."},
                  {zero_world_ranks, "That is the number of ranks. The program lists units, and each rank has all of it."}},
     .because = "{answer}: embedding, {blocks}, head. ZeRO is data parallelism: each rank computes the whole model.",
     .plan = 0, .line = "FORWARD  embedding",
     .against = "\"ZeRO is model parallelism: each rank computes a part.\""},
    {.ask = "The head's BACKWARD makes the gradient of the group `final`. Which instruction comes first: "
            "REDUCE final, or BACKWARD of the last block?",
     .kind = ZERO_ANSWER_WORD, .unit = "REDUCE|BACKWARD", .answer = comes_first,
     .mistakes = {{other_first, "A reduce-scatter of one group needs only that group's gradient, which is ready."}},
     .because = "REDUCE final is instruction {reduce}, BACKWARD of the last block {backward}. While it is on its way the block computes.",
     .plan = 0, .line = "REDUCE  final",
     .against = "\"A reduce-scatter needs all gradients at once.\" It needs one group's, and hides behind the next BACKWARD."},
    {.screen =
        "REDUCE of block 0, with real numbers: parameter {element} is in the shard of rank 0. Its gradient on "
        "each rank, from that rank's samples (already divided by the tokens of the whole batch):",
     .show = show_given,
     .ask = "What does rank 0 have of it after REDUCE_WAIT? (4 digits)",
     .kind = ZERO_ANSWER_FINE, .unit = "", .answer = reduced,
     .mistakes = {{reduced_mean, "That is the mean. Each rank has divided by all ranks' tokens already, so the sum is the mean over samples."},
                  {given0, "That is what rank 0 gives itself. The others' gradients come on top."}},
     .because = "The sum: {answer}. The other ranks get nothing of it: they have other shards.",
     .plan = 0, .line = "REDUCE_WAIT  block 0",
     .against = "\"A reduce-scatter averages, or loses what other ranks have found.\" It adds; each sum exists once.",
     .told = reduced_at},
    {.screen = "LOSS: the mean over all tokens of the batch. Each rank's own:",
     .show = show_losses,
     .ask = "What loss does the step report, on every rank? (4 digits)",
     .kind = ZERO_ANSWER_FINE, .unit = "", .answer = loss,
     .mistakes = {{loss_sum, "That is the sum. Ranks have equally many tokens, so it is the mean."},
                  {loss0, "That is rank 0's own samples. The loss is that of the whole batch."}},
     .because = "The mean: {answer}, the same on all ranks, to the last bit.",
     .plan = 0, .line = "LOSS",
     .against = "\"Ranks train different models, and are averaged later.\" They make one step of one model.",
     .told = loss_at},
    {.ask = "There are {groups} groups of parameters. `final` is gathered for the head, and stays from its forward to its "
            "backward. The head needs the embedding's weights, too; the embedding's own backward needs none. How many GATHERs stand in the step of stage 3?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "instructions", .answer = gathers,
     .mistakes = {{gathers_twice, "Once for forward, once for backward: but the last unit's parameters are still there when its backward begins."},
                  {n_groups, "Once each is enough for the forward pass. The backward pass needs parameters, too."},
                  {gathers_thrice, "That is three times each: forward and backward are two."}},
     .because = "{answer}: each block twice; `final` once, since it stays from forward to backward; the embedding for its own forward and for the head, which shares its weights.",
     .plan = 1, .line = "GATHER  ",
     .against = "\"Stage 3 gathers everything twice.\" The last unit stays from forward to backward."},
    {.screen =
        "GATHER of a block: each rank has 1/{N} of the padded group and ends with all of it. A block has {block} "
        "parameters, padded to {N} shards of {shard}.",
     .ask = "How many bytes does one rank SEND in this GATHER?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = gathered_sent,
     .mistakes = {{gathered_once, "That is N for N - 1: a rank does not send its shard to itself."},
                  {gathered_own, "That is one shard once. It goes to each of the other {N-1} ranks (or on, in a ring)."},
                  {gathered_without_padding, "That is the group without padding, and all of it."}},
     .because = "A shard of {shard} x {bytes} bytes, once to each other rank: {shard} x {bytes} x {N-1} = {answer}. Whole, it takes {whole} bytes until its RELEASE.",
     .plan = 0, .line = "GATHER  block 0",
     .against = "\"A gather moves the whole group to each rank\": (N-1)/N of it, since a rank has its own shard.",
     .told = gather_at},
    {.ask = "UPDATE of block 0 on rank 0: how many parameters does it change?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "parameters", .answer = updated,
     .mistakes = {{block, "That is the whole block. A rank updates its shard; nobody sends parameters here: the next step gathers them."},
                  {block_divided, "That is an equal share. Shards are whole granules of 64, so the first ranks have more."}},
     .because = "The first shard of block 0 has {shard} places, of which {answer} are parameters.",
     .plan = 0, .line = "UPDATE  block 0",
     .against = "\"Every rank updates all parameters.\" Each updates its shard; that is why optimizer states can be cut.",
     .told = update_at},
    {.ask = "In which pass does memory peak?",
     .kind = ZERO_ANSWER_WORD, .unit = "forward|backward|update", .answer = peak_pass,
     .mistakes = {{forward_pass, "Activations have piled up when forward ends, but gradients come on top."},
                  {update_pass, "By then activations and gathered parameters are gone."}},
     .because = "At instruction {peak} of {length}: a block's backward has its parameters, its gradient, its workspace and what forward kept.",
     .plan = 1, .line = "the peak is at",
     .against = "\"Stage 3 has 1/N of everything, activations too.\" Only states shrink; the peak is made of what is not divided."},
};
/* clang-format on */

const zero_lesson zero_lesson_step_of_3 = {
    .title = "one step of stage 3",
    .about = "its program, with real numbers",
    .plans = plans,
    .machines = machines,
    .steps = 1,
    .tells_step = true,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
