#include "base/memory_limit.h"

#include "base/fail.h"

#define PATH_SIZE 4352 /* a group's path, of 4096 bytes at most, below `root` */

/* The same three numbers under the names of the two versions. */
typedef struct {
    const char *mount, *limit, *usage, *cache; /* cache: the key in memory.stat */
} hierarchy;

static const hierarchy version1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                   "memory.usage_in_bytes", "total_inactive_file"};
static const hierarchy version2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                   "inactive_file"};

/* The number after `key` (NULL: the first in the file) in <folder>/<name>; "max" is not
 * one. */
static bool read_number(const char *folder, const char *name, const char *key,
                        uint64_t *out)
{
    char path[PATH_SIZE + 64], line[256];
    zero_print(path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        size_t skip = key ? strlen(key) : 0;
        if (key && (strncmp(line, key, skip) != 0 || line[skip] != ' ')) continue;
        char *end;
        errno = 0;
        *out = strtoull(line + skip, &end, 10);
        found = end != line + skip && errno == 0;
        if (!key) break;
    }
    fclose(file);
    return found;
}

/* Tightens *least to one group's limit. */
static void apply_group(const char *folder, const hierarchy *h, zero_memory_limit *least)
{
    uint64_t limit, usage = 0, cache = 0;
    if (!read_number(folder, h->limit, NULL, &limit)) return;
    /* Version 1 writes "no limit" as the largest page-aligned number. */
    if (limit >= UINT64_C(1) << 60) return;
    read_number(folder, h->usage, NULL, &usage);
    read_number(folder, "memory.stat", h->cache, &cache);
    /* Idle file cache counts as usage, but the kernel gives it back before it kills a
     * process. */
    usage = usage > cache ? usage - cache : 0;
    uint64_t available = limit > usage ? limit - usage : 0;
    if (least->limit == 0 || available < least->available)
        least->available = (size_t)available;
    if (least->limit == 0 || limit < least->limit) least->limit = (size_t)limit;
}

/* Walks from `path`'s group up to the root. In a container the path may be the host's, with
 * no folder here: those levels are skipped, and the mount itself is the container's
 * group. */
static void apply_ancestors(const char *root, char *path, const hierarchy *h,
                            zero_memory_limit *least)
{
    char folder[PATH_SIZE];
    for (;;) {
        zero_print(folder, "%s%s%s", root, h->mount, path);
        apply_group(folder, h, least);
        char *slash = strrchr(path, '/');
        if (!slash) return;
        *slash = '\0';
    }
}

void zero_memory_limit_read(const char *root, zero_memory_limit *limit)
{
    char path[PATH_SIZE], line[PATH_SIZE];
    zero_memory_limit least = {0};
    zero_print(path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        /* "5:memory,hugetlb:/group" in version 1, "0::/group" in version 2 */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *controllers++ = '\0';
        *group++ = '\0';
        if (zero_same_text(line, "0")) apply_ancestors(root, group, &version2, &least);
        char *rest = NULL, *c = strtok_r(controllers, ",", &rest);
        while (c && !zero_same_text(c, "memory")) c = strtok_r(NULL, ",", &rest);
        if (c) apply_ancestors(root, group, &version1, &least);
    }
    if (file) fclose(file);
    *limit = least;
}

size_t zero_memory_line(const char *key)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128], name[64];
    uint64_t kib = 0;
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file))
        found =
            sscanf(line, "%63[^:]: %" SCNu64, name, &kib) == 2 && zero_same_text(name, key);
    if (file) fclose(file);
    return found ? (size_t)kib * 1024 : 0;
}

size_t zero_memory_available(void)
{
    zero_memory_limit group;
    size_t available = zero_memory_line("MemAvailable");
    zero_memory_limit_read("", &group);
    return group.limit && group.available < available ? group.available : available;
}
