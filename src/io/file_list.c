#include "io/file_list.h"

#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>

#include "base/grow.h"
#include "io/file.h"
#include "io/system_call.h"

static zero_status no_memory(const char *path)
{
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the list of files at %s", path);
}

static zero_status add_file(zero_files *files, const char *path)
{
    if (!zero_grow(files->paths, files->n, &files->capacity)) return no_memory(path);
    char *copy = strdup(path);
    if (!copy) return no_memory(path);
    files->paths[files->n++] = copy;
    return ZERO_OK;
}

static zero_status add_directory(zero_files *files, const char *path);

static zero_status add_entry(zero_files *files, const char *directory, const char *name)
{
    size_t len = strlen(directory), size = len + strlen(name) + 2;
    ZERO_FREED char *path = malloc(size);
    if (!path) return no_memory(directory);
    snprintf(path, size, "%s%s%s", directory, directory[len - 1] == '/' ? "" : "/", name);
    struct stat info;
    /* A link to a directory may lead back up, so the walk might never end. */
    if (zero_examine_in(AT_FDCWD, path, &info) && S_ISDIR(info.st_mode))
        return add_directory(files, path);
    ZERO_FAIL_IF(!zero_examine(path, &info), ZERO_ERR_IO, "%s: %s", path, strerror(errno));
    return S_ISREG(info.st_mode) ? add_file(files, path) : ZERO_OK;
}

static zero_status cannot_list(const char *path)
{
    return zero_fail(ZERO_ERR_IO, "%s: the directory cannot be listed: %s", path,
                     strerror(errno));
}

static void close_stream(DIR **stream)
{
    if (*stream) closedir(*stream);
}

static zero_status add_directory(zero_files *files, const char *path)
{
    ZERO_AT_END(close_stream) DIR *directory = NULL;
    ZERO_WATCHED(path, "listed", directory = opendir(path));
    if (!directory) return cannot_list(path);
    files->has_directory = true;
    for (;;) {
        const struct dirent *e;
        errno = 0; /* NULL is the end or an error; half a list must not pass for all */
        ZERO_WATCHED(path, "listed", e = readdir(directory));
        if (!e) return errno == 0 ? ZERO_OK : cannot_list(path);
        if (e->d_name[0] != '.') ZERO_TRY(add_entry(files, path, e->d_name));
    }
}

