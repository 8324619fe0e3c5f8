#include "train/devices.h"

/* A rank tells the others this. */
typedef struct {
    char bus[32];
    uint64_t bytes_free, visible; /* visible: devices that the rank could have taken */
} card;

_Static_assert(sizeof(card) % sizeof(uint64_t) == 0, "cards travel as words");

static zero_status take_number(zero_device_place *p, const zero_device_choice *choice,
                               const zero_plugin *plugin, const zero_comm *comm, card *mine)
{
    int n = 0;
    ZERO_TRY(zero_device_count(plugin, choice, &n));
    if (choice->n > 0) n = choice->n;
    const int local = comm->layout.local_of[comm->rank],
              ranks = zero_layout_local_size(&comm->layout, comm->rank);
    const int at = (int)((int64_t)local * n / ranks);
    p->device = choice->n > 0 ? choice->numbers[at] : at;
    ZERO_TRY(plugin->describe(p->device, &p->about));
    mine->bytes_free = p->about.bytes_free;
    mine->visible = (uint64_t)n;
    memcpy(mine->bus, p->about.bus, sizeof mine->bus);
    return ZERO_OK;
}

/* ---- who shares what ---- */

static bool is_same(const zero_layout *l, const card *cards, int a, int b)
{
    return l->node_of[a] == l->node_of[b] &&
           memcmp(cards[a].bus, cards[b].bus, sizeof cards[a].bus) == 0;
}

/* True if no lower rank has the same device. */
static bool is_first(const zero_layout *l, const card *cards, int rank)
{
    for (int r = 0; r < rank; r++)
        if (is_same(l, cards, r, rank)) return false;
    return true;
}

/* Which devices are shared or idle. */
static void describe(zero_device_place *p, const zero_comm *comm, const card *cards)
{
    const zero_layout *l = &comm->layout;
    int used = 0, idle = 0;
    for (int r = 0; r < comm->size; r++) used += is_first(l, cards, r);
    for (int node = 0; node < l->n_nodes; node++) {
        int here = 0, most = 0;
        for (int r = 0; r < comm->size; r++) {
            if (l->node_of[r] != node) continue;
            here += is_first(l, cards, r);
            if ((int)cards[r].visible > most) most = (int)cards[r].visible;
        }
        idle += most > here ? most - here : 0;
    }
    size_t at = 0;
    if (used < comm->size)
        at = (size_t)zero_print(p->note, "%d ranks share %d device%s", comm->size, used,
                                used == 1 ? "" : "s");
    if (idle > 0)
        snprintf(p->note + at, sizeof p->note - at, "%s%d device%s: start more ranks%s",
                 at > 0 ? ", and there are idle: " : "idle: ", idle, idle == 1 ? "" : "s",
                 at > 0 ? ", or leave devices out of the list" : "");
}

zero_status zero_devices_place(const char *text, const char *where, zero_comm *comm,
                               zero_device_place *place)
{
    zero_device_place p = {.sharing = 1};
    zero_device_choice choice;
    const zero_plugin *plugin = NULL;
    card mine = {.visible = 0};
    zero_status st = zero_device_read(text, where, &choice);
    if (st == ZERO_OK) st = zero_device_find(text, &p.backend, &plugin);
    if (st == ZERO_OK && plugin) st = take_number(&p, &choice, plugin, comm, &mine);
    ZERO_TRY(zero_agree(comm, st));
    if (plugin) {
        /* Each rank fills in its own card and leaves the others zero. */
        const int64_t words = comm->size * (int64_t)(sizeof mine / sizeof(uint64_t));
        ZERO_FREED card *cards = NULL;
        ZERO_TRY(zero_agree(comm, zero_new(&cards, comm->size, "devices")));
        cards[comm->rank] = mine;
        ZERO_TRY(zero_comm_or(comm, words, (void *)cards));
        uint64_t least = UINT64_MAX;
        p.sharing = 0;
        for (int r = 0; r < comm->size; r++) {
            if (!is_same(&comm->layout, cards, r, comm->rank)) continue;
            p.sharing++;
            if (cards[r].bytes_free < least) least = cards[r].bytes_free;
        }
        const size_t part = (size_t)least / (size_t)p.sharing, own = p.about.bytes_own;
        p.room = part > own ? part - own : 1;
        if (zero_comm_is_root(comm)) describe(&p, comm, cards);
    }
    *place = p;
    return ZERO_OK;
}
