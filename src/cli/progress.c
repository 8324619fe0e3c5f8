#include "cli/progress.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/legible.h"
#include "cli/requests.h"
#include "comm/launch.h"

#define PERIOD 0.25 /* seconds between two drawings */
#define WIDTH  80   /* of a window that does not tell */

/* ---- the terminal ---- */

static bool is_set(const char *variable)
{
    const char *text = getenv(variable);
    return text && *text;
}

static int width_of(int fd)
{
    struct winsize size;
    return fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Columns of the window, now. Under mpirun stderr is a pipe, and the window is that of the
 * terminal from which it was started, if that is on this node. */
static int read_width(void)
{
    int width = width_of(STDERR_FILENO);
    if (width > 0) return width;
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    width = width_of(fd);
    if (fd >= 0) close(fd);
    return width > 0 ? width : WIDTH;
}

/* A shell's job in the background leaves the terminal to the others. */
static bool is_in_background(void)
{
    pid_t group = tcgetpgrp(STDERR_FILENO);
    return group > 0 && group != getpgrp();
}

/* Nothing is owed to a terminal that is gone. */
static void put(const char *text, size_t length)
{
    if (write(STDERR_FILENO, text, length) < 0) return;
}

static void draw(zero_progress_view *p)
{
    char text[ZERO_LIVE_TEXT], all[ZERO_LIVE_TEXT + 8];
    p->drawn = zero_clock_seconds();
    if (is_in_background()) return;
    zero_live_text(&p->line, read_width(), text);
    put(all, (size_t)zero_print(all, "\r%s\033[K\r", text));
}

/* ---- the live line ---- */

void zero_progress_view_open(zero_progress_view *p, const zero_config *config)
{
    bool is_forced = zero_same_text(config->progress, "live");
    bool is_auto = zero_same_text(config->progress, "auto") && !config->quiet;
    /* Standard output is not asked: Open MPI gives each rank a terminal there, also into a
     * pipe. */
    bool has_terminal = isatty(STDERR_FILENO) && zero_launch_has_own_terminal() &&
                        is_set("TERM") && !zero_same_text(getenv("TERM"), "dumb") &&
                        !is_set("CI");
    *p = (zero_progress_view){.config = config,
                              .may_be_live = is_forced || (is_auto && has_terminal)};
}

/* A launcher brings stdout and stderr in any order: there the line would meet the head of
 * the run. */
void zero_progress_view_begin(zero_progress_view *p, int64_t start, int64_t saved)
{
    p->line =
        (zero_live){.step = start, .steps = p->config->steps, .left = NAN, .saved = saved};
    p->drawn = zero_clock_seconds();
    p->is_live = p->may_be_live;
    if (!p->is_live) return;
    zero_requests_keep_line_clean();
    if (isatty(STDERR_FILENO)) draw(p);
}

static double left(const zero_progress_view *p, int64_t step)
{
    const zero_config *c = p->config;
    bool saves = c->checkpoint != NULL;
    zero_live_rest rest = {
        .steps = c->steps - step,
        .evaluations = zero_live_due(step, c->steps, c->eval_every, c->eval_every > 0),
        .saves = zero_live_due(step, c->steps, saves ? c->save_every : 0, saves),
        .save_seconds = saves ? 60.0 * c->save_minutes : 0.0};
    return zero_live_left(&p->times, &rest);
}

void zero_progress_view_step(zero_progress_view *p, const zero_metrics_step *step,
                             double computed, double eval_seconds)
{
    if (p->is_live) {
        zero_live *l = &p->line;
        zero_live_add_step(&p->times, step->seconds);
        l->step = step->step;
        l->has_step = true;
        l->loss = step->loss;
        l->seconds = step->seconds;
        l->tokens_per_second = (double)step->tokens / step->seconds;
        l->compute = computed - p->computed;
        l->exposed = step->exposed;
        p->computed = computed;
        if (step->has_val_loss) {
            l->has_val_loss = true;
            l->val_loss = step->val_loss;
            p->times.evaluations += eval_seconds;
            p->times.n_evaluations++;
        }
    }
    const zero_config *c = p->config;
    bool has_line =
        step->step == 1 || step->skipped ||
        (c->log_every > 0 && (step->step % c->log_every == 0 || step->step == c->steps));
    if (c->quiet || zero_same_text(c->progress, "none")) return;
    if (!has_line && !step->has_val_loss) return;
    zero_progress_view_erase(p);
    char head[64];
    zero_print(head, "step %6" PRId64 "/%" PRId64, step->step, c->steps);
    if (has_line)
        printf("%s | loss %7.4f | norm %6.3f | lr %.2e | %8.1f ms | %8.0f tok/s\n", head,
               step->loss, step->grad_norm, step->lr, 1e3 * step->seconds,
               (double)step->tokens / step->seconds);
    if (step->skipped)
        printf("%s | skipped: a gradient overflowed at loss scale %g\n", head,
               step->loss_scale);
    if (step->has_val_loss) printf("%s | validation loss %.4f\n", head, step->val_loss);
    fflush(stdout);
}

void zero_progress_view_saved(zero_progress_view *p, int64_t saved, double save_seconds)
{
    if (!p->is_live) return;
    if (saved != p->line.saved) {
        p->times.saves += save_seconds;
        p->times.n_saves++;
        p->line.saved = saved;
    }
    if (zero_clock_seconds() - p->drawn < PERIOD) return;
    p->line.left = left(p, p->line.step);
    draw(p);
}

void zero_progress_view_erase(const zero_progress_view *p)
{
    if (p->is_live && !is_in_background())
        put(ZERO_LINE_ERASED, sizeof ZERO_LINE_ERASED - 1);
}

void zero_progress_view_end(zero_progress_view *p)
{
    zero_progress_view_erase(p);
    p->is_live = false;
}
