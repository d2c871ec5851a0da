/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a trial: files, handles, points, clocks. */
#include "fault/trial.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "core/check/references.h"
#include "lib/fault_db.h"
#include "lib/stores.h"
#include "store/open.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>

/* ---- T3 ---- */

/* Under the address sanitizer a process that forks thousands of times should be small. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=2:malloc_context_size=5";
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    (void)thread, (void)attr, (void)start, (void)arg;
    return EAGAIN;
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)wanted, (void)left;
    return 0;
}

/* ---- points ---- */

static bool strikes(struct trial *t, enum trial_kind kind)
{
    const struct trial_plan *p = &t->plan;
    int n = t->shared->points;
    if (p->at == 0 || n < p->at || (n > p->at && p->fault != FAULT_OUTAGE)) return false;
    if (p->fault == FAULT_DEATH) return true;
    bool before = kind == POINT_DB || kind == POINT_INSIDE || kind == POINT_STORE;
    return before == (p->fault == FAULT_BEFORE || p->fault == FAULT_OUTAGE);
}

static int point(struct trial *t, enum trial_kind kind, const char *port, const char *call, struct rp_error *err)
{
    if (!t->armed) return 0;
    struct trial_shared *s = t->shared;
    s->points++;
    RP_ASSERT(s->points < TRIAL_POINTS_MAX);
    struct trial_point *at = &s->point[s->points];
    at->kind = kind;
    snprintf(at->call, sizeof at->call, "%s %s", port, call);
    if (!strikes(t, kind)) return 0;
    s->fired = true;
    if (t->plan.fault == FAULT_DEATH) _exit(0);
    return rp_error_set(err, t->plan.code, "injected at %s", at->call);
}

static bool is_inside(const struct trial *t, const char *call)
{
    return strcmp(call, "run") == 0 && rp_db_in_transaction(t->catalog->db);
}

static int db_before(void *ctx, const char *call, struct rp_error *err)
{
    struct trial *t = ctx;
    if (!t->armed) return 0;
    if (strcmp(call, "begin") == 0 && t->shared->fired && t->resolves_left > 0) {
        t->resolves_left--;
        return rp_error_set(err, RP_EUNAVAILABLE, "injected: nobody can be asked");
    }
    return point(t, is_inside(t, call) ? POINT_INSIDE : POINT_DB, "db", call, err);
}

static int db_after(void *ctx, const char *call, struct rp_error *err)
{
    struct trial *t = ctx;
    if (!t->armed) return 0;
    if (strcmp(call, "commit") == 0) return point(t, POINT_COMMITTED, "db", call, err);
    return point(t, is_inside(t, call) ? POINT_INSIDE_DONE : POINT_DB_DONE, "db", call, err);
}

static int store_before(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    (void)key;
    return point(ctx, POINT_STORE, "store", call, err);
}

static int store_after(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    (void)key;
    return point(ctx, POINT_STORE_DONE, "store", call, err);
}

void trial_arm(struct trial *t, const struct trial_plan *plan)
{
    t->plan = *plan;
    t->shared->points = 0;
    t->shared->fired = false;
    t->resolves_left = plan->fault == FAULT_RESOLVE ? 3 : plan->fault == FAULT_UNRESOLVED ? RP_SETTLE_TRIES : 0;
    t->armed = true;
}

void trial_disarm(struct trial *t)
{
    t->armed = false;
}

/* ---- clocks ---- */

static int64_t host_now(void *ctx)
{
    return ((const struct trial *)ctx)->shared->known.host_ms;
}

static int64_t db_now(void *ctx)
{
    return ((const struct trial *)ctx)->shared->known.db_ms;
}

static void set_clocks(struct inv_known *k, int64_t ms)
{
    k->host_ms = ms;
    k->db_ms = ms - RP_MINUTE_MS;
    k->store_ms = ms + RP_MINUTE_MS;
}

