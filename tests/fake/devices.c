/* devices.c - the devices that only a build with tests has. */
#include "fake/fake.h"
#include "math/device.h"

const zero_device zero_test_devices[] = {
    {"fake", &zero_backend_fake, false, true, ZERO_CPU_CHUNK},
#ifdef ZERO_HAVE_EMULATED /* a plugin, the CUDA backend's code on the CPU (gpu/emulated) */
    {"cuda-emulated", NULL, true, true, ZERO_GPU_CHUNK},
#endif
    {NULL},
};
