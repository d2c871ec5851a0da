/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <string.h>

static const struct {
    const char *name;
    int rate;
} kinds[] = {
#define X(kind, name, rate) { name, rate },
    SIM_FAULTS(X)
#undef X
};

const char *sim_fault_name(enum sim_fault kind)
{
    return kinds[kind].name;
}

const char *sim_sight_name(enum sim_sight kind)
{
    static const char *const names[] = {
#define X(kind, name) name,
        SIM_SIGHTS(X)
#undef X
    };
    return names[kind];
}

enum sim_fault sim_fault_by_name(const char *name)
{
    int i = 0;
    while (i < FAULT_KINDS && strcmp(kinds[i].name, name) != 0)
        i++;
    return (enum sim_fault)i;
}

void sim_faults_choose(struct sim_faults *f, uint64_t seed, uint64_t without)
{
    struct sim_random r = sim_stream(seed, 100);
    /* a quarter of the runs is calm but for one or two kinds: there a single cause has time to
     * show */
    int chance = sim_chance(&r, 2500) ? 600 : (int)sim_between(&r, 2000, 9000);
    memset(f, 0, sizeof *f);
    for (int i = 0; i < FAULT_KINDS; i++) {
        bool chosen = sim_chance(&r, chance);
        int rate = (int)sim_between(&r, 1, kinds[i].rate);
        f->stream[i] = sim_stream(seed, 200 + (uint64_t)i);
        if (chosen && (without >> i & 1) == 0) f->rate[i] = rate;
    }
    f->on = true;
}

bool sim_strikes(struct sim_faults *f, enum sim_fault kind)
{
    if (!f->on || f->rate[kind] == 0 || !sim_chance(&f->stream[kind], f->rate[kind])) return false;
    f->met[kind]++;
    return true;
}