void trial_advance(struct trial *t, int64_t ms)
{
    set_clocks(&t->shared->known, t->shared->known.host_ms + ms);
}

/* ---- files ---- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *tree_from, *tree_to; /* nftw carries no context */

static int link_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    char to[512];
    (void)st, (void)ftw;
    snprintf(to, sizeof to, "%s%s", tree_to, path + strlen(tree_from));
    return type == FTW_D ? mkdir(to, 0700) : link(path, to);
}

static void link_tree(const char *from, const char *to)
{
    tree_from = from;
    tree_to = to;
    int r = nftw(from, link_entry, 16, FTW_PHYS);
    RP_ASSERT(r == 0);
}

static void copy_file(const char *from, const char *to)
{
    RP_CLEANUP(rp_fd_closep) int in = open(from, O_RDONLY | O_CLOEXEC);
    RP_CLEANUP(rp_fd_closep) int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct stat st;
    RP_ASSERT(in >= 0 && out >= 0 && fstat(in, &st) == 0);
    while (st.st_size > 0) {
        ssize_t n = sendfile(out, in, NULL, (size_t)st.st_size);
        RP_ASSERT(n > 0);
        st.st_size -= n;
    }
}

static const char *path_of(const struct trial *t, const char *folder, const char *name, char out[200])
{
    snprintf(out, 200, "%s%s/%s", t->dir, folder, name);
    return out;
}

/* All but the catalog itself. */
static void drop_files(const struct trial *t)
{
    static const char *const files[] = { "catalog.db-wal", "catalog.db-shm", "app.db",
                                         "app.db-wal",     "app.db-shm",     "saved.db" };
    char path[200];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlink(path_of(t, "", files[i], path));
}

static void copy_all(const struct trial *t, const char *from_folder, const char *to_folder)
{
    static const char *const files[] = { "catalog.db", "app.db", "saved.db" };
    char from[200], to[200];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        path_of(t, from_folder, files[i], from);
        path_of(t, to_folder, files[i], to);
        if (access(from, F_OK) == 0) copy_file(from, to);
    }
    link_tree(path_of(t, from_folder, "objects", from), path_of(t, to_folder, "objects", to));
}

void trial_keep(struct trial *t)
{
    RP_ASSERT(!t->memory);
    trial_close(t);
    remove_tree(t->kept);
    int r = mkdir(t->kept, 0700);
    RP_ASSERT(r == 0);
    copy_all(t, "", "/kept");
    if (t->kept_shared == NULL) t->kept_shared = malloc(sizeof *t->kept_shared);
    RP_ASSERT(t->kept_shared != NULL);
    memcpy(t->kept_shared, t->shared, sizeof *t->shared);
}

void trial_bring_back(struct trial *t)
{
    RP_ASSERT(t->kept_shared != NULL);
    trial_close(t);
    trial_disarm(t);
    remove_tree(t->root);
    drop_files(t);
    copy_all(t, "/kept", ""); /* into the same file: it is the same vessel (core/owner/vessel.h) */
    memcpy(t->shared, t->kept_shared, sizeof *t->shared);
}

void trial_save_catalog(struct trial *t)
{
    trial_close(t);
    copy_file(t->url + strlen("sqlite:"), t->saved);
    trial_open(t);
}

void trial_roll_back_catalog(struct trial *t)
{
    trial_close(t);
    copy_file(t->saved, t->url + strlen("sqlite:"));
    trial_open(t);
}

/* ---- the world ---- */

