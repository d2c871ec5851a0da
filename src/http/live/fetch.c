/* SPDX-License-Identifier: Apache-2.0 */
/* The catch-up thread: brings a client that is older than the ring up to it, a part at a time, in turn with the others.
 *
 * A part holds events of every lane from the client's cursor towards the ring's head; when the cursor is one that the ring knows,
 * the client goes on there. Whoever does not take its part holds up nobody: parts are few and are taken back. */
#include "http/live/inner.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "base/wait.h"

#include <string.h>

#define PARTS_MAX   64
#define PART_BYTES  ((size_t)64 * 1024)
#define ROWS_LEAST  4 /* a read; as many as the one before had room for */
#define ROWS_MOST   200
#define ROWS_A_TURN 2000 /* a turn, whoever's events they are */
#define READER_MS   250  /* a wait for the reader's next round */

struct turn {
    struct rp_live *live;
    struct rp_live_cursor at, head; /* the client's, and the ring's when the turn began */
    struct rp_buf part;
    int64_t tenant_id;
    size_t rows;
    bool reader_behind;
};

static bool is_full(const struct turn *turn)
{
    return turn->part.len >= PART_BYTES || turn->rows >= ROWS_A_TURN;
}

/* Large events fill a part with few rows: the next read does not fetch many to throw them away. */
static void learn(struct rp_live *live, size_t taken, size_t read)
{
    if (taken < read)
        live->fetch_rows = taken < ROWS_LEAST ? ROWS_LEAST : taken;
    else if (live->fetch_rows < ROWS_MOST)
        live->fetch_rows *= 2;
    if (live->fetch_rows > ROWS_MOST) live->fetch_rows = ROWS_MOST;
}

/* One read of a lane: what is the client's goes into the part. */
static int fetch_page(struct turn *turn, int64_t lane, int64_t end, struct rp_error *err)
{
    struct rp_feed *feed = turn->live->fetches;
    int64_t seq = rp_live_cursor_seq(&turn->at, lane), rows = (int64_t)turn->live->fetch_rows;
    int r = rp_feed_read(feed, lane, seq, (size_t)(end - seq < rows ? end - seq : rows), err);
    size_t i = 0;
    if (r == 0 && feed->n == 0) rp_live_cursor_set(&turn->at, lane, end); /* taken out of the log: nothing comes */
    for (; r == 0 && i < feed->n && turn->part.len < PART_BYTES; i++) {
        const struct rp_audit_row *row = &feed->rows[i];
        rp_live_cursor_set(&turn->at, lane, row->seq <= end ? row->seq : end);
        turn->rows++;
        if (turn->tenant_id == 0 || turn->tenant_id == row->tenant_id)
            r = rp_feed_text(feed, row, &turn->at, &turn->part, err);
    }
    learn(turn->live, i, feed->n);
    return r;
}

/* The client has seen what the reader has not: rows that another node told it of, or rows of a catalog that was rolled back since. */
static int look_past_head(struct turn *turn, struct rp_error *err)
{
    struct rp_live_cursor ends;
    bool cut = false;
    int r = rp_feed_heads(turn->live->fetches, &ends, err);
    if (r < 0) return r;
    for (size_t i = turn->at.n; i-- > 0;) {
        int64_t end = rp_live_cursor_seq(&ends, turn->at.at[i].lane);
        if (turn->at.at[i].seq <= end) continue;
        rp_live_cursor_set(&turn->at, turn->at.at[i].lane, end);
        cut = true;
    }
    if (cut) rp_buf_str(&turn->part, ": the catalog was rolled back past this id; going on from where it ends now\n\n");
    turn->reader_behind = !rp_live_cursor_within(&turn->at, &turn->head);
    return 0;
}

static int fetch(struct turn *turn, struct rp_error *err)
{
    int r = 0;
    if (!rp_live_cursor_within(&turn->at, &turn->head)) r = look_past_head(turn, err);
    if (r < 0 || turn->reader_behind) return r;
    for (size_t i = 0; r == 0 && i < turn->head.n; i++) {
        int64_t lane = turn->head.at[i].lane, end = turn->head.at[i].seq;
        while (r == 0 && rp_live_cursor_seq(&turn->at, lane) < end && !is_full(turn))
            r = fetch_page(turn, lane, end, err);
    }
    return r;
}

/* With the lock: where the client stands after its turn. */
static int settle(struct rp_live_client *client, struct turn *turn, struct rp_error *err)
{
    struct rp_live *live = turn->live;
    char text[RP_LIVE_CURSOR_TEXT];
    free(client->after);
    client->after = NULL;
    if (!rp_ring_find(&live->ring, &turn->at, &client->at)) {
        rp_live_cursor_format(&turn->at, text);
        client->after = strdup(text);
        if (client->after == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    }
    if (turn->part.len == 0) return 0;
    client->text = rp_text_new(turn->part.data, turn->part.len);
    if (client->text == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    client->sent = 0;
    client->part = true;
    client->since_ms = rp_time_boot_ms();
    live->n_parts++;
    return 0;
}

/* With the lock: on with the client, if there is something that it can go on with. */
static void hand_back(struct rp_live *live, struct rp_live_client *client)
{
    if (client->text != NULL || client->after == NULL || client->ended || live->ending) {
        rp_live_resume(client);
        if (client->part) rp_live_list_add(&live->reading, client);
    } else {
        rp_live_list_add(&live->fetching, client); /* nothing of its own in those rows: another turn */
    }
    live->in_hand = NULL;
    pthread_cond_broadcast(&live->fetched);
}

/* With the lock, which is given away while the catalog is read. */
static void serve(struct rp_live *live, struct rp_live_client *client, struct turn *turn)
{
    struct rp_error err = { 0 };
    turn->head = live->head;
    int r = rp_live_cursor_parse(client->after, &turn->at, &err);
    RP_ASSERT(client->text == NULL);
    pthread_mutex_unlock(&live->lock);
    if (r == 0) r = fetch(turn, &err);
    pthread_mutex_lock(&live->lock);
    if (r == 0) r = settle(client, turn, &err);
    if (r < 0) {
        rp_log_event(live->options.log, RP_LOG_WARNING, rp_clock_now_ms(live->options.clock), "live.cannot_catch_up",
                     json_pack("{s:s}", "error", err.text));
        client->ended = true;
    }
    hand_back(live, client);
}

/* With the lock: until the reader has looked once more. */
static void wait_for_reader(struct rp_live *live)
{
    struct timespec until = rp_wait_until(READER_MS);
    uint64_t rounds = live->rounds;
    while (rounds == live->rounds && !live->ending && pthread_cond_timedwait(&live->to_fetch, &live->lock, &until) == 0)
        continue;
}

void *rp_live_fetch_thread(void *ctx)
{
    struct rp_live *live = ctx;
    live->fetch_rows = ROWS_MOST;
    pthread_mutex_lock(&live->lock);
    while (!live->ending) {
        struct rp_live_client *client = live->n_parts < PARTS_MAX ? live->fetching.first : NULL;
        if (client == NULL) {
            pthread_cond_wait(&live->to_fetch, &live->lock);
            continue;
        }
        rp_live_list_remove(&live->fetching, client);
        live->in_hand = client;
        struct turn turn = { .live = live,
                             .part = RP_BUF(PART_BYTES + RP_FEED_EVENT_MAX),
                             .tenant_id = client->tenant_id };
        serve(live, client, &turn);
        rp_buf_done(&turn.part);
        if (turn.reader_behind) wait_for_reader(live);
    }
    pthread_mutex_unlock(&live->lock);
    return NULL;
}
