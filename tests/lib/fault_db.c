/* SPDX-License-Identifier: Apache-2.0 */
/* A driver over another open database that fails where it is told to; everything else passes
 * through. */
#include "lib/fault_db.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/error.h"
#include "db/driver.h"

/* A nested transaction: a savepoint in the inner one. */
static const struct rp_sql nested_begin = { .name = "nested_begin", .text = "SAVEPOINT nested" };
static const struct rp_sql nested_commit = { .name = "nested_commit", .text = "RELEASE nested" };
static const struct rp_sql nested_undo = { .name = "nested_undo", .text = "ROLLBACK TO nested" };

struct fault {
    struct rp_db_driver driver; /* the inner driver's limits and dialect, our functions */
    struct rp_db *inner;
    struct rp_db_fault fault;
    bool open; /* a nested transaction is */
};

static int before(struct fault *f, const char *call, struct rp_error *err)
{
    return f->fault.before != NULL ? f->fault.before(f->fault.ctx, call, err) : 0;
}

static int after(struct fault *f, const char *call, struct rp_error *err)
{
    return f->fault.after != NULL ? f->fault.after(f->fault.ctx, call, err) : 0;
}

static void fault_rollback(void *conn)
{
    struct fault *f = conn;
    struct rp_error ignored = { 0 };
    if (!f->fault.nested) rp_db_rollback(f->inner);
    if (!f->open) return;
    f->open = false;
    int r = rp_db_exec(f->inner, &nested_undo, NULL, NULL, &ignored);
    if (r == 0) r = rp_db_exec(f->inner, &nested_commit, NULL, NULL, &ignored);
    RP_ASSERT(r == 0);
}

static void fault_close(void *conn)
{
    struct fault *f = conn;
    fault_rollback(f);
    if (!f->fault.nested) rp_db_close(f->inner);
    free(f);
}

static int inner_begin(struct fault *f, bool write, struct rp_error *err)
{
    if (!f->fault.nested) return rp_db_begin(f->inner, write, err);
    int r = rp_db_exec(f->inner, &nested_begin, NULL, NULL, err);
    f->open = r == 0;
    return r;
}

static int inner_commit(struct fault *f, struct rp_error *err)
{
    if (!f->fault.nested) return rp_db_commit(f->inner, err);
    int r = rp_db_exec(f->inner, &nested_commit, NULL, NULL, err);
    f->open = r < 0;
    return r;
}

static int fault_begin(void *conn, bool write, struct rp_error *err)
{
    struct fault *f = conn;
    int r = before(f, "begin", err);
    if (r == 0) r = inner_begin(f, write, err);
    if (r == 0) r = after(f, "begin", err);
    if (r < 0) fault_rollback(f);
    return r;
}

static int fault_commit(void *conn, struct rp_error *err)
{
    struct fault *f = conn;
    int r = before(f, "commit", err);
    if (r < 0) {
        fault_rollback(f);
        return r;
    }
    r = inner_commit(f, err);
    if (r < 0) return r;
    r = after(f, "commit", err);
    if (r == 0) return 0;
    return rp_error_set(err, RP_EUNKNOWN, "%s: commit: the connection was lost (injected)", f->driver.engine);
}

static void fault_deadline(void *conn, int64_t at_boot_ms)
{
    rp_db_deadline(((struct fault *)conn)->inner, at_boot_ms);
}

static bool fault_in_transaction(const void *conn)
{
    const struct fault *f = conn;
    return f->fault.nested ? f->open : rp_db_in_transaction(f->inner);
}

static int fault_run(void *conn, const struct rp_sql *sql, const char *text, const struct rp_value *args,
                     const struct rp_value *rows, size_t n_rows, rp_row_fn *fn, void *ctx, int64_t *changed,
                     struct rp_error *err)
{
    struct fault *f = conn;
    const struct rp_db_driver *inner = f->inner->driver;
    int r = before(f, "run", err);
    if (r == 0) r = inner->run(f->inner->conn, sql, text, args, rows, n_rows, fn, ctx, changed, err);
    return r == 0 ? after(f, "run", err) : r;
}

static int fault_script(void *conn, const char *text, struct rp_error *err)
{
    struct fault *f = conn;
    int r = before(f, "script", err);
    if (r == 0) r = f->inner->driver->script(f->inner->conn, text, err);
    return r == 0 ? after(f, "script", err) : r;
}

static int fault_vessel(void *conn, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err)
{
    struct fault *f = conn;
    int r = before(f, "vessel", err);
    if (r == 0) r = f->inner->driver->vessel(f->inner->conn, table, out, err);
    return r == 0 ? after(f, "vessel", err) : r;
}

static int refuse_open(const char *url, const struct rp_db_options *options, void **conn, struct rp_error *err)
{
    (void)url;
    (void)options;
    (void)conn;
    return rp_error_set(err, RP_EINVAL, "a fault wrapper is made around an open database");
}

int rp_db_fault_wrap(struct rp_db *inner, const struct rp_db_fault *fault, struct rp_db **out, struct rp_error *err)
{
    RP_ASSERT(fault->nested || inner->tx == RP_TX_NONE);
    struct fault *f = calloc(1, sizeof *f);
    if (f == NULL) return rp_error_set(err, RP_ENOMEM, "wrap a database");
    f->inner = inner;
    f->fault = *fault;
    f->driver = (struct rp_db_driver){
        .engine = inner->driver->engine,
        .one_writer = inner->driver->one_writer,
        .schemes = inner->driver->schemes,
        .params_max = inner->driver->params_max,
        .rows_max = inner->driver->rows_max,
        .rows_bytes_max = inner->driver->rows_bytes_max,
        .dialect = inner->driver->dialect,
        .open = refuse_open,
        .close = fault_close,
        .begin = fault_begin,
        .commit = fault_commit,
        .rollback = fault_rollback,
        .deadline = fault_deadline,
        .in_transaction = fault_in_transaction,
        .run = fault_run,
        .script = fault_script,
        .vessel = fault_vessel,
    };
    int r = rp_db_new(&f->driver, f, out, err);
    if (r < 0)
        free(f);
    else
        (*out)->texts = inner->texts;
    return r;
}
