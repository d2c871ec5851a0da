/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/catalog.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/hex.h"
#include "base/time.h"
#include "base/url.h"
#include "catalog/audit/audit.h"
#include "catalog/clock.h"
#include "catalog/row.h"
#include "catalog/schema.h"
#include "catalog/statements/statements.h"
#include "catalog/writer/lane.h"
#include "catalog/writer/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define TX_ARENA_MAX  ((size_t)64 << 20)
#define TX_TRIES      12
#define TX_RECONNECTS 3
#define STATEMENT_MS  RP_MINUTE_MS        /* a hung server is not waited for */
#define CHANGE_MS     (30 * RP_SECOND_MS) /* K7 */
#define PATIENT_MS    (10 * RP_MINUTE_MS)
#define SETTLE_MS     (10 * RP_SECOND_MS)

/* ---- schema ---- */

static const struct rp_sql sqlite_tables = {
    .name = "sqlite_tables",
    .text = "SELECT COUNT(*), COUNT(CASE WHEN name = 'meta' THEN 1 END) FROM sqlite_master WHERE type = 'table'",
    .params = "",
    .columns = "ii",
};
/* Where the URL's schema does not exist yet, the current one is what comes after it in the search
 * path. */
static const struct rp_sql postgres_tables = {
    .name = "postgres_tables",
    .text = "SELECT COUNT(*), COUNT(CASE WHEN table_name = 'meta' THEN 1 END) FROM information_schema.tables "
            "WHERE table_schema = current_schema() AND table_schema <> 'pg_catalog'",
    .params = "",
    .columns = "ii",
};

int rp_one_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_one *one = ctx;
    (void)err;
    if (one->found) return 0;
    one->found = true;
    one->i[0] = row[0].i;
    if (one->columns == 2) one->i[1] = row[1].i;
    return 0;
}

int rp_catalog_schema_known(void)
{
    RP_ASSERT(rp_schema_steps_n > 0);
    return rp_schema_steps[rp_schema_steps_n - 1].number;
}

int rp_catalog_schema_of(struct rp_db *db, int *out, struct rp_error *err)
{
    bool sqlite = strcmp(rp_db_engine(db), "sqlite") == 0;
    struct rp_one tables = { .columns = 2 }, schema = { 0 };
    int r = rp_db_query(db, sqlite ? &sqlite_tables : &postgres_tables, NULL, rp_one_row, &tables, err);
    if (r < 0) return r;
    if (tables.i[1] > 0) r = rp_db_query(db, RP_SQL(schema_known), NULL, rp_one_row, &schema, err);
    if (r < 0) return r;
    if (tables.i[0] > 0 && !schema.found) {
        rp_error_set(err, RP_ESCHEMA, "the database holds %lld tables, but no Reprieve catalog",
                     (long long)tables.i[0]);
        rp_error_hint(err, "give the catalog a database or a schema of its own (catalog.url)");
        return RP_ESCHEMA;
    }
    *out = (int)schema.i[0];
    return 0;
}

static int new_catalog_id(char out[40], struct rp_error *err)
{
    uint8_t random[16];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return rp_error_set(err, RP_EFAILED, "no random bytes for the catalog's id");
    snprintf(out, 40, "cat_");
    rp_hex_write(random, sizeof random, out + 4);
    return 0;
}

int rp_stamp_draw(char out[RP_STAMP_TEXT], struct rp_error *err)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return rp_error_set(err, RP_EFAILED, "no random bytes for the stamp of an epoch");
    snprintf(out, RP_STAMP_TEXT, "%016" PRIx64, random);
    return 0;
}

static int apply_steps(struct rp_db *db, int from, struct rp_error *err)
{
    char id[40];
    int r = 0;
    for (size_t i = 0; i < rp_schema_steps_n && r == 0; i++) {
        const struct rp_schema_step *step = &rp_schema_steps[i];
        if (step->number <= from) continue;
        r = rp_db_script(db, step->sql, err);
        if (r < 0) return rp_error_wrap(err, r, "schema step %d (%s)", step->number, step->name);
        r = rp_meta_set(db, "schema", step->number, "", err);
    }
    if (r == 0 && from == 0) {
        r = new_catalog_id(id, err);
        if (r == 0) r = rp_meta_set(db, "catalog", 0, id, err);
    }
    return r;
}