struct trial *trial_new(bool memory)
{
    struct trial *t = calloc(1, sizeof *t);
    RP_ASSERT(t != NULL);
    /* before the first connection; later ones change nothing. Fewer allocations are most of the
     * time under a sanitizer. */
    (void)sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 512, 600);
    (void)sqlite3_config(SQLITE_CONFIG_SINGLETHREAD); /* T3: there are no others */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    snprintf(t->dir, sizeof t->dir, "/dev/shm/reprieve-fault-XXXXXX");
    if (mkdtemp(t->dir) == NULL) {
        snprintf(t->dir, sizeof t->dir, "/tmp/reprieve-fault-XXXXXX");
        char *made = mkdtemp(t->dir);
        RP_ASSERT(made != NULL);
    }
    snprintf(t->url, sizeof t->url, "sqlite:%s/catalog.db", t->dir);
    snprintf(t->root, sizeof t->root, "%s/objects", t->dir);
    snprintf(t->saved, sizeof t->saved, "%s/saved.db", t->dir);
    snprintf(t->kept, sizeof t->kept, "%s/kept", t->dir);
    snprintf(t->app, sizeof t->app, "sqlite:%s/app.db", t->dir);
    t->shared = mmap(NULL, sizeof *t->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    RP_ASSERT(t->shared != MAP_FAILED);
    t->memory = memory;
    snprintf(t->worker.name, sizeof t->worker.name, "host/1/1/test");
    return t;
}

void trial_free(struct trial *t)
{
    trial_close(t);
    rp_backend_close(t->bare);
    remove_tree(t->dir);
    munmap(t->shared, sizeof *t->shared);
    free(t->kept_shared);
    free(t);
}

static void defaults(struct trial *t)
{
    t->config = (struct rp_store_config){ .name = "main",
                                          .type = "fs",
                                          .path = t->root,
                                          .mode = RP_MODE_PURGE,
                                          .grace_ms = 5 * RP_DAY_MS,
                                          .quarantine_ms = 7 * RP_DAY_MS };
    t->uploads = (struct rp_upload_rules){ .expire_ms = RP_HOUR_MS,
                                           .max_size_bytes = 1000,
                                           .max_open_per_tenant = 100,
                                           .quota_default_bytes = 10000,
                                           .txn_timeout_ms = RP_HOUR_MS,
                                           .rollback_grace_ms = 2 * RP_DAY_MS };
    t->database = (struct rp_database_config){ .name = "app", .url = t->app, .read_url = "" };
    t->reference = (struct rp_reference){ .database = "app", .table = "used", .column = "key" };
    t->whole = (struct rp_config){ .environment = "test", .databases = &t->database, .n_databases = 1 };
}

void trial_begin(struct trial *t)
{
    struct rp_error err = { 0 };
    char catalog[200];
    trial_close(t);
    drop_files(t);
    unlink(path_of(t, "", "catalog.db", catalog));
    rp_backend_close(t->bare);
    t->bare = NULL;
    if (!t->memory) remove_tree(t->root);
    int r = t->memory ? rp_memory_open(&t->bare, &err) : mkdir(t->root, 0700);
    RP_ASSERT(r == 0);
    t->hides = t->blind = false;
    memset(t->shared, 0, sizeof *t->shared);
    set_clocks(&t->shared->known, TRIAL_START_MS);
    t->shared->known.max_attempts = TRIAL_ATTEMPTS;
    defaults(t);
    trial_disarm(t);
}

static struct rp_catalog_options catalog_options(struct trial *t)
{
    t->host_clock = (struct rp_clock){ .now_ms = host_now, .ctx = t };
    t->db_clock = (struct rp_clock){ .now_ms = db_now, .ctx = t };
    return (struct rp_catalog_options){ .clock = &t->host_clock };
}

static void must(int r, const struct rp_error *err)
{
    if (r < 0) fprintf(stderr, "%s\n", err->text);
    RP_ASSERT(r == 0);
}

