/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "core/state.h"
#include "ground.h"
#include "lib/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH   1000
#define KEY_MAX 32
#define WAIT_MS (20 * RP_DAY_MS)

struct filling {
    const struct bench_fill *fill;
    struct rp_store *store;
    struct rp_mark marks[BATCH];
    struct rp_item items[BATCH];
    char keys[BATCH][KEY_MAX];
    bool due[BATCH];
    size_t n, made, made_due;
};

static uint64_t scramble(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static int add_batch(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct filling *f = ctx;
    for (size_t i = 0; i < f->n; i++) {
        const struct rp_identity *identity = &f->items[i].identity;
        f->marks[i] = (struct rp_mark){ .id = rp_tx_new_id(tx),
                                        .store_id = f->store->id,
                                        .key = f->keys[i],
                                        .state = RP_MARKED,
                                        .marked_at_ms = tx->late_ms,
                                        .due_at_ms = tx->late_ms + (f->due[i] ? 0 : WAIT_MS),
                                        .etag = identity->etag,
                                        .version = "",
                                        .size_bytes = identity->size_bytes,
                                        .modified_ms = identity->modified_ms,
                                        .reason = "bench",
                                        .actor = "bench" };
        rp_tx_tally(tx, f->store->id, RP_MARKED, 1, identity->size_bytes);
        rp_tx_tally_waiting(tx, f->store->id, RP_MARKED, 1, identity->size_bytes, tx->late_ms / 1000);
    }
    int r = rp_marks_add(tx, f->marks, f->n, err);
    for (size_t i = 0; i < f->n && r == 0; i++) {
        struct rp_audit_entry entry = { .event = "mark.created",
                                        .actor = "bench",
                                        .mark_id = f->marks[i].id,
                                        .details = rp_mark_json(&f->marks[i], "main") };
        r = rp_tx_audit(tx, &entry, err);
    }
    return r;
}

static void make_due_object(struct filling *f, size_t i)
{
    char path[BENCH_PATH + KEY_MAX];
    static char bytes[BENCH_OBJECT + 1];
    struct rp_error err = { 0 };
    memset(bytes, 'x', BENCH_OBJECT);
    snprintf(path, sizeof path, "%s/%s", f->fill->objects_dir, f->keys[i]);
    bench_write(path, bytes);
    f->items[i] = (struct rp_item){ .key = f->keys[i] };
    if (rp_backend_stat(f->store->backend, &f->items[i], 1, &err) < 0) bench_fail("%s", err.text);
}

/* The next mark is a due one when it is their turn: evenly among the others, or all of them at the
 * end. */
static bool is_due_turn(const struct filling *f)
{
    const struct bench_fill *fill = f->fill;
    if (f->made_due == fill->due_n) return false;
    size_t waiting_made = f->made - f->made_due;
    if (!fill->scattered) return waiting_made == fill->waiting_n;
    return f->made_due * (fill->waiting_n + fill->due_n) <= f->made * fill->due_n;
}

static void next_mark(struct filling *f)
{
    size_t i = f->n++;
    f->due[i] = is_due_turn(f);
    if (f->due[i] && !f->fill->scattered)
        snprintf(f->keys[i], KEY_MAX, "due-%08zu", f->made_due);
    else
        snprintf(f->keys[i], KEY_MAX, "%016" PRIx64, scramble(f->made + 1));
    f->items[i] = (struct rp_item){ .identity = { .etag = "0-0-0", .size_bytes = BENCH_OBJECT } };
    if (f->due[i]) make_due_object(f, i);
    f->made_due += f->due[i];
    f->made++;
}

static void fill_catalog(const char *config_file, const struct bench_fill *fill)
{
    static struct filling f;
    struct rp_session session;
    struct rp_error err = { 0 };
    struct rp_session_options options = { .config_file = config_file, .actor = "bench" };
    f.fill = fill;
    if (rp_session_open(&session, &options, &err) < 0 || rp_session_store(&session, "main", &f.store, &err) < 0)
        bench_fail("%s", err.text);
    while (f.made < fill->waiting_n + fill->due_n) {
        f.n = 0;
        while (f.n < BATCH && f.made < fill->waiting_n + fill->due_n)
            next_mark(&f);
        if (rp_catalog_transact(session.catalog, add_batch, &f, &err) < 0) bench_fail("%s", err.text);
    }
    rp_session_close(&session);
}

void bench_fill(const char *config_file, const struct bench_fill *fill)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        fill_catalog(config_file, fill);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) bench_fail("the catalog could not be filled");
}