static int refuse_schema(int at, int known, struct rp_error *err)
{
    rp_error_set(err, RP_ESCHEMA, "the catalog is at schema %d, this reprieve knows %d", at, known);
    if (at > known) return rp_error_hint(err, "a newer reprieve has changed it: upgrade this one; nothing was touched");
    return rp_error_hint(err, "make a backup, then run `reprieve migrate`");
}

/* Two programs may find the same empty database: whoever begins second sees the first one's
 * schema. */
static int bring_to_schema(struct rp_db *db, bool migrate, struct rp_error *err)
{
    int at = 0, known = rp_catalog_schema_known();
    int r = rp_catalog_schema_of(db, &at, err);
    if (r < 0) return r;
    if (at == known) return 0;
    if (at > known || (at > 0 && !migrate)) return refuse_schema(at, known, err);
    r = rp_db_begin(db, true, err);
    if (r < 0) return r;
    r = rp_catalog_schema_of(db, &at, err);
    if (r == 0 && at < known) r = apply_steps(db, at, err);
    if (r == 0) r = rp_db_commit(db, err);
    if (r < 0) rp_db_rollback(db);
    return r;
}

/* ---- open and close ---- */

int rp_catalog_adopt(struct rp_db *db, const struct rp_catalog_options *options, struct rp_catalog **out,
                     struct rp_error *err)
{
    RP_CLEANUP(rp_db_closep) struct rp_db *owned = db;
    int64_t unused;
    RP_ASSERT(options->lane == RP_LANE_LEASED || (options->lane >= 0 && options->lane <= RP_LANE_MAX));
    int r = 0;
    /* a second creator of the same catalog is told "exists": by then it does, and is complete */
    for (int try = 0; try < 3; try++) {
        r = bring_to_schema(db, options->migrate, err);
        if (r != RP_ECONFLICT && r != RP_EFAILED && r != RP_EBUSY) break;
    }
    if (r < 0) return rp_error_wrap(err, r, "open catalog");
    RP_CLEANUP(rp_catalog_closep) struct rp_catalog *catalog = calloc(1, sizeof *catalog);
    if (catalog == NULL) return rp_error_set(err, RP_ENOMEM, "open catalog: out of memory");
    catalog->clock = options->clock != NULL ? options->clock : &rp_clock_host;
    catalog->lane = options->lane;
    catalog->leases = options->lane == RP_LANE_LEASED;
    catalog->patience_ms = options->patient ? PATIENT_MS : CHANGE_MS;
    if (options->holder != NULL) snprintf(catalog->holder, sizeof catalog->holder, "%s", options->holder);
    catalog->arena = RP_ARENA(TX_ARENA_MAX);
    catalog->digest = rp_digest_new();
    if (catalog->digest == NULL) return rp_error_set(err, RP_ENOMEM, "open catalog: out of memory");
    r = rp_meta_get(db, "catalog", &unused, catalog->id, sizeof catalog->id, err);
    if (r < 0) return rp_error_wrap(err, r, "open catalog");
    catalog->db = owned;
    owned = NULL;
    r = rp_clock_load(catalog, err);
    if (r < 0) return rp_error_wrap(err, r, "open catalog");
    *out = catalog;
    catalog = NULL;
    return 0;
}

bool rp_catalog_reserve(const char *url, char out[RP_RESERVE_PATH])
{
    const char *file = rp_sqlite_path(url);
    if (file == NULL || strcmp(file, ":memory:") == 0) return false;
    int n = snprintf(out, RP_RESERVE_PATH, "%s-reserve", file);
    return n > 0 && n < RP_RESERVE_PATH;
}

static int open_once(const char *url, const struct rp_catalog_options *options, struct rp_catalog **out,
                     struct rp_error *err)
{
    struct rp_db_options db_options = { .clock = options->clock,
                                        .statement_ms =
                                            options->patient || options->migrate ? PATIENT_MS : STATEMENT_MS,
                                        .by_index = true,
                                        .cache_kib = options->cache_kib };
    struct rp_db *db = NULL;
    int r = rp_db_open(url, &db_options, &db, err);
    if (r < 0) return rp_error_wrap(err, r, "open catalog");
    return rp_catalog_adopt(db, options, out, err);
}

