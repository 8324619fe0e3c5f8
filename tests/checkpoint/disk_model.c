#include "checkpoint/disk_model.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK   512
#define NAME    64
#define ENTRIES 64   /* names in one directory */
#define CHANGES 256  /* in one directory between two syncs */
#define OBJECTS 8192 /* files and directories ever made */

typedef struct {
    char name[NAME];
    int object;
} entry;

typedef struct {
    entry entries[ENTRIES];
    int n;
} names;

typedef struct { /* "" is no name: making a file only adds one, a rename also removes one */
    char takes[NAME], adds[NAME];
    int object;
} change;

typedef struct {
    unsigned char *bytes;
    size_t n;
} content;

typedef struct {
    bool is_dir;
    names now_names, safe_names;
    change changes[CHANGES]; /* from safe_names to now_names */
    int n_changes;
    content now, safe;
    bool *is_dirty; /* [blocks of now]: written since the last sync */
} node;

struct disk {
    node *objects[OBJECTS];
    int n; /* the first is the root */
};

void disk_stop(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("power_loss: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

static void *memory(void *old, size_t bytes)
{
    void *p = realloc(old, bytes > 0 ? bytes : 1);
    if (!p) disk_stop("no memory");
    return p;
}

static int add_object(disk *d, bool is_dir)
{
    if (d->n == OBJECTS) disk_stop("more than %d files", OBJECTS);
    node *o = memory(NULL, sizeof *o);
    memset(o, 0, sizeof *o);
    o->is_dir = is_dir;
    d->objects[d->n] = o;
    return d->n++;
}

disk *disk_new(void)
{
    disk *d = memory(NULL, sizeof *d);
    d->n = 0;
    add_object(d, true);
    return d;
}

void disk_free(disk *d)
{
    for (int i = 0; i < d->n; i++) {
        free(d->objects[i]->now.bytes);
        free(d->objects[i]->safe.bytes);
        free(d->objects[i]->is_dirty);
        free(d->objects[i]);
    }
    free(d);
}

/* ---- names ---- */

static int find(const names *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->entries[i].name, name) == 0) return i;
    return -1;
}

static void apply_change(names *list, const change *c, bool takes)
{
    int i = takes && *c->takes ? find(list, c->takes) : -1;
    if (i >= 0) list->entries[i] = list->entries[--list->n];
    if (!*c->adds) return;
    i = find(list, c->adds);
    if (i < 0) i = list->n++;
    if (i == ENTRIES) disk_stop("more than %d names in a directory", ENTRIES);
    strcpy(list->entries[i].name, c->adds);
    list->entries[i].object = c->object;
}

static void make_change(node *dir, const char *takes, const char *adds, int object)
{
    if (dir->n_changes == CHANGES)
        disk_stop("more than %d changes without a sync", CHANGES);
    change *c = &dir->changes[dir->n_changes++];
    *c = (change){.object = object};
    snprintf(c->takes, NAME, "%s", takes);
    snprintf(c->adds, NAME, "%s", adds);
    apply_change(&dir->now_names, c, true);
}

/* Splits a path into its directory and its last part. */
static node *parent_of(disk *d, const char *path, const char **last)
{
    node *dir = d->objects[0];
    const char *slash;
    for (; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        char name[NAME];
        snprintf(name, sizeof name, "%.*s", (int)(slash - path), path);
        int i = find(&dir->now_names, name);
        if (i < 0) disk_stop("%s: no such directory", path);
        dir = d->objects[dir->now_names.entries[i].object];
    }
    if (strlen(path) >= NAME) disk_stop("%s: too long a name", path);
    *last = path;
    return dir;
}

static node *object_at(disk *d, const char *path)
{
    const char *name;
    if (strcmp(path, ".") == 0) return d->objects[0];
    node *dir = parent_of(d, path, &name);
    int i = find(&dir->now_names, name);
    return i < 0 ? NULL : d->objects[dir->now_names.entries[i].object];
}

/* ---- calls ---- */

static void make(disk *d, const char *path, bool is_dir)
{
    const char *name;
    node *dir = parent_of(d, path, &name);
    make_change(dir, "", name, add_object(d, is_dir));
}

