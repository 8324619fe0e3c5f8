#include "pages/page.h"

#include "base/fail.h"
#include "pages/escape.h"
#include "pages/page_parts.h"
#include "pages/page_style.h"

static void write_style(FILE *out)
{
    fputs("<style>\n", out);
    for (int k = 0; zero_page_style[k]; k++) fprintf(out, "%s\n", zero_page_style[k]);
    fputs("</style>\n", out);
}

static const char *path_of(const zero_page *page)
{
    if (page->n_records > 0) return zero_page_name(&page->records[0]);
    if (page->n_studies > 0) return page->studies[0].path;
    return page->trace ? page->trace->path : "";
}

static void write_title(const zero_page *page, FILE *out)
{
    int more = page->n_records + page->n_studies - 1;
    zero_escape(path_of(page), out);
    if (more > 0) fprintf(out, " and %d more", more);
}

static void begin(const zero_page *page, FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\"/>\n<title>",
          out);
    write_title(page, out);
    fputs(" - zero report</title>\n", out);
    write_style(out);
    fputs("</head>\n<body>\n<main>\n<h1>", out);
    write_title(page, out);
    fputs("</h1>\n", out);
}

static zero_status write_details(const zero_page *page, int run, FILE *out)
{
    const zero_record *r = &page->records[run];
    zero_page_numbers(&page->figures[run], out);
    if (run == 0) ZERO_TRY(zero_page_timeline(page->trace, out));
    zero_page_memory(r, out);
    zero_page_traffic(r, out);
    zero_page_profile(r, out);
    return ZERO_OK;
}

static zero_status write_one(const zero_page *page, FILE *out)
{
    zero_page_head(&page->records[0], out);
    zero_page_figures(&page->figures[0], out);
    zero_page_facts(&page->records[0], out);
    ZERO_TRY(zero_page_curves(page, out));
    return write_details(page, 0, out);
}

/* Several runs: first in what they differ, then each by itself. */
static zero_status write_several(const zero_page *page, FILE *out)
{
    ZERO_TRY(zero_page_curves(page, out));
    ZERO_TRY(zero_page_compare(page, out));
    for (int run = 0; run < page->n_records; run++) {
        fputs("<div class=\"run\"><h1>", out);
        zero_escape(page->records[run].path, out);
        fputs("</h1>\n", out);
        zero_page_head(&page->records[run], out);
        zero_page_figures(&page->figures[run], out);
        zero_page_facts(&page->records[run], out);
        ZERO_TRY(write_details(page, run, out));
        fputs("</div>\n", out);
    }
    return ZERO_OK;
}

zero_status zero_page_print(const zero_page *page, FILE *out)
{
    begin(page, out);
    if (page->n_records == 1) ZERO_TRY(write_one(page, out));
    if (page->n_records > 1) ZERO_TRY(write_several(page, out));
    if (page->n_records == 0 && page->trace) ZERO_TRY(zero_page_timeline(page->trace, out));
    for (int k = 0; k < page->n_studies; k++) zero_page_study(&page->studies[k], out);
    fputs("</main>\n<footer>Made by zero report. Every number is from the files named here."
          "</footer>\n</body>\n</html>\n",
          out);
    return ZERO_OK;
}
