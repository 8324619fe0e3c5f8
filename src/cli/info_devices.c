#include "cli/info_devices.h"

#include <stdio.h>

#include "math/device.h"
#include "zero/status.h"

#define CUDA "cuda"

static json_t *names(void)
{
    json_t *list = json_array();
    for (int i = 0; zero_device_name_at(i); i++) {
        const zero_backend *device = NULL;
        const zero_plugin *plugin;
        if (zero_device_find(zero_device_name_at(i), &device, &plugin) == ZERO_OK && device)
            json_array_append_new(list, json_string(zero_device_name_at(i)));
    }
    return list;
}

static json_t *gpu(int number, const zero_device_about *d)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:I}", "device", number, "name", d->name,
                     "bus", d->bus, "type", "", "memory_bytes", (json_int_t)d->bytes,
                     "memory_free_bytes", (json_int_t)d->bytes_free);
}

static void put_versions(json_t *info, const zero_device_about *d)
{
    char text[128];
    snprintf(text, sizeof text, "driver for CUDA %d.%d, runtime %d.%d, cuBLAS %d.%d.%d",
             d->driver / 1000, d->driver % 1000 / 10, d->runtime / 1000,
             d->runtime % 1000 / 10, d->products / 10000, d->products / 100 % 100,
             d->products % 100);
    json_object_set_new(info, "cuda_about", json_string(text));
}

/* Lists GPUs until one cannot be opened. */
static zero_status put_gpus(json_t *info, json_t *list, const zero_plugin *plugin)
{
    int n = 0;
    zero_status st = plugin->count(&n);
    for (int i = 0; st == ZERO_OK && i < n; i++) {
        zero_device_about about;
        st = plugin->describe(i, &about);
        if (st != ZERO_OK) break;
        char type[16];
        snprintf(type, sizeof type, "sm_%d", about.capability);
        json_t *one = gpu(i, &about);
        json_object_set_new(one, "type", json_string(type));
        json_array_append_new(list, one);
        if (i == 0) put_versions(info, &about);
    }
    return st;
}

void zero_info_put_devices(json_t *info)
{
    const zero_backend *backend = NULL;
    const zero_plugin *plugin = NULL;
    json_t *gpus = json_array();
    json_object_set_new(info, "devices", names());
    zero_status st = zero_device_find(CUDA, &backend, &plugin);
    if (st == ZERO_OK) st = put_gpus(info, gpus, plugin);
    json_object_set_new(info, "cuda", json_boolean(json_array_size(gpus) > 0));
    if (st != ZERO_OK)
        json_object_set_new(info, "cuda_about", json_string(zero_last_error()));
    json_object_set_new(info, "gpus", gpus);
}

static double gib(json_t *gpu_object, const char *key)
{
    return (double)json_integer_value(json_object_get(gpu_object, key)) / 0x1p30;
}

static const char *text(json_t *gpu_object, const char *key)
{
    return json_string_value(json_object_get(gpu_object, key));
}

void zero_info_print_gpu(json_t *g)
{
    printf("%d %s, %s, %.1f GiB, %.1f free, %s",
           (int)json_integer_value(json_object_get(g, "device")), text(g, "name"),
           text(g, "type"), gib(g, "memory_bytes"), gib(g, "memory_free_bytes"),
           text(g, "bus"));
}
