/* Offload: optimizer states in a file, and whether a step hides their transfers. */
#include "lesson/lessons.h"
#include "lesson/world.h"

static const char *const plans[] = {
    "{model} --ranks {N} --global-batch {N} --dtype bf16 --stage 2 --offload .",
    "{model} --ranks {N} --global-batch {N} --dtype bf16 --stage 2", NULL};

static const zero_plan_ledger *ledger(const zero_course_world *w)
{
    return zero_world_ledger(w, 0);
}

static double resident(const zero_course_world *w)
{
    return (double)zero_world_schedule(w, 1)->class_peak[ZERO_CLASS_OPTIMIZER];
}

static double in_file(const zero_course_world *w)
{
    return (double)(ledger(w)->file_bytes - ledger(w)->file_padding);
}

static double resident_all(const zero_course_world *w)
{
    return resident(w) * zero_world_ranks(w);
}

static double two_moments(const zero_course_world *w)
{
    return resident(w) * 8.0 / 12.0;
}
static double left(const zero_course_world *w)
{
    return (double)ledger(w)->states;
}
static double before(const zero_course_world *w)
{
    return (double)zero_world_ledger(w, 1)->states;
}
static double left_parameters(const zero_course_world *w)
{
    return 2.0 * zero_world_padded(w);
}
static double file_bytes(const zero_course_world *w)
{
    return (double)ledger(w)->file_bytes;
}

static double moved(const zero_course_world *w)
{
    zero_file_traffic t = zero_offload_total(&ledger(w)->file_step);
    return (double)(t.bytes_read + t.bytes_written);
}

static double read_only(const zero_course_world *w)
{
    return (double)zero_offload_total(&ledger(w)->file_step).bytes_read;
}

static double slots(const zero_course_world *w)
{
    return (double)zero_world_schedule(w, 0)->class_peak[ZERO_CLASS_SLOTS];
}

/* 0: yes, 1: no; for this small model */
static double saves(const zero_course_world *w)
{
    return zero_world_schedule(w, 0)->peak_bytes < zero_world_schedule(w, 1)->peak_bytes
               ? 0.0
               : 1.0;
}
static double saves_not(const zero_course_world *w)
{
    return 1.0 - saves(w);
}

/* clang-format off */
static const zero_course_name names[] = {
    {"resident", resident}, {"file", file_bytes}, {"slots", slots}, {"before", before}, {"read", read_only}, {NULL, NULL},
};

static const zero_question questions[] = {
    {.screen =
        "--offload DIR keeps optimizer states in a scratch file on a disk. Blocks of them pass through a few "
        "slots in memory: FETCH, UPDATE, STORE. bf16, stage 2, {N} ranks, {padded} parameters with padding: "
        "a rank's shard has 1/{N} of the states.",
     .ask = "How many bytes of optimizer states of one rank move to its file? (12 bytes per parameter; with padding of shards, without that of the file.)",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = in_file,
     .mistakes = {{resident_all, "That is of all ranks: each has a shard in a file of its own."},
                  {two_moments, "That forgets the fp32 master: K = 12."}},
     .because = "12 x {padded} / {N} = {answer}, the {resident} bytes that a rank would have in memory.",
     .plan = 0, .line = "optimizer states",
     .against = "\"Offload moves the model.\" It moves the optimizer's 12 of 16 bytes, of this rank's shard."},
    {.ask = "Before, a rank held {before} bytes of model states in memory. How many now?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = left,
     .mistakes = {{before, "Optimizer states have left memory."},
                  {left_parameters, "That is the parameters; the shard of the gradient is there, too."}},
     .because = "{before} - {resident} = {answer}: parameters and a shard of the gradient.",
     .plan = 0, .line = "model states",
     .against = NULL},
    {.ask = "The file is {file} bytes long, since blocks fill whole pages. How many bytes does a step read and write, together?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = moved,
     .mistakes = {{read_only, "That is reading. What UPDATE has changed must be written back."},
                  {in_file, "Whole pages move, there and back."}},
     .because = "All of it comes and goes: {read} + {read} = {answer}.",
     .plan = 0, .line = "all  {read}",
     .against = "\"Only what changed is written.\" Adam changes every state in every step."},
    {.ask = "Slots in memory take {slots} bytes. Does offload save memory for this model?",
     .kind = ZERO_ANSWER_WORD, .unit = "yes|no", .answer = saves,
     .mistakes = {{saves_not, "Compare the slots with the {resident} bytes that have left."}},
     .because = "{slots} bytes of slots for {resident} of states: for a small model the slots take more. For a large one they are a constant of some MiB.",
     .plan = 0, .line = "offload slots",
     .against = "\"Offload always saves memory.\" It has a price that does not shrink with the model."},
};
/* clang-format on */

const zero_lesson zero_lesson_offload = {
    .title = "offload",
    .about = "optimizer states in a file",
    .plans = plans,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
