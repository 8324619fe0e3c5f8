#include "gpu/test_emulated_kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_kernel_computes_in_device_memory(void **state)
{
    (void)state;
    float host[1000], *x;
    for (int i = 0; i < 1000; i++) host[i] = (float)i;
    assert_int_equal(cudaMalloc((void **)&x, sizeof host), cudaSuccess);
    assert_int_equal(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
    run_scale(0, 1000, 3.0f, x);
    assert_int_equal(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < 1000; i++) assert_true(host[i] == 3.0f * (float)i);
    assert_int_equal(cudaFree(x), cudaSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_computes_in_device_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
