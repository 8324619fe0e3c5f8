#include "cli/info_disk.h"

#include <stdio.h>

#include <jansson.h>

#include "base/fail.h"
#include "comm/launch.h"
#include "io/disk_trial.h"
#include "io/scratch_place.h"
#include "report/json_put.h"
#include "report/text.h"

#define RATE 16 /* bytes of a rate as text */

typedef struct {
    const char *directory;
    zero_scratch_place place;
    bool has_rates;
    zero_disk_rates rates;
} disk;

/* ---- as an option of zero plan ---- */

/* "1.17G", as options read it: decimal, three digits. */
static void write_rate(double rate, char text[RATE])
{
    static const struct {
        double unit;
        const char *suffix;
    } units[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "K"}, {1.0, ""}};
    size_t u = 0;
    while (u < 3 && rate < 0.9995 * units[u].unit) u++;
    double number = rate / units[u].unit;
    int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
    snprintf(text, RATE, "%.*f%s", decimals, number, units[u].suffix);
}

static void write_option(const zero_disk_rates *rates, char text[2 * RATE + 1])
{
    char read[RATE], write[RATE];
    write_rate(rates->read, read);
    write_rate(rates->write, write);
    snprintf(text, 2 * RATE + 1, "%s,%s", read, write);
}

/* ---- as values ---- */

static json_t *alignment(unsigned bytes)
{
    return bytes == 0 ? json_null() : json_integer(bytes);
}

static json_t *rates_of(const disk *d)
{
    char option[2 * RATE + 1];
    if (!d->has_rates) return json_null();
    write_option(&d->rates, option);
    return json_pack("{s:I, s:i, s:f, s:f, s:f, s:s}", "file_bytes",
                     (json_int_t)d->rates.bytes, "threads", ZERO_DISK_TRIAL_THREADS,
                     "read_bytes_per_second", d->rates.read, "write_bytes_per_second",
                     d->rates.write, "mixed_bytes_per_second", d->rates.mixed, "disk",
                     option);
}

static zero_status print_json(const disk *d)
{
    const zero_scratch_place *p = &d->place;
    json_t *info = json_pack(
        "{s:s, s:o, s:I, s:b, s:o, s:o, s:b, s:o}", "directory", d->directory,
        "file_system", *p->file_system ? json_string(p->file_system) : json_null(),
        "free_bytes", (json_int_t)p->bytes_free, "direct", (int)p->file.is_direct,
        "memory_align_bytes", alignment(p->file.memory_align), "offset_align_bytes",
        alignment(p->file.offset_align), "nameless", (int)p->file.had_no_name, "trial",
        rates_of(d));
    if (!info)
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload %s: expected a name in UTF-8 for --json", d->directory);
    return zero_json_print(info, JSON_INDENT(2) | JSON_REAL_PRECISION(6), stdout);
}

/* ---- as a table ---- */

static void print_alignment(const zero_scratch_file *file)
{
    printf("%-18s ", "alignment");
    if (file->memory_align == 0)
        printf("the kernel does not say; %d bytes are used\n", ZERO_SCRATCH_ALIGN);
    else
        printf("memory %u, offsets %u bytes; %d are used\n", file->memory_align,
               file->offset_align, ZERO_SCRATCH_ALIGN);
}

static void print_place(const disk *d)
{
    const zero_scratch_place *p = &d->place;
    printf("%-18s %s\n", "directory", d->directory);
    printf("%-18s %s\n", "file system", *p->file_system ? p->file_system : "-");
    printf("%-18s %s\n", "free", ZERO_BYTES(p->bytes_free));
    printf("%-18s %s\n", "transfers",
           p->file.is_direct ? "O_DIRECT, around the page cache"
                             : "through the page cache: no O_DIRECT here");
    print_alignment(&p->file);
    printf("%-18s %s\n", "file",
           p->file.had_no_name ? "never has a name (O_TMPFILE)"
                               : "has a name for a moment: no O_TMPFILE here");
}

static void print_rates(const disk *d)
{
    char option[2 * RATE + 1];
    write_option(&d->rates, option);
    printf("%-18s %.0f MB/s\n", "read", 1e-6 * d->rates.read);
    printf("%-18s %.0f MB/s\n", "write", 1e-6 * d->rates.write);
    printf("%-18s %.0f MB/s, half reads and half writes\n", "mixed", 1e-6 * d->rates.mixed);
    printf("%-18s --disk %s\n", "for zero plan", option);
}

/* ---- the command ---- */

zero_status zero_info_disk(const char *directory, bool with_trial, bool json)
{
    disk d = {.directory = directory};
    ZERO_TRY(zero_scratch_place_read(directory, &d.place));
    d.has_rates = with_trial && zero_launch_rank_hint() <= 0;
    if (d.has_rates) ZERO_TRY(zero_disk_trial(directory, &d.rates));
    if (json) return print_json(&d);
    print_place(&d);
    if (d.has_rates) print_rates(&d);
    return ZERO_OK;
}
