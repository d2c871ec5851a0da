/* SPDX-License-Identifier: Apache-2.0 */
/* The hub and its reader: follows the audit log and puts what comes into the ring. */
#include "http/live/inner.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "base/time.h"
#include "base/wait.h"

#include <malloc.h>
#include <string.h>

#define LOOK_MS       200
#define GAP_MS        5   /* between two rounds at least, and */
#define CLIENTS_A_MS  100 /* one more ms for so many clients, for all of them may be resumed in each */
#define MANY          512 /* clients */
#define FAIL_PAUSE_MS 1000
#define RING_EVENTS   16384
#define RING_BYTES    ((size_t)8 * 1024 * 1024)
#define CLIENTS       10000
#define IDLE_MS       (15 * RP_SECOND_MS)

/* ---- one page into the ring ---- */

struct batch {
    struct rp_live_cursor head; /* after it */
    struct rp_ring_event events[RP_FEED_PAGE];
    size_t n;
    struct rp_buf text; /* one event's, while it is written */
    bool gap;           /* a row is missing in it */
};

static void drop_batch(struct batch *batch)
{
    for (size_t i = 0; i < batch->n; i++)
        free(batch->events[i].text);
    batch->n = 0;
}

/* As large as it is: a ring of buffers that could grow would hold twice as much. */
static int add_event(struct rp_live *live, struct batch *batch, const struct rp_audit_row *row, struct rp_error *err)
{
    rp_buf_clear(&batch->text);
    int r = rp_feed_text(live->reads, row, &batch->head, &batch->text, err);
    if (r < 0) return r;
    char *text = malloc(batch->text.len);
    if (text == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    memcpy(text, batch->text.data, batch->text.len);
    batch->events[batch->n++] = (struct rp_ring_event){
        .lane = row->lane, .seq = row->seq, .tenant_id = row->tenant_id, .text = text, .len = batch->text.len
    };
    return 0;
}

/* Without texts only the cursor: nobody listens. */
static int render(struct rp_live *live, struct batch *batch, bool texts, struct rp_error *err)
{
    int r = 0;
    batch->head = live->head;
    for (size_t i = 0; r == 0 && i < live->reads->n; i++) {
        const struct rp_audit_row *row = &live->reads->rows[i];
        if (row->seq != rp_live_cursor_seq(&batch->head, row->lane) + 1) batch->gap = true;
        rp_live_cursor_set(&batch->head, row->lane, row->seq);
        if (texts) r = add_event(live, batch, row, err);
    }
    return r;
}

/* What was said of the old head must not be said of the new one. */
static void move_head(struct rp_live *live, const struct rp_live_cursor *head)
{
    live->head = *head;
    rp_text_drop(&live->hello);
    rp_text_drop(&live->idle);
}

/* With the lock. The log is not what it was (rolled back, a row taken out): nobody's place in the ring means anything now. */
static void start_over(struct rp_live *live, const struct rp_live_cursor *head, const char *why)
{
    rp_ring_reset(&live->ring, head);
    move_head(live, head);
    rp_live_end_all(live);
    rp_log_event(live->options.log, RP_LOG_WARNING, rp_clock_now_ms(live->options.clock), "live.started_over",
                 json_pack("{s:s}", "why", why));
}

/* With the lock. */
static void publish(struct rp_live *live, struct batch *batch)
{
    uint64_t from = live->ring.next;
    if (batch->gap) {
        drop_batch(batch);
        start_over(live, &batch->head, "a row of the audit log is missing");
        return;
    }
    if (batch->n == 0) rp_ring_reset(&live->ring, &batch->head);
    for (size_t i = 0; i < batch->n; i++)
        rp_ring_push(&live->ring, &batch->events[i]);
    batch->n = 0;
    move_head(live, &batch->head);
    rp_live_wake(live, from);
}

/* Whoever revoked it, on whichever node: it passes here. */
static void end_revoked(struct rp_live *live, const struct rp_audit_row *row)
{
    RP_CLEANUP(rp_json_decrefp) json_t *details = NULL;
    struct rp_error err;
    enum rp_id_kind kind;
    int64_t id;
    if (strcmp(row->event, "token.revoked") != 0 || row->details == NULL) return;
    if (rp_json_parse(row->details, strlen(row->details), &details, &err) < 0) return;
    if (rp_id_parse(rp_json_get_text(details, "token", ""), &kind, &id) && kind == RP_ID_TOKEN)
        rp_live_forget_token(live, id);
}

static void tell_seen(struct rp_live *live)
{
    for (size_t i = 0; i < live->reads->n; i++) {
        end_revoked(live, &live->reads->rows[i]);
        if (live->options.seen != NULL) live->options.seen(live->options.ctx, &live->reads->rows[i]);
    }
}

/* The page in live->reads. */
static int take_page(struct rp_live *live, struct batch *batch, struct rp_error *err)
{
    bool texts = atomic_load(&live->listening) > 0;
    batch->n = 0;
    batch->gap = false;
    int r = render(live, batch, texts, err);
    pthread_mutex_lock(&live->lock);
    if (r == 0 && !texts && live->n_clients > 0) { /* somebody came meanwhile */
        pthread_mutex_unlock(&live->lock);
        r = render(live, batch, true, err);
        pthread_mutex_lock(&live->lock);
    }
    if (r == 0) publish(live, batch);
    pthread_mutex_unlock(&live->lock);
    drop_batch(batch);
    if (r == 0) tell_seen(live);
    return r;
}

/* ---- the reader ---- */

static bool stopping(struct rp_live *live)
{
    pthread_mutex_lock(&live->wake_lock);
    bool stop = live->stopping;
    pthread_mutex_unlock(&live->wake_lock);
    return stop;
}

/* live->head is changed by this thread alone, so that it may look at it without the lock. */
static int follow_lane(struct rp_live *live, struct batch *batch, int64_t lane, int64_t end, struct rp_error *err)
{
    int64_t seq;
    while ((seq = rp_live_cursor_seq(&live->head, lane)) < end && !stopping(live)) {
        int r = rp_feed_read(live->reads, lane, seq, RP_FEED_PAGE, err);
        if (r == 0 && live->reads->n > 0) r = take_page(live, batch, err);
        if (r < 0) return r;
        if (live->reads->n > 0) continue;
        struct rp_live_cursor head = live->head;
        rp_live_cursor_set(&head, lane, end);
        pthread_mutex_lock(&live->lock);
        start_over(live, &head, "the last rows of a lane are missing");
        pthread_mutex_unlock(&live->lock);
    }
    return 0;
}

static int look(struct rp_live *live, struct batch *batch, struct rp_error *err)
{
    struct rp_live_cursor ends;
    int r = rp_feed_heads(live->reads, &ends, err);
    if (r < 0) return r;
    if (!rp_live_cursor_within(&live->head, &ends)) {
        pthread_mutex_lock(&live->lock);
        start_over(live, &ends, "the catalog was rolled back");
        pthread_mutex_unlock(&live->lock);
        return 0;
    }
    for (size_t i = 0; r == 0 && i < ends.n; i++)
        r = follow_lane(live, batch, ends.at[i].lane, ends.at[i].seq, err);
    return r;
}

static void round_ended(struct rp_live *live, int r, const struct rp_error *err)
{
    live->fails = r < 0 ? live->fails + 1 : 0;
    if (live->fails == 1)
        rp_log_event(live->options.log, RP_LOG_ERROR, rp_clock_now_ms(live->options.clock), "live.cannot_read",
                     json_pack("{s:s}", "error", err->text));
    pthread_mutex_lock(&live->lock);
    live->rounds++;
    pthread_cond_broadcast(&live->to_fetch);
    rp_live_tend(live, rp_time_boot_ms());
    pthread_mutex_unlock(&live->lock);
}

/* Thousands of connections leave holes that glibc keeps for each thread apart; what others need then comes on top. */
static void give_back_memory(struct rp_live *live)
{
    size_t clients = atomic_load(&live->listening);
    if (clients > live->most) live->most = clients;
    if (live->most < MANY || clients > live->most / 2) return;
    live->most = clients;
    (void)malloc_trim(0);
}

/* False: the end. First the least distance to the round before, whatever comes; then until somebody committed. */
static bool wait_for_work(struct rp_live *live)
{
    int64_t gap_ms = GAP_MS + (int64_t)(atomic_load(&live->listening) / CLIENTS_A_MS);
    struct timespec gap = rp_wait_until(live->fails > 0 ? FAIL_PAUSE_MS : gap_ms), look = rp_wait_until(LOOK_MS);
    pthread_mutex_lock(&live->wake_lock);
    while (!live->stopping && pthread_cond_timedwait(&live->wake, &live->wake_lock, &gap) == 0)
        continue;
    while (!live->stopping && !atomic_load(&live->poked) &&
           pthread_cond_timedwait(&live->wake, &live->wake_lock, &look) == 0)
        continue;
    bool go_on = !live->stopping;
    atomic_store(&live->poked, false);
    pthread_mutex_unlock(&live->wake_lock);
    return go_on;
}

static void *read_thread(void *ctx)
{
    struct rp_live *live = ctx;
    RP_CLEANUP(rp_freep) struct batch *batch = calloc(1, sizeof *batch);
    struct rp_error err = { 0 };
    if (batch != NULL) batch->text = RP_BUF(RP_FEED_EVENT_MAX);
    while (wait_for_work(live)) {
        int r = batch != NULL ? look(live, batch, &err) : rp_error_set(&err, RP_ENOMEM, "out of memory");
        round_ended(live, r, &err);
        give_back_memory(live);
    }
    if (batch != NULL) rp_buf_done(&batch->text);
    return NULL;
}

void rp_live_poke(struct rp_live *live)
{
    if (live == NULL || atomic_load(&live->listening) == 0 || atomic_exchange(&live->poked, true)) return;
    pthread_mutex_lock(&live->wake_lock);
    pthread_cond_signal(&live->wake);
    pthread_mutex_unlock(&live->wake_lock);
}

/* ---- start and stop ---- */

static void init_locks(struct rp_live *live)
{
    pthread_mutex_init(&live->lock, NULL);
    pthread_mutex_init(&live->wake_lock, NULL);
    rp_wait_init(&live->to_fetch);
    rp_wait_init(&live->fetched);
    rp_wait_init(&live->wake);
}

static int open_feeds(struct rp_live *live, struct rp_error *err)
{
    const struct rp_live_options *o = &live->options;
    int r = rp_feed_open(o->catalog_url, o->clock, &live->reads, err);
    if (r == 0) r = rp_feed_open(o->catalog_url, o->clock, &live->fetches, err);
    if (r == 0) r = rp_feed_heads(live->reads, &live->head, err);
    if (r == 0) r = rp_ring_init(&live->ring, o->ring_events, o->ring_bytes, &live->head, err);
    return r;
}

static int start_threads(struct rp_live *live, struct rp_error *err)
{
    int r = pthread_create(&live->reader, NULL, read_thread, live);
    live->has_reader = r == 0;
    if (r == 0) r = pthread_create(&live->fetcher, NULL, rp_live_fetch_thread, live);
    live->has_fetcher = live->has_reader && r == 0;
    return r != 0 ? rp_error_errno(err, r, "live events: start a thread") : 0;
}

static void set_defaults(struct rp_live_options *o)
{
    if (o->ring_events == 0) o->ring_events = RING_EVENTS;
    if (o->ring_bytes == 0) o->ring_bytes = RING_BYTES;
    if (o->clients_max == 0) o->clients_max = CLIENTS;
    if (o->idle_ms == 0) o->idle_ms = IDLE_MS;
    if (o->life_ms == 0) o->life_ms = RP_HOUR_MS;
}

int rp_live_start(const struct rp_live_options *options, struct rp_live **out, struct rp_error *err)
{
    struct rp_live *live = calloc(1, sizeof *live);
    if (live == NULL) return rp_error_set(err, RP_ENOMEM, "live events: out of memory");
    live->options = *options;
    init_locks(live);
    set_defaults(&live->options);
    int r = open_feeds(live, err);
    live->options.catalog_url = NULL; /* the caller's, and not needed again */
    if (r == 0) r = start_threads(live, err);
    if (r < 0) {
        rp_live_stop(live);
        return rp_error_wrap(err, r, "live events");
    }
    *out = live;
    return 0;
}

void rp_live_end(struct rp_live *live)
{
    if (live == NULL) return;
    pthread_mutex_lock(&live->lock);
    live->ending = true;
    rp_live_end_all(live);
    pthread_cond_broadcast(&live->to_fetch);
    while (live->in_hand != NULL)
        pthread_cond_wait(&live->fetched, &live->lock);
    pthread_mutex_unlock(&live->lock);
}

void rp_live_stop(struct rp_live *live)
{
    if (live == NULL) return;
    rp_live_end(live);
    pthread_mutex_lock(&live->wake_lock);
    live->stopping = true;
    pthread_cond_broadcast(&live->wake);
    pthread_mutex_unlock(&live->wake_lock);
    if (live->has_reader) pthread_join(live->reader, NULL);
    if (live->has_fetcher) pthread_join(live->fetcher, NULL);
    RP_ASSERT(live->n_clients == 0);
    rp_text_drop(&live->hello);
    rp_text_drop(&live->idle);
    rp_text_drop(&live->again);
    rp_ring_done(&live->ring);
    rp_feed_close(live->reads);
    rp_feed_close(live->fetches);
    pthread_cond_destroy(&live->to_fetch);
    pthread_cond_destroy(&live->fetched);
    pthread_cond_destroy(&live->wake);
    pthread_mutex_destroy(&live->lock);
    pthread_mutex_destroy(&live->wake_lock);
    free(live);
}

size_t rp_live_clients(struct rp_live *live)
{
    return live == NULL ? 0 : atomic_load(&live->listening);
}