/* Also a reader needs room on the disk: for SQLite's index of its log (K9). */
int rp_catalog_open(const char *url, const struct rp_catalog_options *options, struct rp_catalog **out,
                    struct rp_error *err)
{
    char reserve[RP_RESERVE_PATH];
    bool has_reserve = rp_catalog_reserve(url, reserve);
    RP_CLEANUP(rp_freep) char *kept = has_reserve ? strdup(reserve) : NULL;
    if (has_reserve && kept == NULL) return rp_error_set(err, RP_ENOMEM, "open catalog: out of memory");
    int r = open_once(url, options, out, err);
    if (r == RP_EFULL && has_reserve && rp_reserve_give_up(reserve)) r = open_once(url, options, out, err);
    if (r < 0) return r;
    (*out)->reserve = kept;
    kept = NULL;
    return 0;
}

void rp_catalog_close(struct rp_catalog *catalog)
{
    if (catalog == NULL) return;
    rp_lane_release(catalog);
    rp_db_close(catalog->db);
    rp_digest_free(catalog->digest);
    rp_arena_done(&catalog->arena);
    free(catalog->reserve);
    free(catalog);
}

void rp_catalog_closep(struct rp_catalog **catalog)
{
    rp_catalog_close(*catalog);
}

/* ---- transactions ---- */

static int lane_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_tx *tx = ctx;
    if (row[1].n != RP_DIGEST_BYTES)
        return rp_error_set(err, RP_ECORRUPT, "lane %d: its head is no digest", tx->catalog->lane);
    tx->seq = row[0].i;
    memcpy(tx->head, row[1].p, RP_DIGEST_BYTES);
    tx->last_id = row[2].i;
    tx->heads_at = row[3].i;
    tx->db_ms = row[4].i;
    tx->anchor = (struct rp_anchor){ .known = row[7].type != RP_NULL_T,
                                     .boot_ms = row[7].i,
                                     .wall_ms = row[8].i,
                                     .ahead_ms = row[9].i,
                                     .noted_at_ms = row[10].i };
    tx->stamp_before = row[6].i;
    rp_lane_compare(tx->catalog, tx->stamp_before);
    return rp_lane_check(tx->catalog, row[5].i, err);
}

static int draw_stamp(int64_t *out, struct rp_error *err)
{
    if (getrandom(out, sizeof *out, 0) == (ssize_t)sizeof *out) return 0;
    return rp_error_set(err, RP_EFAILED, "no random bytes for a commit");
}

static int lock_lane(struct rp_tx *tx, struct rp_error *err)
{
    const struct rp_clock *clock = tx->catalog->clock;
    const char *boot = clock->boot != NULL ? clock->boot(clock->ctx)->id : "";
    struct rp_value args[] = { rp_int(tx->catalog->lane), rp_text(boot) };
    return rp_db_query(tx->db, RP_SQL(lane_lock), args, lane_row, tx, err);
}

static int tx_begin(struct rp_catalog *catalog, struct rp_tx *tx, struct rp_error *err)
{
    rp_arena_reset(&catalog->arena);
    memset(tx, 0, offsetof(struct rp_tx, tally));
    tx->n_tally = 0;
    tx->catalog = catalog;
    tx->db = catalog->db;
    tx->arena = &catalog->arena;
    tx->seq = -1;
    int r = draw_stamp(&tx->stamp, err);
    if (r == 0) r = rp_lane_ensure(catalog, err);
    if (r == 0) r = rp_clock_make(catalog, err);
    if (r == 0) r = rp_db_begin(catalog->db, true, err);
    if (r < 0) return r;
    r = lock_lane(tx, err);
    if (r < 0) return r;
    if (tx->seq < 0) return rp_lane_missing(catalog, err);
    r = rp_lane_settle_doubt(tx, err);
    return r < 0 ? r : rp_clock_judge(tx, err);
}

static int flush_tally(struct rp_tx *tx, struct rp_error *err)
{
    struct rp_value lane = rp_int(tx->catalog->lane);
    struct rp_rows rows = rp_rows_of(RP_SQL(tally_add), tx->arena, tx->n_tally);
    for (size_t i = 0; i < tx->n_tally; i++) {
        const struct rp_tally_change *t = &tx->tally[i];
        rp_rows_add(&rows, RP_ROW(rp_int(t->store_id), rp_int(t->state), rp_int(t->marks), rp_int(t->bytes),
                                  rp_int(t->waiting), rp_int(t->waiting_bytes), rp_int(t->marked_at_s)));
    }
    return rp_rows_exec(&rows, tx->db, &lane, NULL, err);
}