static zero_status add_path(zero_files *files, const char *path)
{
    struct stat info;
    ZERO_FAIL_IF(!zero_examine(path, &info), ZERO_ERR_IO, "%s: %s", path, strerror(errno));
    return S_ISDIR(info.st_mode) ? add_directory(files, path) : add_file(files, path);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

zero_status zero_files_list(const char *option, const char *others, const char *spec,
                            zero_files *files)
{
    ZERO_AT_END(zero_files_destroy) zero_files found = {0};
    struct stat info;
    if (zero_examine(spec, &info))
        ZERO_TRY(add_path(&found, spec));
    else if (strpbrk(spec, "*?[")) {
        ZERO_AT_END(globfree) glob_t matching = {0};
        int code;
        ZERO_WATCHED(spec, "listed", code = glob(spec, GLOB_ERR, NULL, &matching));
        if (code == GLOB_NOSPACE) return no_memory(spec);
        ZERO_FAIL_IF(code == GLOB_NOMATCH, ZERO_ERR_IO, "%s: no file matches this pattern",
                     spec);
        ZERO_FAIL_IF(code != 0, ZERO_ERR_IO,
                     "%s: a directory of this pattern cannot be listed: %s", spec,
                     strerror(errno));
        for (size_t i = 0; i < matching.gl_pathc; i++)
            ZERO_TRY(add_path(&found, matching.gl_pathv[i]));
    } else
        return zero_fail(ZERO_ERR_IO,
                         "%s %s: %s; expected %sa file, a directory or a pattern in quotes",
                         option, spec, strerror(errno), others);
    ZERO_FAIL_IF(found.n == 0, ZERO_ERR_IO,
                 "%s: no regular file below this directory (hidden ones do not count)",
                 spec);
    zero_sort(found.paths, found.n, by_path);
    ZERO_GIVE(files, found);
    return ZERO_OK;
}

void zero_files_destroy(zero_files *files)
{
    for (int64_t i = 0; i < files->n; i++) free(files->paths[i]);
    free(files->paths);
    *files = (zero_files){0};
}

/* ---- whether a path is among them ---- */

bool zero_files_have(const char *spec, const char *path)
{
    zero_files files = {0};
    struct stat own, other;
    bool found = false;
    if (!zero_examine(path, &own) || zero_files_list("", "", spec, &files) != ZERO_OK)
        return false;
    for (int64_t i = 0; i < files.n && !found; i++)
        found = zero_examine(files.paths[i], &other) && zero_is_one_file(&own, &other);
    zero_files_destroy(&files);
    return found;
}

/* The directory that the path is in, without links, and its own name. */
typedef struct {
    char folder[PATH_MAX], path[PATH_MAX];
    const char *name; /* in path */
} place;

static bool find_place(const char *path, place *p)
{
    size_t n = strlen(path);
    if (n >= sizeof p->path) return false;
    while (n > 1 && path[n - 1] == '/') n--;
    zero_print(p->path, "%.*s", (int)n, path);
    char *slash = strrchr(p->path, '/');
    p->name = slash ? slash + 1 : p->path;
    const char *folder = !slash ? "." : slash == p->path ? "/" : p->path, *whole;
    if (slash) *slash = '\0';
    ZERO_WATCHED(folder, "examined", whole = realpath(folder, p->folder));
    return whole != NULL;
}

/* True if a listing of this directory would find the place. It passes over hidden names and
 * follows no link. */
static bool leads_to(const char *directory, const place *p)
{
    struct stat root, at;
    char folder[PATH_MAX];
    bool is_hidden = p->name[0] == '.';
    zero_print(folder, "%s", p->folder);
    if (!zero_examine(directory, &root) || !S_ISDIR(root.st_mode)) return false;
    for (;;) {
        if (zero_examine(folder, &at) && zero_is_one_file(&at, &root)) return !is_hidden;
        char *slash = strrchr(folder, '/');
        if (!slash || slash[1] == '\0') return false;
        is_hidden = is_hidden || slash[1] == '.';
        slash[slash == folder] = '\0';
    }
}

/* The pattern's last part is that of names, the rest that of directories. */
static bool matches(const char *pattern, const place *p)
{
    const char *slash = strrchr(pattern, '/'), *names = slash ? slash + 1 : pattern;
    char folders[PATH_MAX] = ".";
    struct stat own, other;
    glob_t found = {0};
    bool is_in = false;
    int failed = 1;
    if (strlen(pattern) >= sizeof folders || !zero_examine(p->folder, &own)) return false;
    if (slash) zero_print(folders, "%.*s", (int)(slash - pattern) + 1, pattern);
    if (fnmatch(names, p->name, FNM_PERIOD) == 0)
        ZERO_WATCHED(folders, "listed", failed = glob(folders, 0, NULL, &found));
    for (size_t i = 0; !failed && i < found.gl_pathc && !is_in; i++)
        is_in = zero_examine(found.gl_pathv[i], &other) && zero_is_one_file(&own, &other);
    globfree(&found);
    return is_in;
}

bool zero_files_would_have(const char *spec, const char *path)
{
    place p;
    struct stat info;
    glob_t found = {0};
    if (!find_place(path, &p)) return false;
    if (zero_examine(spec, &info))
        return leads_to(spec, &p) ||
               (S_ISDIR(info.st_mode) && zero_file_is_same(spec, path));
    bool has = matches(spec, &p);
    int failed = 1;
    if (!has) ZERO_WATCHED(spec, "listed", failed = glob(spec, 0, NULL, &found));
    for (size_t i = 0; !failed && i < found.gl_pathc && !has; i++)
        has = zero_files_would_have(found.gl_pathv[i], path);
    globfree(&found);
    return has;
}
