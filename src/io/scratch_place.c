#include "io/scratch_place.h"

#include <sys/statfs.h>

#include "io/system_call.h"

/* ---- the file system's name ---- */

/* The number of the mount that an open file lies on; -1 if /proc does not say. */
static int mount_of(int fd)
{
    char path[64], line[256];
    int id = -1;
    zero_print(path, "/proc/self/fdinfo/%d", fd);
    FILE *info = fopen(path, "re");
    if (!info) return -1;
    while (id < 0 && fgets(line, sizeof line, info))
        if (sscanf(line, "mnt_id: %d", &id) != 1) id = -1;
    fclose(info);
    return id;
}

/* "ext4" of "36 35 98:0 / /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw" if that is mount
 * 36. */
static bool read_name(const char *line, int mount, char *name)
{
    const char *after = strstr(line, " - ");
    if (!after || atoi(line) != mount) return false;
    after += strlen(" - ");
    size_t length = strcspn(after, " \n");
    snprintf(name, ZERO_SCRATCH_FILE_SYSTEM, "%.*s", (int)length, after);
    return true;
}

/* ---- the directory ---- */

zero_status zero_scratch_place_read(const char *directory, zero_scratch_place *place)
{
    struct statfs fs;
    zero_scratch_place read = {.bytes_free = 0};
    zero_scratch_file open;
    int failed;
    ZERO_FILE_CALL(failed, directory, "used for a scratch file", statfs(directory, &fs));
    if (failed) return zero_cannot(ZERO_ERR_ENV, directory, "used for a scratch file");
    ZERO_TRY(zero_scratch_file_open(directory, ZERO_SCRATCH_ALIGN, &open));
    char *name = read.file_system;
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;
    int mount = mount_of(open.fd);
    FILE *mounts = mount < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
    *name = '\0';
    if (mounts) {
        while (!is_found && getline(&line, &room, mounts) > 0)
            is_found = read_name(line, mount, name);
        free(line);
        fclose(mounts);
    }
    read.bytes_free = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    read.file = open;
    read.file.is_open = false;
    read.file.fd = -1;
    zero_scratch_file_close(&open);
    *place = read;
    return ZERO_OK;
}