static int tx_end(struct rp_tx *tx, struct rp_error *err)
{
    int r = rp_audit_flush(tx, err);
    if (r == 0) r = flush_tally(tx, err);
    if (r == 0) r = rp_clock_note(tx, err);
    if (r < 0) return r;
    struct rp_value lane[] = { rp_int(tx->catalog->lane),
                               rp_int(tx->seq),
                               rp_bytes(tx->head, sizeof tx->head),
                               rp_int(tx->last_id),
                               rp_int(tx->heads_at),
                               rp_int(tx->stamp),
                               rp_int(tx->catalog->leases ? tx->db_ms + RP_LANE_LEASE_MS : 0) };
    r = rp_db_exec(tx->db, RP_SQL(lane_save), lane, NULL, err);
    if (r < 0) return r;
    RP_CRASHPOINT("catalog.before-commit");
    return rp_db_commit(tx->db, err);
}

static void wait_a_little(int try)
{
    struct timespec pause = {.tv_nsec = 2000000L << (try < 6 ? try : 6) };
    nanosleep(&pause, NULL);
}

enum outcome { COMMITTED, NOT_COMMITTED, NOBODY_KNOWS };

/* K4. The lane's lock was the lost transaction's until it ended: what stands there is its outcome.
 * On a shared lane another commit may stand there already, and then nobody knows. */
static int find_commit(struct rp_tx *tx, enum outcome *out, struct rp_error *err)
{
    struct rp_catalog *catalog = tx->catalog;
    struct rp_value lane = rp_int(catalog->lane);
    struct rp_one found = { .columns = 2 }; /* stamp, fence */
    int r = rp_db_begin(catalog->db, true, err);
    if (r == 0) r = rp_db_query(catalog->db, RP_SQL(lane_stamp), &lane, rp_one_row, &found, err);
    if (r == 0) r = rp_lane_check(catalog, found.i[1], err);
    if (r == 0) r = rp_db_commit(catalog->db, err);
    if (r < 0) rp_db_rollback(catalog->db);
    if (r < 0) return r;
    bool stands = found.i[0] == tx->stamp, none_since = found.i[0] == tx->stamp_before || catalog->leases;
    *out = stands ? COMMITTED : none_since ? NOT_COMMITTED : NOBODY_KNOWS;
    return 0;
}

/* Asks again only while the database cannot be asked. */
static int settle_commit(struct rp_tx *tx, bool *committed, struct rp_error *err)
{
    struct rp_db *db = tx->catalog->db;
    enum outcome found = NOBODY_KNOWS;
    int r = RP_EUNKNOWN;
    rp_db_deadline(db, rp_time_boot_ms() + SETTLE_MS);
    for (int try = 0; try < RP_SETTLE_TRIES && r < 0 && tx->catalog->lane_known; try++) {
        r = find_commit(tx, &found, err);
        if (r < 0) wait_a_little(try);
    }
    if (r == 0 && found == NOBODY_KNOWS)
        r = rp_error_set(err, RP_EUNKNOWN, "another program has changed the catalog since");
    if (r < 0) {
        err->code = RP_EUNKNOWN; /* the words stay: they say why nobody could be asked */
        rp_error_wrap(err, RP_EUNKNOWN, "the connection broke during the commit");
        rp_error_hint(err, "run the same command again: it finds what was done and changes nothing twice");
        return RP_EUNKNOWN;
    }
    *committed = found == COMMITTED;
    return 0;
}

static int transact_once(struct rp_catalog *catalog, struct rp_tx *tx, rp_tx_fn *fn, void *ctx, struct rp_error *err)
{
    int r = tx_begin(catalog, tx, err);
    if (r == 0) r = fn(tx, ctx, err);
    if (r == 0) r = tx_end(tx, err);
    if (r == RP_EUNKNOWN && !rp_db_in_transaction(catalog->db)) {
        bool committed = false;
        r = settle_commit(tx, &committed, err);
        if (r == 0 && !committed) r = rp_error_set(err, RP_EBUSY, "the connection broke before the commit");
    } else if (r < 0) {
        rp_db_rollback(catalog->db);
    }
    if (r < 0) return r;
    rp_lane_note_end(tx);
    rp_error_clear(err); /* what went wrong on the way is over */
    return 0;
}

