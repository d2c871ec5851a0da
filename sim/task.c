/* SPDX-License-Identifier: Apache-2.0 */
/* Coroutines, and time that passes only when the simulator says so. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "base/assert.h"
#include "node.h"
#include "owner.h"
#include "task.h"
#include "verb.h"
#include "weather.h"
#include "world.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES ((size_t)1 << 20)

struct sim_task {
    ucontext_t context;
    void *stack;
    bool finished;
    void *fake_stack;
};

static struct sim_task tasks[SIM_NODES]; /* stacks are kept from run to run */
static ucontext_t scheduler;
static struct sim *world; /* nanosleep and makecontext carry no context */
static void (*work_of_all)(struct sim_node *node);

/* ---- what the core must not get: threads, real pauses, the real clock since boot ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    (void)thread, (void)attr, (void)start, (void)arg;
    return EAGAIN;
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    if (world != NULL) sim_sleep(world, wanted->tv_sec * 1000 + wanted->tv_nsec / 1000000 + 1);
    return 0;
}

int64_t __wrap_rp_time_boot_ms(void);
int64_t __wrap_rp_time_boot_ms(void)
{
    return world != NULL ? world->now_ms - SIM_START_MS : 0;
}

/* ---- clocks ---- */

int64_t sim_clock_read(const struct sim *s, const struct sim_clock *c)
{
    if (c->frozen_at_ms != 0) return c->frozen_at_ms;
    return s->now_ms + c->ahead_ms + (s->now_ms - SIM_START_MS) / 1000 * c->ppm / 1000;
}

int64_t sim_host_ms(const struct sim_node *n)
{
    return sim_clock_read(n->sim, &n->clock);
}

int64_t sim_db_ms(const struct sim *s)
{
    return sim_clock_read(s, &s->db_clock);
}

int64_t sim_store_ms(const struct sim *s)
{
    return sim_clock_read(s, &s->store_clock);
}

/* ---- switching ---- */

#if defined(__SANITIZE_ADDRESS__)
static const void *scheduler_bottom;
static size_t scheduler_size;

