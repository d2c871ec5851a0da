/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "world.h"
#ifdef RP_MUTANTS
#include "mutants/mutant.h"
#endif

#define TRACE_MAX  ((size_t)64 << 20)
#define TRACE_TAIL 60
#define REPEATED   50 /* every so many seeds one is run twice */

/* Shared by the processes; each writes its own. */
struct worker {
    uint64_t seed, runs, steps;
    uint64_t met[FAULT_KINDS], seen[SIGHT_KINDS];
    bool failed; /* at least once; the first time: */
    uint64_t failed_seed;
    char violation[SIM_LINE];
};
struct crowd {
    struct worker workers[CROWD_JOBS_MAX];
    bool stop;
};

static struct crowd *crowd; /* for the signal */

static void on_signal(int number)
{
    (void)number;
    crowd->stop = true;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- one run, told ---- */

/* The last lines, and of those before them only what is about the subject of the violation. */
static void print_trace(const struct sim *s, const char *text, bool all)
{
    char subject[64] = "";
    const char *about = strchr(s->violation, ' ');
    if (about != NULL) (void)sscanf(strncmp(about, " file ", 6) == 0 ? about + 6 : about, "%63[^ ,]", subject);
    size_t lines = 0, line = 0;
    for (const char *p = text; *p != '\0'; p++)
        lines += *p == '\n';
    for (const char *p = text; *p != '\0'; line++) {
        const char *end = strchr(p, '\n');
        bool recent = line + TRACE_TAIL >= lines;
        bool ours = subject[0] != '\0' && memmem(p, (size_t)(end - p), subject, strlen(subject)) != NULL;
        if (all || recent || ours) printf("%.*s\n", (int)(end - p), p);
        p = end + 1;
    }
}

static int tell(struct sim *s, const struct crowd_plan *plan, uint64_t seed, uint64_t without, bool all)
{
    struct rp_buf trace = RP_BUF(TRACE_MAX);
    bool good = sim_run(s, seed, without, plan->steps, &trace);
    if (!good || all) print_trace(s, rp_buf_text(&trace), all);
    if (!good) printf("seed %" PRIu64 ", step %" PRIu64 ": %s\n", seed, s->violated_at, s->violation);
    rp_buf_done(&trace);
    return good ? 0 : 1;
}

int crowd_one(const struct crowd_plan *plan)
{
    struct sim *s = sim_open();
    int r = tell(s, plan, plan->first, plan->without, plan->trace);
    if (r == 0) printf("seed %" PRIu64 ": %" PRIu64 " steps, every promise was kept\n", plan->first, s->steps);
    sim_close(s);
    return r;
}

/* ---- a smaller run that breaks the same promise ---- */

static bool breaks_alike(struct sim *s, const struct crowd_plan *plan, uint64_t without, const char *name, size_t n)
{
    return !sim_run(s, plan->first, without, plan->steps, NULL) && strncmp(s->violation, name, n) == 0;
}

static void tell_smaller(const struct crowd_plan *plan, const char *violation)
{
    struct sim *s = sim_open();
    size_t n = strcspn(violation, ":") + 1;
    uint64_t without = plan->without;
    if (!breaks_alike(s, plan, without, violation, n)) {
        printf("seed %" PRIu64 " does not break it again: the simulator itself is at fault\n", plan->first);
        sim_close(s);
        return;
    }
    for (int i = 0; i < FAULT_KINDS; i++)
        if (breaks_alike(s, plan, without | UINT64_C(1) << i, violation, n)) without |= UINT64_C(1) << i;
    tell(s, plan, plan->first, without, false);
    printf("faults that it takes:");
    for (int i = 0; i < FAULT_KINDS; i++)
        if (s->faults.rate[i] > 0) printf(" %s", sim_fault_name((enum sim_fault)i));
    printf("\nsee all of it:  sim --seed %" PRIu64 " --trace --steps %" PRIu64 " --without ", plan->first, plan->steps);
    const char *comma = "";
    for (int i = 0; i < FAULT_KINDS; i++)
        if (without >> i & 1) printf("%s%s", comma, sim_fault_name((enum sim_fault)i)), comma = ",";
    printf("\n");
    sim_close(s);
}

/* ---- many ---- */

static void note_failure(struct worker *w, uint64_t seed, const char *violation)
{
    w->failed = true;
    w->failed_seed = seed;
    snprintf(w->violation, sizeof w->violation, "%s", violation);
}

/* The same seed is the same run, whatever ran before it in this process. */
static bool is_repeatable(struct sim *s, const struct crowd_plan *plan, uint64_t seed)
{
    uint64_t steps = s->steps, luck = s->luck.at;
    (void)sim_run(s, seed, plan->without, plan->steps, NULL);
    return s->steps == steps && s->luck.at == luck;
}

static void work(const struct crowd_plan *plan, int job)
{
    struct worker *w = &crowd->workers[job];
    struct sim *s = sim_open();
    for (uint64_t seed = plan->first + (uint64_t)job; seed <= plan->last && !crowd->stop;
         seed += (uint64_t)plan->jobs) {
        w->seed = seed;
        bool good = sim_run(s, seed, plan->without, plan->steps, NULL);
        w->runs++;
        w->steps += s->steps;
        for (int i = 0; i < FAULT_KINDS; i++)
            w->met[i] += s->faults.met[i];
        for (int i = 0; i < SIGHT_KINDS; i++)
            w->seen[i] += s->faults.seen[i];
        if (good && seed % REPEATED == 0 && !is_repeatable(s, plan, seed)) {
            good = false;
            snprintf(s->violation, sizeof s->violation, "REPEATABLE: the same seed was another run");
        }
        if (good) continue;
        if (plan->go_on) dprintf(STDOUT_FILENO, "seed %" PRIu64 ": %s\n", seed, s->violation);
        if (!w->failed) note_failure(w, seed, s->violation);
        crowd->stop = crowd->stop || !plan->go_on;
    }
    sim_close(s);
}

static void start(const struct crowd_plan *plan, pid_t pids[CROWD_JOBS_MAX])
{
    fflush(stdout);
    for (int i = 0; i < plan->jobs; i++) {
        pids[i] = fork();
        RP_ASSERT(pids[i] >= 0);
        if (pids[i] != 0) continue;
        work(plan, i);
        _exit(0);
    }
}

/* A process that ended otherwise than by its own will was in the middle of a seed: that one is the
 * failure. */
static void gather(const struct crowd_plan *plan, const pid_t pids[CROWD_JOBS_MAX])
{
    for (int i = 0; i < plan->jobs; i++) {
        int status = 0;
        while (waitpid(pids[i], &status, 0) < 0) {
        }
        struct worker *w = &crowd->workers[i];
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        char how[80];
        snprintf(how, sizeof how, "ASSERTED: the process ended with %s %d",
                 WIFSIGNALED(status) ? "signal" : "exit code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        note_failure(w, w->seed, how);
        crowd->stop = true;
    }
}

static const struct worker *first_failure(const struct crowd_plan *plan)
{
    const struct worker *first = NULL;
    for (int i = 0; i < plan->jobs; i++) {
        const struct worker *w = &crowd->workers[i];
        if (w->failed && (first == NULL || w->failed_seed < first->failed_seed)) first = w;
    }
    return first;
}

static void run_crowd(const struct crowd_plan *plan)
{
    pid_t pids[CROWD_JOBS_MAX];
    if (crowd == NULL) crowd = mmap(NULL, sizeof *crowd, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    RP_ASSERT(crowd != MAP_FAILED);
    memset(crowd, 0, sizeof *crowd);
    start(plan, pids);
    gather(plan, pids);
}

static uint64_t sum(const struct crowd_plan *plan, size_t offset)
{
    uint64_t n = 0;
    for (int i = 0; i < plan->jobs; i++)
        n += *(const uint64_t *)(const void *)((const char *)&crowd->workers[i] + offset);
    return n;
}

/* A kind that no run met was not tried. */
static int print_met(const struct crowd_plan *plan)
{
    int never = 0;
    printf("\n%-24s %12s    %-24s %12s\n", "fault", "met", "seen", "times");
    for (int i = 0; i < FAULT_KINDS || i < SIGHT_KINDS; i++) {
        if (i < FAULT_KINDS) {
            uint64_t n = sum(plan, offsetof(struct worker, met) + (size_t)i * sizeof(uint64_t));
            printf("%-24s %12" PRIu64, sim_fault_name((enum sim_fault)i), n);
            never += n == 0;
        } else {
            printf("%-24s %12s", "", "");
        }
        if (i < SIGHT_KINDS) {
            uint64_t n = sum(plan, offsetof(struct worker, seen) + (size_t)i * sizeof(uint64_t));
            printf("    %-24s %12" PRIu64, sim_sight_name((enum sim_sight)i), n);
            never += n == 0;
        }
        printf("\n");
    }
    return never;
}

int crowd_many(const struct crowd_plan *plan)
{
    double began_s = now_s();
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    run_crowd(plan);
    double took_s = now_s() - began_s;
    const struct worker *bad = first_failure(plan);
    uint64_t runs = sum(plan, offsetof(struct worker, runs)), steps = sum(plan, offsetof(struct worker, steps));
    int never = print_met(plan);
    printf("\n%" PRIu64 " runs from seed %" PRIu64
           " on, %.1f million steps, %.0f s: %.0f runs a second in %d processes, %.0f steps each\n",
           runs, plan->first, (double)steps / 1e6, took_s, (double)runs / took_s, plan->jobs,
           runs > 0 ? (double)steps / (double)runs : 0);
    if (bad != NULL) {
        struct crowd_plan one = *plan;
        one.first = bad->failed_seed;
        printf("\nseed %" PRIu64 ": %s\n", bad->failed_seed, bad->violation);
        fflush(stdout);
        if (strncmp(bad->violation, "ASSERTED", 8) != 0) tell_smaller(&one, bad->violation);
        return 1;
    }
    if (plan->all_met && never > 0)
        printf("%d kinds were never met: these runs prove nothing about them\n", never);
    else
        printf("every promise was kept\n");
    return plan->all_met && never > 0 ? 1 : 0;
}

/* ---- mutants ---- */

#ifdef RP_MUTANTS
/* In that many runs of the right rules everything that a patch names is seen: what a mistake hides,
 * it is caught by. */
#define SEEN_WITHIN 1000
#define OTHERS_MAX  20 /* seeds that break something else than was said */

/* Whether the violation has one of these names, also as what the catalog was found to break. */
static bool is_named(const char *violation, const char *names)
{
    static const char of_catalog[] = "CATALOG: ";
    if (strncmp(violation, of_catalog, sizeof of_catalog - 1) == 0) violation += sizeof of_catalog - 1;
    size_t n = strcspn(violation, ":");
    for (const char *at = names; *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (length == n && memcmp(at, violation, n) == 0) return true;
        at += length;
    }
    return false;
}

static bool hides_a_sight(const struct crowd_plan *plan, const char *names, char out[SIM_LINE])
{
    for (int i = 0; i < SIGHT_KINDS; i++) {
        if (sum(plan, offsetof(struct worker, seen) + (size_t)i * sizeof(uint64_t)) > 0) continue;
        snprintf(out, SIM_LINE, "UNSEEN-%s: it never happened", sim_sight_name((enum sim_sight)i));
        if (is_named(out, names)) return true;
    }
    return false;
}

/* The first violation of a promise that the mistake is said to break, and the seed of it; false:
 * there is none. `out` is then a violation of another one, or empty. */
static bool is_caught(const struct crowd_plan *plan, const char *breaks, uint64_t *seed, char out[SIM_LINE])
{
    struct crowd_plan some = *plan;
    int others = 0;
    out[0] = '\0';
    if (some.last > some.first + SEEN_WITHIN - 1) some.last = some.first + SEEN_WITHIN - 1;
    for (;;) {
        run_crowd(&some);
        const struct worker *bad = first_failure(&some);
        bool hides = bad == NULL && some.last - some.first + 1 >= SEEN_WITHIN && hides_a_sight(&some, breaks, out);
        *seed = bad != NULL ? bad->failed_seed : some.last;
        if (bad != NULL) memcpy(out, bad->violation, SIM_LINE);
        if (hides || (bad != NULL && is_named(out, breaks))) return true;
        if (*seed == plan->last || (bad != NULL && ++others == OTHERS_MAX)) return false;
        some.first = *seed + 1;
        if (bad == NULL) some.last = plan->last;
    }
}

/* The seed that caught it when the list was made, 0 if there is none: what is printed here is such
 * a list. */
static uint64_t known_seed(const char *list, const char *name)
{
    FILE *file = list != NULL ? fopen(list, "r") : NULL;
    char line[512], word[64];
    uint64_t seed = 0, found = 0;
    while (file != NULL && found == 0 && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%63s %" SCNu64, word, &seed) == 2 && strcmp(word, name) == 0) found = seed;
    if (file != NULL) fclose(file);
    return found;
}

/* The rules change, and with them what a seed does: where the known one says nothing, all are
 * tried. */
static bool is_caught_soon(const struct crowd_plan *plan, const struct rp_mutant_row *row, uint64_t *seed,
                           char out[SIM_LINE])
{
    struct crowd_plan one = *plan;
    one.jobs = 1;
    one.first = one.last = known_seed(plan->known, row->name);
    if (one.first != 0 && is_caught(&one, row->breaks, seed, out)) return true;
    return is_caught(plan, row->breaks, seed, out);
}

int crowd_mutants(const struct crowd_plan *plan)
{
    int missed = 0, n = 0;
    printf("%-32s %10s  %s\n", "mutant", "seed", "caught by");
    for (int i = 1; i < RP_MUTANTS_N; i++) {
        struct crowd_plan each = *plan;
        if (plan->mutant != NULL && strcmp(plan->mutant, rp_mutant_rows[i].name) != 0) continue;
        if (each.last < each.first) each.last = 10000;
        uint64_t seed;
        char why[SIM_LINE];
        rp_mutant = (enum rp_mutant)i;
        bool caught = is_caught_soon(&each, &rp_mutant_rows[i], &seed, why);
        n++;
        missed += !caught;
        if (caught)
            printf("%-32s %10" PRIu64 "  %.140s\n", rp_mutant_rows[i].name, seed, why);
        else
            printf("%-32s %10" PRIu64 "  NOT CAUGHT as %s: %s%s%.100s\n", rp_mutant_rows[i].name, seed,
                   rp_mutant_rows[i].breaks, rp_mutant_rows[i].what, why[0] != '\0' ? "; but " : "", why);
        fflush(stdout);
    }
    printf("%d mutants, %d not caught\n", n, missed);
    return n == 0 || missed > 0 ? 1 : 0;
}
#else
int crowd_mutants(const struct crowd_plan *plan)
{
    (void)plan;
    fprintf(stderr, "sim: the rules are right here; sim_mutants has the mistakes\n");
    return 2;
}
#endif
