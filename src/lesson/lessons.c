#include "lesson/lessons.h"

#include <string.h>

#include <xxhash.h>

#include "lesson/course.h"
#include "zero/random.h"

static const zero_lesson *const lessons[] = {
    &zero_lesson_holds,    &zero_lesson_step_of_3,   &zero_lesson_sends,
    &zero_lesson_same,     &zero_lesson_precision,   &zero_lesson_batches,
    &zero_lesson_prefetch, &zero_lesson_partitions,  &zero_lesson_tensor,
    &zero_lesson_offload,  &zero_lesson_checkpoints,
};
#define N_LESSONS ((int)(sizeof lessons / sizeof lessons[0]))

int zero_course_lessons(void)
{
    return N_LESSONS;
}

const zero_lesson *zero_course_lesson(int n)
{
    return n >= 1 && n <= N_LESSONS ? lessons[n - 1] : NULL;
}

void zero_course_list(FILE *out)
{
    for (int n = 1; n <= N_LESSONS; n++) {
        const zero_lesson *l = lessons[n - 1];
        fprintf(out, "%4d  %-25s %2d questions  %s\n", n, l->title, l->n, l->about);
    }
}

/* ---- numbers ---- */

#define GBIT INT64_C(125000000)

zero_course_numbers zero_course_standard(const zero_course_numbers *given)
{
    zero_course_numbers n = *given;
    if (n.ranks == 0) n.ranks = 3;
    if (n.layers == 0) n.layers = 1;
    if (n.hidden == 0) n.hidden = 4;
    if (n.microbatches == 0) n.microbatches = 2;
    if (n.bandwidth == 0) n.bandwidth = 12 * GBIT;
    if (!n.dtype) n.dtype = "fp32";
    return n;
}

/* A whole number from `least` to `most`. */
static int64_t draw(const zero_random *stream, int64_t which, int64_t least, int64_t most)
{
    float at;
    zero_random_uniform(stream, which, 1, &at);
    return least + (int64_t)(at * (float)(most - least + 1));
}

zero_course_numbers zero_course_variant(const zero_course_numbers *given, const char *name)
{
    zero_course_numbers n = *given;
    zero_random stream = {.seed = (int64_t)(XXH64(name, strlen(name), 0) >> 1)};
    if (n.ranks == 0) n.ranks = draw(&stream, 0, 3, ZERO_COURSE_RANKS);
    if (n.layers == 0) n.layers = draw(&stream, 1, 1, ZERO_COURSE_LAYERS);
    if (n.hidden == 0) n.hidden = 4 * draw(&stream, 2, 1, ZERO_COURSE_HIDDEN / 4);
    if (n.microbatches == 0) n.microbatches = draw(&stream, 3, 2, 5);
    if (n.bandwidth == 0) n.bandwidth = GBIT * draw(&stream, 4, 10, 16);
    return zero_course_standard(&n);
}
