/* Collectives that overlap with computing: each rank computes its gradient piece by piece, and each
 * piece is averaged over the ranks while the next one is computed. Then every rank checks that the
 * average arrived, and that it took the bytes that theory says. */
#include <stdio.h>
#include <stdlib.h>

#include <zero/collective.h>

enum { PIECES = 8, COUNT = 60000 };

static void check(zero_status status)
{
    if (status == ZERO_OK) return;
    fprintf(stderr, "%s\n", zero_last_error());
    zero_world_abort(zero_exit_code(status));
}

/* Stands for a backward pass. */
static void compute(int rank, int piece, float *gradient)
{
    for (int i = 0; i < COUNT; i++) gradient[i] = (float)(rank + piece + i % 5);
}

static int is_average(int size, int piece, const float *gradient)
{
    for (int i = 0; i < COUNT; i++)
        if (gradient[i] != (float)(size - 1) / 2.0f + (float)(piece + i % 5)) return 0;
    return 1;
}

int main(void)
{
    zero_comm *world;
    zero_work *work[PIECES];
    zero_comm_bytes moved;
    int right = 1;
    check(zero_world_open(30.0, &world));
    const int rank = zero_comm_rank(world), size = zero_comm_size(world);
    float *gradient = malloc(sizeof(float) * PIECES * COUNT);
    if (!gradient) zero_world_abort(1);
    for (int p = 0; p < PIECES; p++) {
        compute(rank, p, gradient + p * COUNT);
        check(zero_all_reduce_begin(world, ZERO_MEAN, ZERO_NUMBER_FP32, COUNT,
                                    gradient + p * COUNT, &work[p]));
    }
    for (int p = PIECES - 1; p >= 0; p--) { /* in any order */
        bool done;
        check(zero_work_wait(work[p], 0.0, &done));
        zero_work_close(&work[p]);
        right = right && is_average(size, p, gradient + p * COUNT);
    }
    zero_comm_traffic(world, &moved);
    const long long bytes = 2LL * PIECES * COUNT * 4 * (size - 1) / size;
    right = right && moved.all_reduce.bytes_sent == bytes;
    if (rank == 0)
        printf("%d ranks averaged %d gradients, %lld bytes sent by each: %s\n", size,
               PIECES * COUNT, (long long)moved.all_reduce.bytes_sent,
               right ? "right" : "WRONG");
    if (!right) zero_world_abort(1);
    free(gradient);
    check(zero_world_close(&world));
    return 0;
}
