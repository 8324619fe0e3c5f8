/* plugin.c - finds and loads the library of a device. Nothing is kept on this side: the
 * loader itself knows what is loaded, and loading it again gives the same. */
#define _GNU_SOURCE /* dladdr */
#include "math/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

/* From the folder of the installed program to that of libraries: "../lib". */
#ifndef ZERO_PLUGIN_LIBDIR
#define ZERO_PLUGIN_LIBDIR "../lib"
#endif

typedef struct {
    char path[PATH_MAX];
} file_path;

/* ---- where ---- */

/* This program or library, with its whole path. A program that was found by PATH does not
 * know where it lies, but the system does. */
static bool find_this_code(file_path *file)
{
    Dl_info info;
    /* ISO C has no conversion from functions to void *; POSIX has. */
    zero_status (*const here)(const char *, const zero_plugin **) = zero_plugin_open;
    void *address;
    memcpy(&address, &here, sizeof address);
    if (dladdr(address, &info) && info.dli_fname && strchr(info.dli_fname, '/') &&
        realpath(info.dli_fname, file->path))
        return true;
    return realpath("/proc/self/exe", file->path) != NULL;
}

/* True if the folder, the first `length` bytes of a text, has the library. */
static bool is_in(const char *folder, size_t length, const char *name, file_path *found)
{
    int n = zero_print(found->path, "%.*s/%s", (int)length, folder, name);
    return length > 0 && n > 0 && (size_t)n < sizeof found->path &&
           access(found->path, F_OK) == 0;
}

static bool is_in_list(const char *folders, const char *name, file_path *found)
{
    for (const char *at = folders; at;) {
        const size_t length = strcspn(at, ":");
        if (is_in(at, length, name, found)) return true;
        at = at[length] ? at + length + 1 : NULL;
    }
    return false;
}

static bool find_library(const char *name, file_path *found)
{
    file_path this, libraries;
    char *slash = find_this_code(&this) ? strrchr(this.path, '/') : NULL;
    if (slash) *slash = '\0';
    if (slash && is_in(this.path, strlen(this.path), name, found)) return true;
    if (is_in_list(getenv("ZERO_PLUGINS"), name, found)) return true;
    int n = slash ? zero_print(libraries.path, "%.*s/%s",
                               (int)(sizeof libraries.path - sizeof ZERO_PLUGIN_LIBDIR - 1),
                               this.path, ZERO_PLUGIN_LIBDIR)
                  : 0;
    return n > 0 && is_in(libraries.path, (size_t)n, name, found);
}

/* ---- what ---- */

static zero_status tell_program(const char *file, int line, zero_status code,
                                const char *text)
{
    return zero_fail_at(file, line, code, "%s", text);
}

static zero_status load(const char *path, const zero_plugin **plugin)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();
    ZERO_FAIL_IF(!library, ZERO_ERR_ENV,
                 "%s cannot be loaded: %s; CUDA's libraries must lie where the loader "
                 "looks (see LD_LIBRARY_PATH)",
                 path, why ? why : "no reason is known");
    const zero_plugin *found = dlsym(library, ZERO_PLUGIN_SYMBOL);
    ZERO_FAIL_IF(
        !found, ZERO_ERR_ENV,
        "%s is not a plugin of this program: it has no %s; remove it, or build it again",
        path, ZERO_PLUGIN_SYMBOL);
    ZERO_FAIL_IF(found->version != ZERO_PLUGIN_VERSION, ZERO_ERR_ENV,
                 "%s is a plugin of version %u, and this program needs version %d: build "
                 "both from the same source",
                 path, (unsigned)found->version, ZERO_PLUGIN_VERSION);
    ZERO_FAIL_IF(found->backend_bytes != sizeof(zero_backend), ZERO_ERR_ENV,
                 "%s has a table of %u bytes, and this program needs one of %zu bytes: "
                 "build both from the same source",
                 path, (unsigned)found->backend_bytes, sizeof(zero_backend));
    found->hear(tell_program);
    *plugin = found;
    return ZERO_OK;
}

zero_status zero_plugin_open(const char *device, const zero_plugin **plugin)
{
    char name[64];
    file_path found;
    /* "libzero_cuda.so" */
    zero_print(name, "libzero_%s.so", device);
    for (char *c = name; *c; c++)
        if (*c == '-') *c = '_';
    if (find_library(name, &found)) return load(found.path, plugin);
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "this build has no CUDA backend: configure with -DZERO_CUDA=ON where "
                     "nvcc and cuBLAS are, or set ZERO_PLUGINS to the folder of %s",
                     name);
}
