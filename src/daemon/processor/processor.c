/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processor/processor.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/writer/writer.h"
#include "core/file/file.h"
#include "daemon/processor/call.h"
#include "http/content/headers.h"
#include "http/content/signed_url.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_MS   (2 * RP_SECOND_MS)
#define MEND_MS    RP_HOUR_MS
#define MEND_MOST  1000
#define SAID_MS    RP_MINUTE_MS
#define CALL_MS    (10 * RP_SECOND_MS)
#define AT_ONCE    8 /* jobs that are claimed and called together: one that hangs holds up none beside it */
#define CLAIM_MS   (2 * RP_MINUTE_MS)
#define URL_MS     RP_DAY_MS
#define BODY_MAX   ((size_t)32 << 10)
#define EVENTS_MAX 1024 /* of a batch */
_Static_assert(AT_ONCE *CALL_MS < CLAIM_MS, "a claim lasts as long as its calls, also one after the other");

struct rp_processor {
    struct rp_processor_options options;
    char address[128];
    struct rp_watch *watch;
    struct rp_feed_subscription *subscription;
};

struct process_watch {
    struct rp_watch watch;
    const struct rp_processor *processor;
    struct rp_hook_line lines[AT_ONCE];
    struct rp_arena arena;    /* of what is said in a call */
    int64_t mend_ms, said_ms; /* on the boot clock: when it mended and complained last */
    bool mended;
};

/* ---- the reader: events become jobs ---- */

struct files {
    int64_t ids[EVENTS_MAX];
    size_t n;
};

static int sync_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct files *files = ctx;
    return rp_process_sync(tx, files->ids, files->n, err);
}

static void add_file(struct files *files, const struct rp_feed_event *event)
{
    RP_CLEANUP(rp_json_decrefp) json_t *o = NULL;
    struct rp_error ignored = { 0 };
    enum rp_id_kind kind;
    int64_t id;
    if (rp_json_parse(event->json, event->json_bytes, &o, &ignored) < 0) return;
    if (rp_id_parse(rp_json_get_text(o, "file", ""), &kind, &id) && kind == RP_ID_FILE) files->ids[files->n++] = id;
}

static int make_jobs(void *ctx, const struct rp_feed_batch *batch, struct rp_feed_dealt *all, struct rp_error *err)
{
    (void)all;
    const struct rp_processor *p = ctx;
    struct files files = { .n = 0 };
    for (size_t i = 0; i < batch->n && i < EVENTS_MAX; i++)
        add_file(&files, batch->events[i]);
    files.n = rp_ids_sort(files.ids, files.n);
    int r = files.n > 0 ? rp_writers_call(p->options.writers, sync_tx, &files, err) : 0;
    if (r == 0 && files.n > 0) rp_watch_due(p->watch, rp_session_now_ms(p->options.session));
    return r;
}

/* ---- a call ---- */

