/* test_world.h - all ranks as one group, for every test of a CMocka group. */
#pragma once

#include "comm/comm.h"
#include "support/mpi_cmocka.h"

static zero_comm world;

static inline int set_up(void **state)
{
    (void)state;
    return zero_comm_world(&world) != ZERO_OK;
}

static inline int tear_down(void **state)
{
    (void)state;
    zero_comm_destroy(&world);
    return 0;
}

__attribute__((constructor)) static void test_has_world(void)
{
    around.set_up = set_up;
    around.tear_down = tear_down;
}
