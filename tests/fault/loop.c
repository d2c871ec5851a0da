/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "fault/loop.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define TRIES      4
#define SHOW_AT    5 /* failures of one program that are shown in full */
#define WORLDS_MAX 4000
#define KINDS_MAX  400

#ifdef __SANITIZE_ADDRESS__
#define SLICE 13 /* P3 */
#else
#define SLICE 1
#endif

#define DB     (1U << POINT_DB)
#define STORE  (1U << POINT_STORE)
#define DB_END (1U << POINT_DB_DONE)
#define INSIDE (1U << POINT_INSIDE)
#define COMMIT (1U << POINT_COMMITTED)
#define END    (1U << POINT_STORE_DONE)

/* clang-format off */
static const struct variant {
    const char *words;
    enum trial_fault fault;
    int code;
    unsigned kinds; /* points at which it strikes */
} variants[] = {
    { "unavailable",            FAULT_BEFORE,     RP_EUNAVAILABLE, DB | INSIDE | STORE },
    { "busy",                   FAULT_BEFORE,     RP_EBUSY,        DB | INSIDE | STORE },
    { "full",                   FAULT_BEFORE,     RP_EFULL,        DB | INSIDE | STORE },
    { "denied",                 FAULT_BEFORE,     RP_EDENIED,      DB | INSIDE | STORE },
    { "an outage",              FAULT_OUTAGE,     RP_EUNAVAILABLE, DB | INSIDE | STORE },
    { "done, then lost",        FAULT_AFTER,      RP_EUNAVAILABLE, DB_END | COMMIT | END },
    { "committed, known late",  FAULT_RESOLVE,    RP_EUNKNOWN,     COMMIT },
    { "committed, never known", FAULT_UNRESOLVED, RP_EUNKNOWN,     COMMIT },
    /* to die after a call is to die before the next: nothing outside the process happens between
     * them */
    { "death",                  FAULT_DEATH,      0,               DB | STORE },
};
/* clang-format on */

struct loop {
    const struct program *program;
    struct trial *t;
    char (*healed)[RP_DIGEST_HEX]; /* fingerprints of the worlds that were healed and judged */
    int n_healed, runs, failures;
};

static struct {
    int points, faults, runs, healed;
} total;

/* A call of a port together with a fault that struck it. */
struct struck {
    char call[24];
    const struct variant *by;
};

static void failed(struct loop *l, const struct variant *v, int at, const char *when, const char *lines)
{
    const char *call = at > 0 ? l->t->shared->point[at].call : "none";
    if (l->failures++ < SHOW_AT)
        print_error("%s, point %d (%s, %s), %s:\n%s", l->program->name, at, call, v != NULL ? v->words : "no fault",
                    when, lines);
}

/* The user's next tries; a lock of a run that died is waited for. */
static int again(const struct program *p, struct trial *t)
{
    int r = program_run(p, t);
    for (int try = 1; r < 0 && try < TRIES; try++) {
        trial_advance(t, 31 * RP_MINUTE_MS);
        trial_reopen(t);
        r = program_run(p, t);
    }
    return r;
}

/* Many faults leave the same world behind: each is healed and judged once. */
static bool is_known(struct loop *l)
{
    char(*now)[RP_DIGEST_HEX] = &l->healed[l->n_healed];
    trial_fingerprint(l->t, *now);
    for (int i = 0; i < l->n_healed; i++)
        if (strcmp(l->healed[i], *now) == 0) return true;
    l->n_healed++;
    assert_true(l->n_healed < WORLDS_MAX);
    return false;
}

static void check_after(struct loop *l, const struct variant *v, int at)
{
    l->runs++;
    if (is_known(l)) return;
    trial_reopen(l->t);
    RP_CLEANUP(rp_buf_done) struct rp_buf lines = RP_BUF(1 << 16);
    char words[80];
    if (trial_check(l->t, INV_ALWAYS, &lines) > 0) failed(l, v, at, "right after", rp_buf_text(&lines));
    rp_buf_clear(&lines);
    int r = again(l->program, l->t);
    snprintf(words, sizeof words, "step %d does not come to an end: %s\n", l->t->shared->step, rp_error_slug(r));
    if (r < 0) failed(l, v, at, "given again", words);
    if (trial_heal(l->t) < 0) failed(l, v, at, "healing", "the sweeps do not come to an end\n");
    if (trial_check(l->t, INV_HEALED, &lines) > 0) failed(l, v, at, "healed", rp_buf_text(&lines));
}