static int sign_url(struct process_watch *w, const struct rp_file *file, const char **url, struct rp_error *err)
{
    struct rp_session *s = &w->watch.session;
    struct rp_store *stores[RP_STORES_MAX];
    size_t n = 0;
    int64_t now_ms = rp_session_now_ms(s), ends_ms = now_ms + URL_MS;
    int r = rp_session_stores(s, stores, &n, err);
    const struct rp_store *store = r == 0 ? rp_store_of_file(stores, n, file) : NULL;
    if (r < 0) return r;
    if (store == NULL || store->backend == NULL)
        return rp_error_set(err, RP_EUNAVAILABLE, "the file's store is closed or not configured any more");
    if (!rp_backend_has_presign(store->backend)) {
        struct rp_grant grant = rp_grant_of("GET", file, store->config->name, ends_ms);
        const char *base = rp_url_base(&s->config, w->processor->address, &w->arena);
        if (base == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a signed URL");
        return rp_signed_url(&grant, base, w->processor->options.url_key, &w->arena, url, err);
    }
    struct rp_presigned signed_url = { 0 };
    const struct rp_presign what = { .method = "GET",
                                     .key = file->key,
                                     .now_ms = now_ms,
                                     .ends_at_ms = ends_ms,
                                     .content_type = rp_content_type_safe(file->content_type),
                                     .disposition = "attachment" };
    r = rp_backend_presign(store->backend, &what, &w->arena, &signed_url, err);
    *url = signed_url.url;
    return r;
}

/* What is to be said; of a cancel only the job is needed. */
static int write_body(struct process_watch *w, const struct rp_process_job *job, struct rp_buf *out,
                      struct rp_error *err)
{
    struct rp_file file = { 0 };
    struct rp_tenant tenant = { 0 };
    const char *url = "";
    if (job->action == RP_PROCESS_CANCEL) return rp_process_body(job, &file, "", "", out, err);
    struct rp_db *db = w->watch.session.catalog->db;
    int r = rp_file_get(db, job->file_id, &w->arena, &file, err);
    if (r == 0 && file.status != RP_FILE_SCANNING)
        return rp_error_set(err, RP_ECHANGED, "the file is %s", rp_status_name(file.status));
    if (r == 0) r = rp_tenant_by_id(db, file.tenant_id, &tenant, err);
    if (r == 0) r = sign_url(w, &file, &url, err);
    return r < 0 ? r : rp_process_body(job, &file, tenant.name, url, out, err);
}

/* ---- a batch of calls ---- */

struct called {
    struct rp_process_job job;
    bool mine;
    enum rp_process_end end;
    int64_t again_ms;

    char id[RP_PROCESS_ID];
    struct rp_buf body;
    struct rp_hook_call call;
    rp_hook_send_fn *send;
    pthread_t thread;
    bool prepared, threaded;
    int code; /* of the call, or of what came before it */
    struct rp_hook_answer answer;
    struct rp_error why;
};

struct batch {
    struct called at[AT_ONCE];
    size_t n;
};

static int claim_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct batch *batch = ctx;
    int r = 0;
    for (size_t i = 0; i < batch->n && r == 0; i++)
        r = rp_process_claim(tx, &batch->at[i].job, CLAIM_MS, &batch->at[i].mine, err);
    return r;
}

static int finish_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct batch *batch = ctx;
    int r = 0;
    for (size_t i = 0; i < batch->n && r == 0; i++) {
        const struct called *c = &batch->at[i];
        if (c->mine) r = rp_process_finish(tx, &c->job, c->end, c->again_ms, c->answer.status, err);
    }
    return r;
}

/* The first of a minute, and whatever ends for good. */
static void say(struct process_watch *w, const struct called *c)
{
    char id[RP_ID_TEXT];
    int64_t now_ms = rp_time_boot_ms();
    bool cancel = c->job.action == RP_PROCESS_CANCEL, over = c->end != RP_PROCESS_AGAIN;
    if (!over && w->said_ms != 0 && now_ms - w->said_ms < SAID_MS) return;
    if (!over) w->said_ms = now_ms;
    json_t *o = rp_json_object("action", json_string(cancel ? "cancel" : "process"), "file",
                               json_string(rp_id_format(RP_ID_FILE, c->job.file_id, id)), "attempts",
                               json_integer(c->job.attempts), "status", json_integer(c->answer.status), "error",
                               rp_json_text(c->why.text), NULL);
    if (c->end == RP_PROCESS_DEAD) rp_json_set(o, "note", json_string("the file stays scanning"));
    rp_session_log(&w->watch.session, over && !cancel ? RP_LOG_ERROR : RP_LOG_WARNING,
                   over ? "processor.gave_up" : "processor.failed", o);
}

