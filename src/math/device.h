/* device.h - devices by name: the list of those that a plan knows, and their backends.
 *
 *     cpu              none: the host's memory, where a backend of backends.h computes
 *     cuda             GPUs, by the plugin libzero_cuda.so (plugin.h)
 *
 * Builds with tests add theirs (tests/fake). */
#pragma once

#include "math/plugin.h"
#include "zero/model.h"

#define ZERO_DEVICE_NUMBERS 64

/* A device without a backend and without a plugin is the host. */
typedef struct {
    const char *name;
    const zero_backend *backend;
    bool is_plugin;
    bool halves_rows;         /* zero_device_halves_rows() */
    zero_logits_chunk logits; /* zero_device_logits() */
} zero_device;

/* A CPU's chunk has enough rows for a product, and is small next to activations. A GPU's
 * rows are a multiple of 128 bytes apart, also rows of 16 bits. */
#define ZERO_CPU_CHUNK \
    { \
        .rows = 256, .step = 1 \
    }
#define ZERO_GPU_CHUNK \
    { \
        .rows = 4096, .step = 64 \
    }

#ifdef ZERO_TEST_DEVICES
/* Known besides, in programs that link them: the last one has no name. */
extern const zero_device zero_test_devices[] __attribute__((weak));
#endif

/* A user asks for this: "cuda", or some of a machine's devices, as in "cuda:0,2". */
typedef struct {
    const char *name; /* static */
    int n;            /* numbers given; 0: all devices */
    int numbers[ZERO_DEVICE_NUMBERS];
} zero_device_choice;

/* `where` is what a message calls the text: "--device cuda:x". ZERO_ERR_INVALID if there is
 * no such device, if it has no numbers, or if they are not different whole numbers. */
zero_status zero_device_read(const char *text, const char *where,
                             zero_device_choice *choice);

/* The backend of a device, whose `memory` is not NULL; NULL for "cpu". *plugin is where it
 * comes from, NULL if it is a part of this program. The name may have numbers.
 * ZERO_ERR_INVALID if there is no such device, ZERO_ERR_UNSUPPORTED if this build does not
 * have it, ZERO_ERR_ENV if its library cannot be loaded. */
zero_status zero_device_find(const char *name, const zero_backend **found,
                             const zero_plugin **plugin);

/* Whether the machine has the devices of a plugin that were asked for: *devices is their
 * number. ZERO_ERR_ENV if it has no device, ZERO_ERR_INVALID if a number is too high. */
zero_status zero_device_count(const zero_plugin *plugin, const zero_device_choice *choice,
                              int *devices);

/* True if the device's calls take rows of 16 bits, too. The name may have numbers, and is
 * valid. */
bool zero_device_halves_rows(const char *name);
/* The chunk of logits that suits the device: enough rows to keep all of a GPU busy, each
 * aligned for its tensor cores. The name may have numbers, and is valid. */
zero_logits_chunk zero_device_logits(const char *name);
/* True for "cpu". */
bool zero_device_is_host(const char *name);

/* The names of all devices that a plan knows, the default first: number i, or NULL past the
 * end. They can be planned for, also where this build cannot run on them. */
const char *zero_device_name_at(int i);