/* The program in a process of its own, which ends where the plan says. */
static void run_and_die(struct loop *l, const struct trial_plan *plan)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        trial_open(l->t);
        trial_arm(l->t, plan);
        (void)program_run(l->program, l->t);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    trial_open_ours(l->t);
}

static void run_with(struct loop *l, const struct variant *v, int at)
{
    struct trial_plan plan = { .fault = v->fault, .code = v->code, .at = at };
    program_begin(l->program, l->t);
    if (v->fault == FAULT_DEATH)
        run_and_die(l, &plan);
    else {
        trial_open(l->t);
        trial_arm(l->t, &plan);
        (void)program_run(l->program, l->t);
        trial_disarm(l->t);
    }
    if (!l->t->shared->fired) failed(l, v, at, "the point", "was never reached\n");
    check_after(l, v, at);
}

/* Without a fault: how many points there are, and that all is well. */
static int count_points(struct loop *l, struct trial_point points[TRIAL_POINTS_MAX])
{
    struct trial_plan nothing = { .fault = FAULT_NONE };
    program_begin(l->program, l->t);
    trial_open(l->t);
    trial_arm(l->t, &nothing);
    assert_int_equal(program_run(l->program, l->t), 0);
    int n = l->t->shared->points;
    memcpy(points, l->t->shared->point, sizeof l->t->shared->point);
    trial_disarm(l->t);
    check_after(l, NULL, 0);
    return n;
}

/* One past the last point nothing strikes: the loop has seen them all. */
static void check_complete(struct loop *l, int n)
{
    struct trial_plan past = { .fault = FAULT_DEATH, .at = n + 1 };
    program_begin(l->program, l->t);
    run_and_die(l, &past);
    if (l->t->shared->fired || l->t->shared->points != n)
        failed(l, NULL, 0, "past the last point", "there is another\n");
}

/* The store in memory has no process to die with, and nothing of it shows in a call of the
 * database. */
static bool applies(const struct variant *v, enum trial_kind kind, bool memory)
{
    unsigned kinds = memory ? v->kinds & (STORE | END) : v->kinds;
    return (kinds >> kind & 1) != 0 && !(memory && v->fault == FAULT_DEATH);
}

/* P3 */
static bool is_in_slice(const struct variant *v, const char *call)
{
    static struct struck seen[KINDS_MAX];
    static int n;
    if (total.faults++ % SLICE == 0) return true;
    for (int i = 0; i < n; i++)
        if (seen[i].by == v && strcmp(seen[i].call, call) == 0) return false;
    assert_true(n < KINDS_MAX);
    seen[n].by = v;
    snprintf(seen[n++].call, sizeof seen[0].call, "%s", call);
    return true;
}

/* True: the store hides in place, which the one in memory does not. */
static bool every_point_with(const struct program *p, bool memory)
{
    struct trial_point points[TRIAL_POINTS_MAX];
    struct loop l = { .program = p, .t = trial_new(memory), .healed = calloc(WORLDS_MAX, RP_DIGEST_HEX) };
    assert_non_null(l.healed);
    int n = count_points(&l, points);
    for (int at = 1; at <= n; at++)
        for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++)
            if (applies(&variants[v], points[at].kind, memory) && is_in_slice(&variants[v], points[at].call))
                run_with(&l, &variants[v], at);
    if (!memory) check_complete(&l, n);
    print_message("%s store: %d points, %d runs, %d worlds\n", memory ? "memory" : "directory", n, l.runs, l.n_healed);
    total.points += memory ? 0 : n;
    total.runs += l.runs;
    total.healed += l.n_healed;
    bool hides = l.t->hides;
    free(l.healed);
    trial_free(l.t);
    if (l.failures > 0) fail_msg("%d failures", l.failures);
    return hides;
}

static void every_point(void **state)
{
    if (!every_point_with(*state, false)) (void)every_point_with(*state, true);
}

int loop_main(const char *title, const struct program *programs, size_t n, const char *filter)
{
    struct CMUnitTest *tests = calloc(n, sizeof *tests);
    if (tests == NULL) return 1;
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){ .name = programs[i].name,
                                        .test_func = every_point,
                                        .initial_state = (void *)(uintptr_t)&programs[i] };
    if (filter != NULL) cmocka_set_test_filter(filter);
    int r = _cmocka_run_group_tests(title, tests, n, NULL, NULL);
    print_message("%d points, %d faults, one in %d: %d runs, %d worlds healed\n", total.points, total.faults, SLICE,
                  total.runs, total.healed);
    free(tests);
    return r;
}