static void prepare(struct process_watch *w, struct called *c, struct rp_hook_line *line)
{
    const struct rp_config *config = &w->watch.session.config;
    const struct rp_processor_options *o = &w->processor->options;
    rp_arena_reset(&w->arena);
    c->job.attempts++;
    c->prepared = true;
    c->body = RP_BUF(BODY_MAX);
    c->answer.retry_after_ms = -1;
    c->code = write_body(w, &c->job, &c->body, &c->why);
    c->send = o->send != NULL ? o->send : rp_hook_send;
    c->call = (struct rp_hook_call){ .url = config->processor_url,
                                     .secrets = { config->processor_secret, config->processor_secret_old },
                                     .id = rp_process_id(&c->job, c->id),
                                     .event = c->job.action == RP_PROCESS ? "process" : "cancel",
                                     .body = rp_buf_text(&c->body),
                                     .body_bytes = c->body.len,
                                     .at_ms = rp_session_now_ms(&w->watch.session),
                                     .timeout_ms = CALL_MS,
                                     .allow = config->outbound_allow,
                                     .line = line };
}

static void *make_call(void *ctx)
{
    struct called *c = ctx;
    c->code = c->send(&c->call, &c->answer, &c->why);
    return NULL;
}

static void begin_call(struct called *c)
{
    if (c->code < 0) return;
    c->threaded = pthread_create(&c->thread, NULL, make_call, c) == 0;
    if (!c->threaded) make_call(c); /* no thread to be had: slower, not wrong */
}

/* A file that is not what the job says is left to the reader, which is told of that. */
static void end_call(struct process_watch *w, struct called *c)
{
    if (c->threaded) pthread_join(c->thread, NULL);
    rp_buf_done(&c->body);
    const struct rp_process_answer judged = { .code = c->code,
                                              .status = c->answer.status,
                                              .retry_after_ms = c->answer.retry_after_ms };
    c->end = rp_process_judge(&c->job, &judged, &c->again_ms);
    if (c->code == 0 || c->code == RP_ECHANGED || c->code == RP_ENOTFOUND) return;
    rp_metrics_failure(w->watch.options.metrics, "processor");
    if (c->end != RP_PROCESS_TOLD) say(w, c);
}

static void call_all(struct process_watch *w, struct batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        struct called *c = &batch->at[i];
        if (c->mine && !rp_watch_is_ending(&w->watch))
            prepare(w, c, &w->lines[i]);
        else if (c->mine)
            c->job.attempts++; /* not made: at once, by whoever comes next */
    }
    for (size_t i = 0; i < batch->n; i++)
        if (batch->at[i].prepared) begin_call(&batch->at[i]);
    for (size_t i = 0; i < batch->n; i++)
        if (batch->at[i].prepared) end_call(w, &batch->at[i]);
}

/* Rows are locked in order of files, by whoever claims, finishes or makes jobs. Of an upload and
 * the one that it replaces, which is older, the older one's cancel is first in this order too. */
static int by_file(const void *a, const void *b)
{
    return rp_id_order(((const struct rp_process_job *)a)->file_id, ((const struct rp_process_job *)b)->file_id);
}

static int read_due(struct process_watch *w, struct batch *batch, struct rp_error *err)
{
    struct rp_process_job jobs[AT_ONCE];
    struct rp_db *db = w->watch.session.catalog->db;
    int64_t now_ms = 0;
    int r = rp_db_now_ms(db, &now_ms, err);
    if (r == 0) r = rp_process_due(db, now_ms, jobs, AT_ONCE, &batch->n, err);
    if (r == 0) qsort(jobs, batch->n, sizeof jobs[0], by_file);
    for (size_t i = 0; i < batch->n && r == 0; i++)
        batch->at[i] = (struct called){ .job = jobs[i], .end = RP_PROCESS_AGAIN };
    return r;
}

/* *more: there may be others. */
static int call_some(struct process_watch *w, bool *more, struct rp_error *err)
{
    struct batch batch = { .n = 0 };
    *more = false;
    int r = read_due(w, &batch, err);
    if (r == 0 && batch.n > 0) r = rp_catalog_transact(w->watch.session.catalog, claim_tx, &batch, err);
    if (r < 0 || batch.n == 0) return r;
    call_all(w, &batch);
    *more = true;
    return rp_catalog_transact(w->watch.session.catalog, finish_tx, &batch, err);
}