static void grow(node *file, size_t n)
{
    size_t blocks = (file->now.n + BLOCK - 1) / BLOCK, more = (n + BLOCK - 1) / BLOCK;
    if (n <= file->now.n) return;
    file->now.bytes = memory(file->now.bytes, n);
    memset(file->now.bytes + file->now.n, 0, n - file->now.n);
    file->is_dirty = memory(file->is_dirty, more * sizeof *file->is_dirty);
    memset(file->is_dirty + blocks, 0, (more - blocks) * sizeof *file->is_dirty);
    file->now.n = n;
}

static void write_file(node *file, const disk_call *c, FILE *data)
{
    size_t begin = (size_t)c->b, n = (size_t)c->a;
    if (n == 0) return;
    grow(file, begin + n);
    if (fseek(data, c->at, SEEK_SET) != 0 ||
        fread(file->now.bytes + begin, 1, n, data) != n)
        disk_stop("%s: %zu bytes are not in the file of data", c->path, n);
    for (size_t i = begin / BLOCK; i <= (begin + n - 1) / BLOCK; i++)
        file->is_dirty[i] = true;
}

static void sync_object(node *o)
{
    o->safe_names = o->now_names;
    o->n_changes = 0;
    if (o->is_dir) return;
    o->safe.bytes = memory(o->safe.bytes, o->now.n);
    if (o->now.n > 0) memcpy(o->safe.bytes, o->now.bytes, o->now.n);
    o->safe.n = o->now.n;
    for (size_t i = 0; i < (o->now.n + BLOCK - 1) / BLOCK; i++) o->is_dirty[i] = false;
}

static void rename_object(disk *d, const disk_call *c)
{
    const char *from, *to;
    node *dir = parent_of(d, c->path, &from);
    if (parent_of(d, c->other, &to) != dir)
        disk_stop("%s: renamed to another directory", c->path);
    int i = find(&dir->now_names, from);
    if (i < 0) disk_stop("%s: renamed, and not there", c->path);
    make_change(dir, from, to, dir->now_names.entries[i].object);
}

static void remove_object(disk *d, const disk_call *c)
{
    const char *name;
    node *dir = parent_of(d, c->path, &name);
    if (find(&dir->now_names, name) < 0) disk_stop("%s: removed, and not there", c->path);
    make_change(dir, name, "", 0);
}

static node *expect(disk *d, const disk_call *c)
{
    node *o = object_at(d, c->path);
    if (!o) disk_stop("%s: %s, and not there", c->path, c->name);
    return o;
}

static void open_object(disk *d, const disk_call *c)
{
    if (c->a & O_TRUNC) disk_stop("%s: truncated", c->path);
    if ((c->a & O_CREAT) && !object_at(d, c->path)) make(d, c->path, false);
}

void disk_apply(disk *d, const disk_call *c, FILE *data)
{
    static const char *const harmless[] = {"close", "chmod",   "flock",
                                           "stat",  "statvfs", "announce"};
    if (c->error != 0) return;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strcmp(c->name, harmless[i]) == 0) return;
    if (strcmp(c->name, "open") == 0)
        open_object(d, c);
    else if (strcmp(c->name, "mkdir") == 0)
        make(d, c->path, true);
    else if (strcmp(c->name, "write") == 0)
        write_file(expect(d, c), c, data);
    else if (strcmp(c->name, "allocate") == 0)
        grow(expect(d, c), (size_t)(c->a + c->b));
    else if (strcmp(c->name, "fsync") == 0)
        sync_object(expect(d, c));
    else if (strcmp(c->name, "rename") == 0)
        rename_object(d, c);
    else if (strcmp(c->name, "unlink") == 0)
        remove_object(d, c);
    else
        disk_stop("%s: a call that this does not know", c->name);
}

/* ---- what is left ---- */

