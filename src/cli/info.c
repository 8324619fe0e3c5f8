#include "base/fail.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/topology.h"
#include "comm/algorithm.h"
#include "comm/launch.h"
#include "comm/sentence.h"
#include "math/blas.h"
#include "math/cpu_kernels.h"

static json_t *bytes(size_t n)
{
    char text[32];
    snprintf(text, sizeof text, "%.1f GiB", (double)n / 1073741824.0);
    return n == 0 ? json_string("none known") : json_string(text);
}

static json_t *count_of(int cores, int threads)
{
    char text[64];
    snprintf(text, sizeof text, "%d cores, %d threads", cores, threads);
    return json_string(text);
}

static json_t *algorithms(void)
{
    zero_sentence all = {.used = 0};
    zero_sentence_add(&all, "auto");
    for (int i = 0; zero_algorithm_name_at(i); i++)
        zero_sentence_add(&all, " %s", zero_algorithm_name_at(i));
    return json_string(all.chars);
}

static zero_status describe(json_t *info)
{
    char mpi[128], blas[128];
    zero_topology t;
    ZERO_TRY(zero_topology_read(&t));
    zero_launch_library(mpi, sizeof mpi);
    zero_blas_name(blas, sizeof blas);

    json_object_set_new(info, "version", json_string(ZERO_VERSION));
    json_object_set_new(info, "build", json_string(ZERO_BUILD));
    json_object_set_new(info, "MPI", json_string(mpi));
    json_object_set_new(info, "BLAS", json_string(blas));
    json_object_set_new(info, "backends", json_string("cpu, naive"));
    json_object_set_new(info, "CPU kernels", json_string(zero_cpu_kernels_name()));
    zero_blas_set_threads(1); /* as training has it unless told otherwise */
    const char *fp32 = zero_cpu_fp32_name(), *bf16 = zero_cpu_bf16_name();
    json_object_set_new(info, "fp32 products",
                        fp32 ? json_sprintf("own kernels, %s", fp32) : json_string("BLAS"));
    json_object_set_new(info, "bf16 products",
                        json_string(bf16 ? bf16 : "widened to fp32"));
    json_object_set_new(info, "CPU", json_string(t.cpu));
    json_object_set_new(info, "machine", count_of(t.machine_cores, t.machine_threads));
    json_object_set_new(info, "usable here", count_of(t.usable_cores, t.usable_threads));
    json_object_set_new(info, "memory", bytes(t.machine_memory));
    json_object_set_new(info, "memory available", bytes(t.memory_available));
    json_object_set_new(info, "memory limit of the control group", bytes(t.memory_limit));
    json_object_set_new(info, "free in /dev/shm", bytes(t.shm_available));
    json_object_set_new(info, "stages", json_string("0 1 2 3"));
    json_object_set_new(info, "types", json_string("fp32 bf16 fp16"));
    json_object_set_new(info, "collectives", algorithms());
    json_object_set_new(info, "CUDA", json_string("not in this version"));
    return ZERO_OK;
}

static void print_table(json_t *info)
{
    const char *key;
    json_t *value;
    json_object_foreach(info, key, value)
        printf("%-34s %s\n", key, json_string_value(value));
}

zero_status zero_command_info(int argc, char **argv)
{
    if (argc == 1 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        printf("zero info [--json]: this build and this machine\n");
        return ZERO_OK;
    }
    int json = argc == 1 && strcmp(argv[0], "--json") == 0;
    if (argc > 0 && !json)
        return zero_fail(ZERO_ERR_INVALID, "zero info %s: the only option is --json",
                         argv[0]);
    json_t *info = json_object();
    zero_status st = describe(info);
    if (st == ZERO_OK && json) {
        json_dumpf(info, stdout, JSON_INDENT(2));
        putchar('\n');
    } else if (st == ZERO_OK) {
        print_table(info);
    }
    json_decref(info);
    return st;
}