/* ---- the watch ---- */

static int mend_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct process_watch *w = ctx;
    return rp_process_mend(tx, MEND_MOST, !w->mended, err);
}

/* U3 */
static int mend(struct process_watch *w, struct rp_error *err)
{
    int64_t now_ms = rp_time_boot_ms();
    if (w->mended && now_ms - w->mend_ms < MEND_MS) return 0;
    int r = rp_catalog_transact(w->watch.session.catalog, mend_tx, w, err);
    if (r < 0) return r;
    w->mended = true;
    w->mend_ms = now_ms;
    return 0;
}

static void look(struct rp_watch *watch)
{
    struct process_watch *w = (struct process_watch *)watch;
    struct rp_error why = { 0 };
    bool more = true;
    int r = mend(w, &why);
    while (r == 0 && more && !rp_watch_has_enough(watch))
        r = call_some(w, &more, &why);
    if (r == 0) return;
    rp_metrics_failure(watch->options.metrics, "catalog");
    int64_t now_ms = rp_time_boot_ms();
    if (w->said_ms != 0 && now_ms - w->said_ms < SAID_MS) return;
    w->said_ms = now_ms;
    rp_session_log(&watch->session, RP_LOG_ERROR, "processor.waits",
                   rp_json_object("error", rp_json_text(why.text), NULL));
}

static void begin(struct rp_watch *watch)
{
    struct process_watch *w = (struct process_watch *)watch;
    w->processor = watch->options.with;
    w->arena = RP_ARENA((size_t)1 << 20);
}

static void end(struct rp_watch *watch)
{
    struct process_watch *w = (struct process_watch *)watch;
    for (size_t i = 0; i < AT_ONCE; i++)
        rp_hook_line_done(&w->lines[i]);
    rp_arena_done(&w->arena);
}

static const struct rp_watch_kind process_watch = { .what = "the calls to the processor",
                                                    .every_ms = EVERY_MS,
                                                    .bytes = sizeof(struct process_watch),
                                                    .begin = begin,
                                                    .look = look,
                                                    .end = end };

/* ---- start and stop ---- */

static int start(struct rp_processor *p, struct rp_error *err)
{
    static const char *const names[] = { "file.uploaded", "file.restored", "file.live", "file.deleted",
                                         "file.purged",   "file.cleaned",  NULL };
    const struct rp_processor_options *o = &p->options;
    const struct rp_watch_options watch = { .session = o->session,
                                            .writers = o->writers,
                                            .metrics = o->metrics,
                                            .node = o->node,
                                            .every_ms = o->every_ms,
                                            .with = p };
    const struct rp_feed_reader reader = { .name = RP_PROCESSOR_READER,
                                           .want = { .names = names },
                                           .deliver = make_jobs,
                                           .ctx = p,
                                           .writers = o->writers,
                                           .holder = o->node };
    int r = rp_watch_start(&process_watch, &watch, &p->watch, err);
    return r < 0 ? r : rp_feed_subscribe(o->feed, &reader, &p->subscription, err);
}

int rp_processor_start(const struct rp_processor_options *options, struct rp_processor **out, struct rp_error *err)
{
    struct rp_processor *p = calloc(1, sizeof *p);
    if (p == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the processor");
    p->options = *options;
    snprintf(p->address, sizeof p->address, "%s", options->address);
    int r = start(p, err);
    if (r < 0) {
        rp_processor_stop(p);
        return r;
    }
    *out = p;
    return 0;
}

void rp_processor_configure(struct rp_processor *p, const struct rp_config *config)
{
    if (p != NULL) rp_watch_configure(p->watch, config);
}

void rp_processor_halt(struct rp_processor *p)
{
    if (p != NULL) rp_watch_halt(p->watch);
}

void rp_processor_stop(struct rp_processor *p)
{
    if (p == NULL) return;
    rp_processor_halt(p);
    rp_feed_unsubscribe(p->subscription);
    rp_watch_stop(p->watch);
    free(p);
}