void trial_open_ours(struct trial *t)
{
    struct rp_error err = { 0 };
    struct rp_catalog_options as = catalog_options(t);
    struct rp_store_row row = { 0 };
    if (t->world.catalog == NULL) must(rp_catalog_open(t->url, &as, &t->world.catalog, &err), &err);
    if (t->bare == NULL) must(rp_fs_open(t->root, true, &t->bare, &err), &err);
    must(rp_store_get(t->world.catalog, RP_STORE_STORE, t->config.name, &row, &err), &err);
    t->world.known = &t->shared->known;
    if (t->hides && t->hiding == NULL) must(rp_backend_hiding_wrap(t->bare, &t->blind, &t->hiding, &err), &err);
    t->world.backend = t->hiding != NULL ? t->hiding : t->bare;
    t->world.below = t->hiding != NULL ? t->bare : NULL;
    t->world.store_id = row.id;
    t->world.root = t->memory ? NULL : t->root;
}

/* The catalog as the program has it: behind the faults. Opening is not what is tried here. */
static int open_catalog(struct trial *t, struct rp_error *err)
{
    struct rp_catalog_options as = catalog_options(t);
    struct rp_db_options options = { .clock = &t->db_clock };
    struct rp_db_fault fault = { .before = db_before, .after = db_after, .ctx = t };
    struct rp_db *inner = NULL, *faulty = NULL;
    bool armed = t->armed;
    t->armed = false;
    int r = rp_db_open(t->url, &options, &inner, err);
    if (r == 0) r = rp_db_fault_wrap(inner, &fault, &faulty, err);
    if (r == 0) r = rp_catalog_adopt(faulty, &as, &t->catalog, err);
    t->armed = armed;
    return r;
}

/* ---- what a process does for those who keep something alive (core/owner/raise.h) ---- */

static void raise_here(void *ctx, uint64_t which)
{
    struct trial *t = ctx;
    struct rp_error ignored = { 0 }; /* then it is owed */
    RP_ASSERT(which == 1);
    rp_raises_begin(t->raises, 0);
    (void)rp_raise(t->raises, 0, t->catalog, &t->store, &ignored);
}

static void open_raises(struct trial *t)
{
    t->raises = rp_raises_new(&t->host_clock);
    RP_ASSERT(t->raises != NULL);
    rp_raises_set(t->raises, 0, t->store.id, t->config.mode == RP_MODE_OBSERVE);
    t->raise_hook = (struct rp_raise_hook){
        .due = rp_raises_due, .note = rp_raises_note, .raise = raise_here, .raises = t->raises, .ctx = t
    };
    t->catalog->raise_hook = &t->raise_hook;
    t->store.raises = t->raises;
}

void trial_open(struct trial *t)
{
    struct rp_error err = { 0 };
    struct rp_backend_fault fault = { .before = store_before, .after = store_after, .ctx = t };
    trial_open_ours(t);
    must(open_catalog(t, &err), &err);
    must(inv_watch_wrap(&t->world, t->world.backend, t->shared->deny, &t->watched), &err);
    must(rp_backend_fault_wrap(t->watched, &fault, &t->faulty, &err), &err);
    t->store = (struct rp_store){ .id = t->world.store_id,
                                  .environment = "test",
                                  .config = &t->config,
                                  .backend = t->faulty,
                                  .level = RP_LEVEL_EXACT };
    must(rp_references_new(&t->whole, &t->config, &t->store.references, &err), &err);
    open_raises(t);
}

static void close_all_but_ours(struct trial *t)
{
    rp_references_free(t->store.references);
    rp_backend_close(t->faulty);
    rp_backend_close(t->watched);
    rp_backend_close(t->hiding);
    t->hiding = NULL;
    if (!t->memory) {
        rp_backend_close(t->bare);
        t->bare = NULL;
    }
    rp_catalog_close(t->catalog);
    rp_raises_free(t->raises);
    t->raises = NULL;
    t->store.references = NULL;
    t->faulty = t->watched = NULL;
    t->catalog = NULL;
}

void trial_close(struct trial *t)
{
    close_all_but_ours(t);
    rp_catalog_close(t->world.catalog);
    t->world.catalog = NULL;
}

void trial_reopen(struct trial *t)
{
    trial_disarm(t);
    close_all_but_ours(t);
    trial_open(t);
}