/* Each object draws from its own stream, so a state depends on the seed alone. */
static uint64_t draw(uint64_t *stream)
{
    uint64_t z = *stream += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static names names_left(const node *dir, disk_loss loss, uint64_t stream)
{
    names left = dir->safe_names;
    int n = dir->n_changes;
    if (loss == DISK_LOST) return left;
    if (loss != DISK_RANDOM) return dir->now_names;
    if (draw(&stream) % 2) { /* some of the first, in order */
        n = (int)(draw(&stream) % (uint64_t)(n + 1));
        for (int i = 0; i < n; i++) apply_change(&left, &dir->changes[i], true);
        return left;
    }
    /* Any of them. A renamed directory may still have its old name, too. */
    for (int i = 0; i < n; i++)
        if (draw(&stream) % 2)
            apply_change(&left, &dir->changes[i], draw(&stream) % 4 != 0);
    return left;
}

static size_t between(size_t a, size_t b, uint64_t *stream)
{
    size_t low = a < b ? a : b, high = a < b ? b : a;
    return low + (size_t)(draw(stream) % (high - low + 1));
}

/* Owned by the caller. */
static content content_left(const node *file, disk_loss loss, uint64_t stream)
{
    content left = {memory(NULL, file->now.n), file->now.n};
    /* The part of blocks that is kept: all, none, or a random one of 1/2 or 15/16. */
    static const unsigned parts[] = {16, 0, 8, 15};
    unsigned part = loss == DISK_KEPT ? 16 : 0;
    if (loss == DISK_LOST || loss == DISK_SHORT) left.n = file->safe.n;
    if (loss == DISK_RANDOM) part = parts[draw(&stream) % 4];
    if (loss == DISK_RANDOM && draw(&stream) % 2)
        left.n = between(file->safe.n, file->now.n, &stream);
    if (left.n == 0) return left;
    memcpy(left.bytes, file->now.bytes, left.n);
    for (size_t begin = 0; begin < left.n; begin += BLOCK) {
        size_t n = left.n - begin < BLOCK ? left.n - begin : BLOCK;
        if (!file->is_dirty[begin / BLOCK] || draw(&stream) % 16 < part) continue;
        memset(left.bytes + begin, 0, n);
        if (begin >= file->safe.n) continue;
        size_t old = file->safe.n - begin;
        memcpy(left.bytes + begin, file->safe.bytes + begin, old < n ? old : n);
    }
    return left;
}

/* Without a root the walk only adds to the fingerprint. */
typedef struct {
    const disk *d;
    disk_loss loss;
    uint64_t seed, mix;
    const char *root;
} walk;

/* Word by word: most of the time goes into this. */
static void mix(walk *w, const void *bytes, size_t n)
{
    for (size_t i = 0; i <= n; i += sizeof(uint64_t)) {
        uint64_t word = n - i; /* at the end; all lengths differ */
        memcpy(&word, (const char *)bytes + i, n - i < sizeof word ? n - i : sizeof word);
        w->mix = (w->mix ^ word) * 0x9e3779b97f4a7c15u;
        w->mix ^= w->mix >> 29;
    }
    w->mix = (w->mix ^ n) * 0x9e3779b97f4a7c15u;
}

static uint64_t stream_of(const walk *w, int object)
{
    uint64_t stream = w->seed;
    return draw(&stream) + (uint64_t)object * 0xd1b54a32d192ed03u;
}

static void leave_file(walk *w, int object, const char *path)
{
    content left = content_left(w->d->objects[object], w->loss, stream_of(w, object));
    if (w->root) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || write(fd, left.bytes, left.n) != (ssize_t)left.n || close(fd) != 0)
            disk_stop("%s: cannot be written", path);
    } else
        mix(w, left.bytes, left.n);
    free(left.bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static void leave_dir(walk *w, int object, const char *path)
{
    names left = names_left(w->d->objects[object], w->loss, stream_of(w, object));
    qsort(left.entries, (size_t)left.n, sizeof left.entries[0], by_name);
    for (int i = 0; i < left.n; i++) {
        const entry *e = &left.entries[i];
        char inner[PATH_MAX];
        snprintf(inner, sizeof inner, "%s/%s", path, e->name);
        if (!w->root) mix(w, e->name, strlen(e->name));
        if (!w->d->objects[e->object]->is_dir) {
            leave_file(w, e->object, inner);
            continue;
        }
        if (w->root && mkdir(inner, 0700) != 0) disk_stop("%s: cannot be made", inner);
        leave_dir(w, e->object, inner);
    }
    if (!w->root) mix(w, "/", 1);
}

uint64_t disk_fingerprint(const disk *d, disk_loss loss, uint64_t seed)
{
    walk w = {.d = d, .loss = loss, .seed = seed, .mix = 0xcbf29ce484222325u};
    leave_dir(&w, 0, ".");
    return w.mix;
}

void disk_write_out(const disk *d, disk_loss loss, uint64_t seed, const char *root)
{
    walk w = {.d = d, .loss = loss, .seed = seed, .root = root};
    leave_dir(&w, 0, root);
}
