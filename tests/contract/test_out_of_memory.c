/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation fails once. The programs of tests/fault run again and again; each time another
 * allocation that our own code asks for (malloc and its kin, an arena, jansson) is refused, once.
 * The verb must say so, or do without; then the invariants hold, the user gives the command again,
 * time passes, and they hold still.
 *
 * M1  Allocations are told apart by the calls that lead to them. Of those that are alike the first
 *     and the last of a program are refused, OFTEN times over all programs.
 * M2  What is in the audit log is whole: a change whose details lost a member is not made.
 * M3  The store's own memory is not refused, nor is what the trial looks with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "fault/programs.h"
#include "lib/starve.h"
#include "lib/stores.h"
#include "store/open.h"

#define WORLDS_MAX  500
#define TRIES       4
#define OFTEN       2 /* times that memory is refused at one site, over all programs */
#define REFUSED_MAX 50000

/* ---- allocations ---- */

static uint64_t *sites;
static struct {
    uint64_t *at; /* where memory was refused, once for each time */
    size_t n;
} refused;

static int refused_before(uint64_t site)
{
    int n = 0;
    for (size_t i = 0; i < refused.n; i++)
        n += refused.at[i] == site;
    return n;
}

/* What lies between the first and the last of its kind differs from them in nothing but the
 * count. */
static bool is_worth_it(int at, int n)
{
    bool first = true, last = true;
    for (int i = 1; i <= n; i++) {
        if (i < at && sites[i] == sites[at]) first = false;
        if (i > at && sites[i] == sites[at]) last = false;
    }
    if ((!first && !last) || refused_before(sites[at]) >= OFTEN || refused.n == REFUSED_MAX) return false;
    refused.at[refused.n++] = sites[at];
    return true;
}

/* ---- the store: its own memory is not what is tried here ---- */

struct starving {
    const struct program *program;
    struct trial *t;
    struct rp_backend *backend;
    char (*healed)[RP_DIGEST_HEX];
    int n_healed, runs, said[2]; /* done without it; that it could not */
};

static int enter_store(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    (void)ctx, (void)call, (void)key, (void)err;
    starve_pause();
    return 0;
}

static int leave_store(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    (void)ctx, (void)call, (void)key, (void)err;
    starve_resume();
    return 0;
}

static void open_world(struct starving *s)
{
    struct rp_error err = { 0 };
    struct rp_backend_fault fault = { .before = enter_store, .after = leave_store };
    trial_open(s->t);
    assert_int_equal(rp_backend_fault_wrap(s->t->faulty, &fault, &s->backend, &err), 0);
    s->t->store.backend = s->backend;
}

static void close_world(struct starving *s)
{
    rp_backend_close(s->backend);
    s->backend = NULL;
    trial_reopen(s->t);
}

/* ---- the loop ---- */

static void judge(struct starving *s, enum inv_when when, int at)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf lines = RP_BUF(1 << 16);
    if (trial_check(s->t, when, &lines) == 0) return;
    fail_msg("%s, allocation %d, %s:\n%s", s->program->name, at, when == INV_HEALED ? "healed" : "right after",
             rp_buf_text(&lines));
}

static int keep_number(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx = row[0].i;
    return 0;
}

static void expect_whole_details(struct starving *s, int at)
{
    static const char sql[] =
        "SELECT count(*) FROM audit WHERE details IS NULL OR NOT json_valid(details) OR details = '{}'"
        " OR (event IN ('mark.created', 'mark.purged', 'mark.reprieved', 'mark.dead', 'mark.lost', 'mark.retried')"
        " AND (details ->> 'mark' IS NULL OR details ->> 'subject' NOT LIKE '%:%' OR details ->> 'reason' IS NULL"
        " OR details ->> 'marked_at' IS NULL OR details ->> 'due_at' IS NULL OR details ->> 'size' IS NULL))";
    const struct rp_sql halves = { .name = "halves", .text = sql, .params = "", .columns = "i" };
    struct rp_error err = { 0 };
    int64_t n = -1;
    int r = rp_db_query(s->t->world.catalog->db, &halves, NULL, keep_number, &n, &err);
    if (r < 0 || n != 0)
        fail_msg("%s, allocation %d: %lld rows of the audit log are not whole %s", s->program->name, at, (long long)n,
                 err.text);
}

static bool is_known(struct starving *s)
{
    char(*now)[RP_DIGEST_HEX] = &s->healed[s->n_healed];
    trial_fingerprint(s->t, *now);
    for (int i = 0; i < s->n_healed; i++)
        if (strcmp(s->healed[i], *now) == 0) return true;
    s->n_healed++;
    assert_true(s->n_healed < WORLDS_MAX);
    return false;
}

static void heal(struct starving *s, int at)
{
    judge(s, INV_ALWAYS, at);
    int r = program_run(s->program, s->t);
    for (int try = 1; r < 0 && try < TRIES; try++) {
        trial_advance(s->t, 31 * RP_MINUTE_MS);
        trial_reopen(s->t);
        r = program_run(s->program, s->t);
    }
    if (r < 0) fail_msg("%s, allocation %d: given again, it fails: %s", s->program->name, at, rp_error_slug(r));
    if (trial_heal(s->t) < 0) fail_msg("%s, allocation %d: does not heal", s->program->name, at);
    judge(s, INV_HEALED, at);
}

