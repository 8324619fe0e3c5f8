/* memory.cc - memory of the devices, which the host cannot touch, and host memory that copies may
 * use.
 *
 * Each device has a protection key, so opening and closing all of its memory is one instruction.
 * Where processors have none, mprotect() does it, piece by piece. Fresh memory is NaN in every
 * format: its pages are those of one small file of ones, until they are written. A piece ends at a
 * page without access, but for what alignment leaves. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu/emulated/device.h"
#include "gpu/emulated/sanitizer.h"

namespace emulated
{

struct range {
    char *begin;
    std::size_t bytes;

    bool holds(const void *memory, std::size_t n) const
    {
        const uintptr_t from = (uintptr_t)begin, at = (uintptr_t)memory;
        return at >= from && at - from <= bytes && n <= bytes - (at - from);
    }
};

struct piece : range {
    range mapped, pages; /* with and without the pages that guard it */
    int device;
    int file = -1;              /* its pages', once another process may open them */
    bool is_neighbours = false; /* another process has taken it */
};

static std::vector<piece> pieces;
static std::vector<range> registered;

/* ---- protection ---- */

/* -1: not tried yet; -2: there are none. */
static int keys[most_devices] = {-1, -1, -1, -1, -1, -1, -1, -1};

static int key_of(int device)
{
    if (keys[device] == -1) {
        const int key =
            the_machine()->set.has_keys ? pkey_alloc(0, PKEY_DISABLE_ACCESS) : -1;
        keys[device] = key < 0 ? -2 : key;
    }
    return keys[device];
}

static void protect(int device, int access)
{
    for (const piece &p : pieces)
        if (p.device == device) mprotect(p.pages.begin, p.pages.bytes, access);
}

void memory_open(int device)
{
    if (key_of(device) >= 0)
        pkey_set(key_of(device), 0);
    else
        protect(device, PROT_READ | PROT_WRITE);
}

void memory_close(int device)
{
    if (the_machine()->set.is_open) return;
    if (key_of(device) >= 0)
        pkey_set(key_of(device), PKEY_DISABLE_ACCESS);
    else
        protect(device, PROT_NONE);
}

static bool begin_closed(const piece &p)
{
    if (the_machine()->set.is_open) return true;
    const int key = key_of(p.device);
    if (key < 0) return mprotect(p.pages.begin, p.pages.bytes, PROT_NONE) == 0;
    return pkey_mprotect(p.pages.begin, p.pages.bytes, PROT_READ | PROT_WRITE, key) == 0;
}

/* ---- pieces ---- */

static const std::size_t ones_bytes = 8 << 20, alignment = 256;

