/* plugin.h - a backend in a shared library of its own, opened by name when it is asked for.
 *
 * The library exports one object, `const zero_plugin zero_plugin_table`. So the program
 * needs neither CUDA to be built nor its libraries to start, and one build serves nodes
 * with and without GPUs. Nothing of libzero is linked into a plugin: its failures reach the
 * caller through `hear`.
 *
 * `device` cuda: libzero_cuda.so. Builds with tests also have cuda-emulated,
 * libzero_cuda_emulated.so (gpu/emulated). Looked for beside the program or the library
 * that holds this code, then in the folders of ZERO_PLUGINS, which colons separate, then in
 * the folder of libraries beside the program's own, as it is installed. */
#pragma once

#include "math/backend.h"

#define ZERO_PLUGIN_VERSION 3 /* of this header; backend.h's table is told by its size */

/* One device of this machine. */
typedef struct {
    char name[96];            /* "NVIDIA H100 80GB HBM3" */
    char bus[32];             /* PCI bus id: ranks that share a device have the same */
    int capability;           /* 70 for sm_70 */
    size_t bytes, bytes_free; /* its memory; bytes_free as of now, by opening the device */
    size_t bytes_own;         /* that a backend's open() takes of it for itself */
    int driver, runtime, products; /* versions: CUDA 12.9 is 12090; cuBLAS as it says */
} zero_device_about;

/* zero_fail_at() of the program. */
typedef zero_status (*zero_plugin_fail)(const char *file, int line, zero_status code,
                                        const char *text);

typedef struct {
    uint32_t version;       /* ZERO_PLUGIN_VERSION */
    uint32_t backend_bytes; /* sizeof(zero_backend) */
    const zero_backend *backend;
    /* First of all: failures are told to `fail` from then on. */
    void (*hear)(zero_plugin_fail fail);
    /* How many devices there are. ZERO_ERR_ENV if there is no driver or no device. */
    zero_status (*count)(int *devices);
    zero_status (*describe)(int device, zero_device_about *about);
} zero_plugin;

#define ZERO_PLUGIN_SYMBOL "zero_plugin_table"

/* Loads the plugin of a device, "cuda" or "cuda-emulated", and tells it where failures go.
 * It stays loaded. ZERO_ERR_UNSUPPORTED if there is no such library, ZERO_ERR_ENV if one
 * was found that cannot be loaded, or belongs to another version: the message says which
 * file and why. */
zero_status zero_plugin_open(const char *device, const zero_plugin **plugin);