/* A guard or a batch that could not be asked is told of the run or the mark, not of the memory;
 * what does not fit into an arena is too big. */
static bool says_so(int code)
{
    return code == RP_ENOMEM || code == RP_ETOOBIG || code == RP_EPARTLY || code == RP_EUNAVAILABLE;
}

static int run_refusing(struct starving *s, int at)
{
    program_begin(s->program, s->t);
    open_world(s);
    starve_arm(at);
    int r = program_run(s->program, s->t);
    int n = starve_disarm();
    if (r < 0 && !says_so(r)) fail_msg("%s, allocation %d: it says %s", s->program->name, at, rp_error_slug(r));
    s->said[r < 0]++;
    s->runs++;
    close_world(s);
    expect_whole_details(s, at);
    if (!is_known(s)) heal(s, at);
    return n;
}

/* The sanitizers see every fifth one; the shipped build refuses them all. */
#ifdef __SANITIZE_ADDRESS__
#define SLICE 5
#else
#define SLICE 1
#endif

static void every_allocation(void **state)
{
    struct starving s = { .program = *state, .t = trial_new(false), .healed = calloc(WORLDS_MAX, RP_DIGEST_HEX) };
    assert_non_null(s.healed);
    starve_note(sites);
    int n = run_refusing(&s, 0), worth = 0;
    for (int at = 1; at <= n; at++)
        if (is_worth_it(at, n) && worth++ % SLICE == 0) (void)run_refusing(&s, at);
    print_message("%d allocations, %d refused: %d times done without, %d times refused; %d worlds\n", n, s.runs - 1,
                  s.said[0] - 1, s.said[1], s.n_healed);
    free(s.healed);
    trial_free(s.t);
}

/* ---- a directory store by itself ---- */

static int upload(struct rp_backend *b, struct rp_identity *out, struct rp_error *err)
{
    const struct rp_pair pair = { "which", "this" };
    const struct rp_meta meta = { .user = &pair, .n_user = 1 };
    struct rp_object_writer *writer = NULL;
    int r = rp_backend_put_open(b, "k", &meta, RP_PUT_REPLACE, &writer, err);
    if (r < 0) return r;
    if ((r = rp_backend_put_write(writer, "bytes", 5, err)) == 0) return rp_backend_put_commit(writer, out, err);
    rp_backend_put_abort(writer);
    return r;
}

static int upload_and_remove(struct rp_backend *b, struct rp_error *err)
{
    struct rp_item item = { .key = "k" };
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    struct rp_meta meta = { 0 };
    int r = upload(b, &item.identity, err);
    if (r == 0) r = rp_backend_get(b, "k", NULL, &arena, &meta, NULL, err);
    return r < 0 ? r : rp_backend_remove(b, &item, 1, NULL, err);
}

/* It says so, and works again. */
static void every_allocation_of_a_directory_store(void **state)
{
    char root[] = "/tmp/rp-starved-XXXXXX", command[64];
    struct rp_error err = { 0 };
    struct rp_backend *b;
    (void)state;
    assert_non_null(mkdtemp(root));
    assert_int_equal(rp_fs_open(root, false, &b, &err), 0);
    for (int i = 1, struck = true; struck; i++) {
        starve_arm(i);
        int r = upload_and_remove(b, &err);
        starve_disarm();
        struck = starve_struck();
        if (r != 0 && (r != RP_ENOMEM || !struck)) fail_msg("allocation %d: %s", i, err.text);
        assert_int_equal(upload_and_remove(b, &err), 0);
    }
    rp_backend_close(b);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* Where a step prepares what another system says, or looks by itself, memory is the test's own. */
static bool is_tried(const struct program *p)
{
    static const char *const others[] = { "sweep with a guard", "a worker that lost its lease",
                                          "sweep what is due on some clocks only", "commit a transaction",
                                          "a transaction from its begin" };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(p->name, others[i]) == 0) return false;
    return true;
}

static size_t add(struct CMUnitTest *tests, const struct program *programs, size_t n)
{
    size_t added = 0;
    for (size_t i = 0; i < n; i++)
        if (is_tried(&programs[i]))
            tests[added++] = (struct CMUnitTest){ .name = programs[i].name,
                                                  .test_func = every_allocation,
                                                  .initial_state = (void *)(uintptr_t)&programs[i] };
    return added;
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[100] = { 0 };
    assert_true(programs_of_users_n + programs_of_sweeps_n + programs_of_files_n < 100);
    sites = calloc(STARVE_MAX, sizeof *sites);
    refused.at = calloc(REFUSED_MAX, sizeof *refused.at);
    if (sites == NULL || refused.at == NULL) return 1;
    starve_json();
    size_t n = add(tests, programs_of_users, programs_of_users_n);
    n += add(tests + n, programs_of_sweeps, programs_of_sweeps_n);
    n += add(tests + n, programs_of_files, programs_of_files_n);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(every_allocation_of_a_directory_store);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    int r = _cmocka_run_group_tests("every allocation fails once", tests, n, NULL, NULL);
    free(sites);
    free(refused.at);
    return r;
}