static const struct rp_sql checkpoint = {
    .name = "checkpoint", .text = "PRAGMA wal_checkpoint(PASSIVE)", .params = "", .columns = "iii"
};

/* K9. Then the log, whose room can be used again. Whether that helps is seen by trying. */
static bool make_room(struct rp_catalog *catalog, int tries)
{
    struct rp_one unused = { 0 };
    struct rp_error ignored = { 0 };
    if (catalog->reserve == NULL) return false;
    return rp_reserve_give_up(catalog->reserve) ||
           (tries == 1 && rp_db_query(catalog->db, &checkpoint, NULL, rp_one_row, &unused, &ignored) == 0);
}

static bool may_try_again(struct rp_catalog *catalog, int code, int tries, int64_t ends_ms)
{
    if (tries >= TX_TRIES || rp_time_boot_ms() >= ends_ms) return false;
    if (code == RP_EFULL) return make_room(catalog, tries);
    return code == RP_EBUSY || code == RP_ECONFLICT || (code == RP_EUNAVAILABLE && tries <= TX_RECONNECTS);
}

int rp_catalog_commit(struct rp_catalog *catalog, rp_tx_fn *fn, void *ctx, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_tx *tx = malloc(sizeof *tx);
    if (tx == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    RP_ASSERT(!rp_db_in_transaction(catalog->db));
    int64_t ends_ms = rp_time_boot_ms() + catalog->patience_ms;
    int tries = 0, r;
    do {
        if (tries > 0) wait_a_little(tries);
        rp_db_deadline(catalog->db, ends_ms);
        r = transact_once(catalog, tx, fn, ctx, err);
        tries++;
    } while (may_try_again(catalog, r, tries, ends_ms));
    rp_db_deadline(catalog->db, 0);
    RP_ASSERT(!rp_db_in_transaction(catalog->db));
    rp_arena_reset(&catalog->arena);
    bool kept = tx->kept.n > 0 || tx->kept.everywhere;
    if (kept && (r == 0 || r == RP_EUNKNOWN) && catalog->raise_hook != NULL) {
        struct rp_lane_end unknown = { 0 };
        catalog->raise_hook->note(catalog->raise_hook->raises, &tx->kept, r == 0 ? &catalog->end : &unknown);
    }
    return r;
}

int rp_catalog_transact(struct rp_catalog *catalog, rp_tx_fn *fn, void *ctx, struct rp_error *err)
{
    return catalog->through_writers ? rp_writers_call(catalog->writers, fn, ctx, err)
                                    : rp_catalog_commit(catalog, fn, ctx, err);
}

int64_t rp_tx_new_id(struct rp_tx *tx)
{
    int64_t id = rp_id_next(tx->last_id, tx->late_ms, tx->catalog->lane);
    RP_ASSERT(id > tx->last_id);
    tx->last_id = id;
    return id;
}

void rp_tx_tally(struct rp_tx *tx, int64_t store_id, int64_t state, int64_t marks, int64_t bytes)
{
    for (size_t i = 0; i < tx->n_tally; i++) {
        struct rp_tally_change *t = &tx->tally[i];
        if (t->store_id != store_id || t->state != state) continue;
        t->marks += marks;
        t->bytes += bytes;
        return;
    }
    RP_ASSERT(tx->n_tally < RP_TALLY_CHANGES_MAX);
    tx->tally[tx->n_tally++] =
        (struct rp_tally_change){ .store_id = store_id, .state = state, .marks = marks, .bytes = bytes };
}

void rp_tx_tally_waiting(struct rp_tx *tx, int64_t store_id, int64_t state, int64_t marks, int64_t bytes,
                         int64_t marked_at_s)
{
    size_t i = 0;
    while (i < tx->n_tally && (tx->tally[i].store_id != store_id || tx->tally[i].state != state))
        i++;
    RP_ASSERT(i < tx->n_tally);
    struct rp_tally_change *t = &tx->tally[i];
    t->waiting += marks;
    t->waiting_bytes += bytes;
    t->marked_at_s += marked_at_s;
}

void rp_tx_keep(struct rp_tx *tx, int64_t store_id)
{
    struct rp_kept *kept = &tx->kept;
    for (size_t i = 0; i < kept->n; i++)
        if (kept->stores[i] == store_id) return;
    if (store_id == 0 || kept->n == RP_KEPT_MAX)
        kept->everywhere = true;
    else
        kept->stores[kept->n++] = store_id;
}