static void go_to_task(struct sim_task *t)
{
    void *fake = NULL;
    __sanitizer_start_switch_fiber(&fake, t->stack, STACK_BYTES);
    swapcontext(&scheduler, &t->context);
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

static void go_to_scheduler(struct sim_task *t)
{
    __sanitizer_start_switch_fiber(t->finished ? NULL : &t->fake_stack, scheduler_bottom, scheduler_size);
    swapcontext(&t->context, &scheduler);
    __sanitizer_finish_switch_fiber(t->fake_stack, &scheduler_bottom, &scheduler_size);
}

static void arrive(void)
{
    __sanitizer_finish_switch_fiber(NULL, &scheduler_bottom, &scheduler_size);
}
#else
static void go_to_task(struct sim_task *t)
{
    swapcontext(&scheduler, &t->context);
}

static void go_to_scheduler(struct sim_task *t)
{
    swapcontext(&t->context, &scheduler);
}

static void arrive(void)
{
}
#endif

static void task_main(void)
{
    struct sim_node *n = world->running;
    arrive();
    work_of_all(n);
    n->task->finished = true;
    go_to_scheduler(n->task);
    RP_ASSERT(false); /* nobody resumes what has finished */
}

void sim_tasks_start(struct sim *s, void (*work)(struct sim_node *node))
{
    world = s;
    work_of_all = work;
    for (int i = 0; i < SIM_NODES; i++) {
        struct sim_task *t = &tasks[i];
        if (t->stack == NULL)
            t->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        RP_ASSERT(t->stack != MAP_FAILED);
        getcontext(&t->context);
        t->context.uc_stack = (stack_t){ .ss_sp = t->stack, .ss_size = STACK_BYTES };
        t->context.uc_link = NULL;
        t->finished = false;
        makecontext(&t->context, task_main, 0);
        s->nodes[i].task = t;
        s->nodes[i].wakes_at_ms = s->now_ms;
    }
}

/* Somebody who can go on, or NULL; `next_ms`: when the first of those who sleep wakes. */
static struct sim_node *pick(struct sim *s, int64_t *next_ms)
{
    struct sim_node *ready[SIM_NODES];
    size_t n = 0;
    *next_ms = INT64_MAX;
    for (int i = 0; i < SIM_NODES; i++) {
        struct sim_node *node = &s->nodes[i];
        if (node->task->finished) continue;
        if (node->wakes_at_ms <= s->now_ms)
            ready[n++] = node;
        else if (node->wakes_at_ms < *next_ms)
            *next_ms = node->wakes_at_ms;
    }
    return n > 0 ? ready[sim_index(&s->order, n)] : NULL;
}

void sim_tasks_run(struct sim *s)
{
    int64_t next_ms = 0;
    for (;;) {
        struct sim_node *n = pick(s, &next_ms);
        if (n == NULL && next_ms == INT64_MAX) break;
        if (n == NULL) {
            s->now_ms = next_ms;
            continue;
        }
        sim_weather(s);
        s->running = n;
        go_to_task(n->task);
        s->running = NULL;
    }
    world = NULL;
}

void sim_sleep(struct sim *s, int64_t ms)
{
    struct sim_node *n = s->running;
    if (n == NULL) {
        s->now_ms += ms;
        return;
    }
    if (n->dead) return; /* it is only unwinding */
    n->wakes_at_ms = s->now_ms + ms;
    go_to_scheduler(n->task);
}

/* Within 5 minutes a wall clock counts as it is, and a thousandth of the time is followed. */
static int64_t tolerance_ms(const struct sim *s)
{
    return 2 * RP_CLOCKS_APART_MS + RP_SECOND_MS + (s->now_ms - SIM_START_MS) / 500;
}

int64_t sim_boot_time_least_ms(const struct sim *s)
{
    return s->now_ms + s->wrong_least_ms - tolerance_ms(s);
}

int64_t sim_boot_time_most_ms(const struct sim *s)
{
    return s->now_ms + s->wrong_most_ms + tolerance_ms(s);
}

void sim_note_wrong(struct sim_node *n)
{
    struct sim *s = n->sim;
    int64_t wrong_ms = sim_host_ms(n) - s->now_ms;
    if (wrong_ms < s->wrong_least_ms) s->wrong_least_ms = wrong_ms;
    if (wrong_ms > s->wrong_most_ms) s->wrong_most_ms = wrong_ms;
}

void sim_note_clocks(struct sim_node *n)
{
    struct sim *s = n->sim;
    int64_t early = sim_host_ms(n), db = sim_db_ms(s), store = INT64_MAX;
    if (s->kind != BUCKET_EXACT && sim_asks_store(n->command.verb)) store = sim_store_ms(s);
    if (db < early) early = db;
    if (store < early) early = store;
    if (early > n->early_ms) n->early_ms = early;
}

bool sim_step(struct sim_node *n, bool may_switch, const char *call)
{
    struct sim *s = n->sim;
    RP_ASSERT(s->running == n);
    if (n->dead) return false;
    s->steps++;
    s->now_ms += sim_between(&s->order, 0, 12);
    if (s->steps >= s->steps_max) s->ending = true;
    if (!n->owned) n->owned = sim_owns(s, n); /* also before others have their turn */
    if (may_switch && sim_chance(&s->order, s->switching)) sim_sleep(s, 0);
    sim_note_clocks(n);
    if (!n->anchored || n->command.verb == VERB_CLOCK) sim_note_wrong(n);
    if (!n->owned) n->owned = sim_owns(s, n);
    if (n->dead) return false; /* somebody found a violation meanwhile */
    if (!sim_strikes(&s->faults, n->command.verb == VERB_START ? FAULT_CRASH_STARTING : FAULT_CRASH)) return true;
    sim_say(s, "node %d crashes before %s", n->index, call);
    n->dead = true;
    return false;
}