static std::size_t round_up(std::size_t bytes, std::size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* A file of ones, or -1. */
static int ones()
{
    static int file = -1;
    if (file >= 0) return file;
    file = memfd_create("emulated-device", MFD_CLOEXEC);
    std::vector<char> block(ones_bytes, (char)0xff);
    if (file >= 0 && write(file, block.data(), ones_bytes) != (ssize_t)ones_bytes) {
        close(file);
        file = -1;
    }
    return file;
}

static bool map_ones(range pages)
{
    for (std::size_t at = 0; at < pages.bytes; at += ones_bytes) {
        const std::size_t n = std::min(ones_bytes, pages.bytes - at);
        if (mmap(pages.begin + at, n, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, ones(), 0) == MAP_FAILED)
            return false;
    }
    return true;
}

/* Addresses for a piece, without pages. */
static bool reserve(piece *p, int device, std::size_t bytes)
{
    const std::size_t page = (std::size_t)sysconf(_SC_PAGESIZE);
    const std::size_t inner = round_up(bytes, page), outer = inner + 2 * page;
    void *at =
        mmap(nullptr, outer, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return false;
    p->device = device;
    p->mapped = {(char *)at, outer};
    p->pages = {(char *)at + page, inner};
    p->begin = p->pages.begin + inner - round_up(bytes, alignment);
    p->bytes = bytes;
    return true;
}

static bool map(piece *p, int device, std::size_t bytes)
{
    if (!reserve(p, device, bytes)) return false;
    if (ones() >= 0 && map_ones(p->pages) && begin_closed(*p)) return true;
    munmap(p->mapped.begin, p->mapped.bytes);
    return false;
}

cudaError_t memory_take(int device, std::size_t bytes, void **memory)
{
    machine *m = the_machine();
    const std::size_t left = m->set.memory - m->devices[device].taken;
    piece p;
    if (bytes > left || !map(&p, device, bytes)) return cudaErrorMemoryAllocation;
    m->devices[device].taken += bytes;
    sanitizer_forbids(p.begin + bytes, round_up(bytes, alignment) - bytes);
    pieces.push_back(p);
    *memory = p.begin;
    return cudaSuccess;
}

/* The addresses stay taken, without pages: memory that is mapped there later would hide a kernel that
 * still uses the piece. */
static void drop(piece &p)
{
    sanitizer_allows(p.pages.begin, p.pages.bytes);
    mmap(p.mapped.begin, p.mapped.bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (p.file >= 0) close(p.file);
    std::swap(p, pieces.back());
    pieces.pop_back();
}

cudaError_t memory_give_back(void *memory)
{
    for (piece &p : pieces) {
        if (p.begin != memory || p.is_neighbours) continue;
        the_machine()->devices[p.device].taken -= p.bytes;
        drop(p);
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

/* ---- shared ----
 *
 * A piece that is shared gets pages of a file without a name, which another process opens through
 * /proc, as the windows of comm/ do: nothing is left behind, however a process ends. */

struct shared_handle {
    int64_t process, file, device;
    uint64_t bytes, inode,
        filesystem; /* the last two tell whether the path led to the file */
};

static bool is_file(int file, const shared_handle &h)
{
    struct stat info;
    return fstat(file, &info) == 0 && (uint64_t)info.st_ino == h.inode &&
           (uint64_t)info.st_dev == h.filesystem;
}

static bool map_file(const piece &p, int file)
{
    return mmap(p.pages.begin, p.pages.bytes, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, 0) != MAP_FAILED &&
           begin_closed(p);
}

/* The piece's bytes move to the file. */
static bool move_to_file(piece *p)
{
    const int file = memfd_create("emulated-shared", MFD_CLOEXEC);
    std::size_t done = 0;
    memory_open(p->device);
    while (file >= 0 && done < p->pages.bytes) {
        const ssize_t n = write(file, p->pages.begin + done, p->pages.bytes - done);
        if (n <= 0) break;
        done += (std::size_t)n;
    }
    memory_close(p->device);
    p->file = file;
    return done == p->pages.bytes && map_file(*p, file);
}

cudaError_t memory_share(void *memory, cudaIpcMemHandle_t *handle)
{
    for (piece &p : pieces) {
        struct stat info;
        if (p.begin != memory || p.is_neighbours) continue;
        if (p.file < 0 && !move_to_file(&p)) return cudaErrorMapBufferObjectFailed;
        if (fstat(p.file, &info) != 0) return cudaErrorMapBufferObjectFailed;
        const shared_handle h = {getpid(), p.file,      p.device,
                                 p.bytes,  info.st_ino, info.st_dev};
        static_assert(sizeof h <= sizeof *handle, "CUDA's handle has room");
        std::memset(handle, 0, sizeof *handle);
        std::memcpy(handle, &h, sizeof h);
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

cudaError_t memory_open_shared(int device, const cudaIpcMemHandle_t *handle, void **memory)
{
    shared_handle h;
    char path[64];
    piece p;
    std::memcpy(&h, handle, sizeof h);
    if (h.process == getpid()) return cudaErrorInvalidResourceHandle;
    if (h.device != device && !the_machine()->set.has_peers)
        return cudaErrorPeerAccessUnsupported;
    std::snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)h.process,
                  (long long)h.file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return cudaErrorMapBufferObjectFailed;
    const bool is_there = is_file(file, h) && reserve(&p, device, h.bytes);
    const bool is_mapped = is_there && map_file(p, file);
    close(file); /* the mapping keeps the pages */
    if (is_there && !is_mapped) munmap(p.mapped.begin, p.mapped.bytes);
    if (!is_mapped) return cudaErrorMapBufferObjectFailed;
    p.is_neighbours = true;
    pieces.push_back(p);
    *memory = p.begin;
    return cudaSuccess;
}

cudaError_t memory_close_shared(void *memory)
{
    for (piece &p : pieces) {
        if (p.begin != memory || !p.is_neighbours) continue;
        drop(p);
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

/* ---- where ---- */

bool memory_is_of(int device, const void *memory, std::size_t bytes)
{
    for (const piece &p : pieces)
        if (p.device == device && p.holds(memory, bytes)) return true;
    return false;
}

int memory_owner(const void *memory)
{
    for (const piece &p : pieces)
        if (p.holds(memory, 1)) return p.device;
    return -1;
}

/* ---- the host's ---- */

cudaError_t memory_register(void *host, std::size_t bytes)
{
    const char *begin = (const char *)host;
    for (const range &r : registered)
        if (begin < r.begin + r.bytes && r.begin < begin + bytes)
            return cudaErrorHostMemoryAlreadyRegistered;
    if (memory_owner(host) >= 0) return cudaErrorInvalidValue;
    registered.push_back({(char *)host, bytes});
    return cudaSuccess;
}

cudaError_t memory_unregister(void *host)
{
    for (range &r : registered) {
        if (r.begin != host) continue;
        std::swap(r, registered.back());
        registered.pop_back();
        return cudaSuccess;
    }
    return cudaErrorHostMemoryNotRegistered;
}

bool memory_is_registered(const void *host, std::size_t bytes)
{
    for (const range &r : registered)
        if (r.holds(host, bytes)) return true;
    return false;
}

} // namespace emulated
