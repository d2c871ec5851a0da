/* SPDX-License-Identifier: Apache-2.0 */
/* The catch-up thread: brings a client that is older than what is in memory up to it, a part at a
 * time, in turn with the others.
 *
 * A part holds events of every lane from the client's cursor towards the newest. When memory knows
 * the cursor, the client goes on there. Who does not take its part holds up nobody: parts are few
 * and are taken back. */
#include "http/live/inner.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/time.h"
#include "base/wait.h"

#include <stdlib.h>
#include <string.h>

#define PARTS_MAX  64
#define PART_BYTES ((size_t)64 * 1024)
#define RESET_MAX  (RP_LIVE_ID_TEXT + 256)
#define EVENT_MAX  (RP_FEED_JSON_MAX + RP_LIVE_ID_TEXT + 1024)
#define FEED_MS    250 /* a wait for the feed's next look */

struct turn {
    struct rp_live *live;
    struct rp_feed_cursor at;
    struct rp_buf part;
    struct rp_feed_caught caught;
    bool sealed;
};

static bool add_event(void *ctx, struct rp_feed_event *event)
{
    struct turn *turn = ctx;
    char sealed[RP_LIVE_ID_TEXT];
    if (turn->part.len >= PART_BYTES) return false;
    rp_buf_fmt(&turn->part, "id: %s\nevent: %s\ndata: %s\n\n",
               turn->sealed ? rp_seal_close(&turn->live->seal, event->id, sealed) : event->id, event->name,
               event->json);
    return true;
}

/* E8. After the events of this part: it goes on from where they end. */
static void add_reset(struct turn *turn)
{
    char id[RP_FEED_CURSOR_TEXT], sealed[RP_LIVE_ID_TEXT];
    rp_feed_cursor_format(&turn->at, id);
    rp_buf_fmt(
        &turn->part,
        "id: %s\nevent: reset\ndata: {\"reason\":\"missed\",\"message\":\"events after your last id have left the "
        "audit log; read anew what you show\"}\n\n",
        turn->sealed ? rp_seal_close(&turn->live->seal, id, sealed) : id);
}

static int fetch(struct turn *turn, int64_t tenant_id, struct rp_error *err)
{
    const struct rp_feed_want want = { .tenant_id = tenant_id };
    struct rp_live *live = turn->live;
    int r = live->log != NULL ? 0 : rp_feed_log_open(live->feed, &live->log, err);
    if (r == 0) r = rp_feed_catch_up(live->feed, live->log, &want, &turn->at, add_event, turn, &turn->caught, err);
    if (turn->caught.rolled_back)
        rp_buf_str(&turn->part, ": the catalog was rolled back past this id; going on from where it ends now\n\n");
    if (turn->caught.missed) add_reset(turn);
    return r == 0 && turn->part.failed < 0 ? rp_error_set(err, turn->part.failed, "out of memory") : r;
}

/* With the lock: where the client stands after its turn. */
static int settle(struct rp_live_client *client, struct turn *turn, struct rp_error *err)
{
    struct rp_live *live = turn->live;
    char text[RP_FEED_CURSOR_TEXT];
    free(client->after);
    client->after = NULL;
    if (!rp_feed_find(live->feed, &turn->at, &client->at)) {
        rp_feed_cursor_format(&turn->at, text);
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
        /* Nothing of its own in those rows: another turn. */
        rp_live_list_add(&live->fetching, client);
    }
    live->in_hand = NULL;
    pthread_cond_broadcast(&live->fetched);
}

/* With the lock, which is given away while the catalog is read. */
static void serve(struct rp_live *live, struct rp_live_client *client, struct turn *turn)
{
    struct rp_error err = { 0 };
    int r = rp_feed_cursor_parse(client->after, &turn->at, &err);
    RP_ASSERT(client->text == NULL);
    pthread_mutex_unlock(&live->lock);
    if (r == 0) r = fetch(turn, client->tenant_id, &err);
    pthread_mutex_lock(&live->lock);
    if (r == 0) r = settle(client, turn, &err);
    if (r < 0) {
        rp_log_event(live->options.log, RP_LOG_WARNING, rp_clock_now_ms(live->options.clock), "live.cannot_catch_up",
                     json_pack("{s:s}", "error", err.text));
        client->ended = true;
    }
    hand_back(live, client);
}

/* With the lock: until the feed has looked once more. */
static void wait_for_feed(struct rp_live *live)
{
    struct timespec until = rp_wait_until(FEED_MS);
    uint64_t looks = live->looks;
    while (looks == live->looks && !live->ending && pthread_cond_timedwait(&live->to_fetch, &live->lock, &until) == 0)
        continue;
}

void *rp_live_fetch_thread(void *ctx)
{
    struct rp_live *live = ctx;
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
                             .part = RP_BUF(PART_BYTES + EVENT_MAX + RESET_MAX),
                             .sealed = rp_live_seals(client) };
        serve(live, client, &turn);
        rp_buf_done(&turn.part);
        if (turn.caught.ahead) wait_for_feed(live);
    }
    pthread_mutex_unlock(&live->lock);
    return NULL;
}
