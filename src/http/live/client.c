/* SPDX-License-Identifier: Apache-2.0 */
/* What a client is sent, and when it is suspended and resumed. */
#include "http/live/inner.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "http/server/request.h"

#include <microhttpd.h>
#include <string.h>

#define PART_LATE_MS (30 * RP_SECOND_MS)

/* ---- lists and texts ---- */

void rp_live_list_add(struct rp_live_list *list, struct rp_live_client *client)
{
    client->prev = list->last;
    client->next = NULL;
    if (list->last != NULL) list->last->next = client;
    if (list->first == NULL) list->first = client;
    list->last = client;
}

void rp_live_list_remove(struct rp_live_list *list, struct rp_live_client *client)
{
    if (client->prev != NULL) client->prev->next = client->next;
    if (client->next != NULL) client->next->prev = client->prev;
    if (list->first == client) list->first = client->next;
    if (list->last == client) list->last = client->prev;
    client->prev = client->next = NULL;
}

struct rp_text *rp_text_new(const char *bytes, size_t len)
{
    struct rp_text *text = malloc(sizeof *text + len);
    if (text == NULL) return NULL;
    text->refs = 1;
    text->len = len;
    memcpy(text->data, bytes, len);
    return text;
}

void rp_text_drop(struct rp_text **text)
{
    if (*text != NULL && --(*text)->refs == 0) free(*text);
    *text = NULL;
}

/* `next`: the number of the event after them. */
static struct rp_text *shared(struct rp_live *live, struct rp_shared *made, const char *words, bool with_id,
                              bool is_sealed, uint64_t *next)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(RP_LIVE_ID_TEXT + 256);
    struct rp_feed_cursor head;
    char id[RP_FEED_CURSOR_TEXT], sealed[RP_LIVE_ID_TEXT];
    *next = rp_feed_end(live->feed, &head);
    if (with_id && made->at != *next) rp_text_drop(&made->text);
    if (made->text == NULL) {
        rp_feed_cursor_format(&head, id);
        rp_buf_str(&b, words);
        if (with_id) rp_buf_fmt(&b, "id: %s\n", is_sealed ? rp_seal_close(&live->seal, id, sealed) : id);
        rp_buf_char(&b, '\n');
        if (b.failed == 0) made->text = rp_text_new(b.data, b.len);
        made->at = *next;
    }
    if (made->text != NULL) made->text->refs++;
    return made->text;
}

/* ---- states ---- */

void rp_live_resume(struct rp_live_client *client)
{
    struct rp_live *live = client->live;
    RP_ASSERT(client->state != RP_LIVE_RUNNING);
    if (client->state == RP_LIVE_WAITING)
        rp_live_list_remove(&live->waiting, client);
    else if (live->in_hand != client)
        rp_live_list_remove(&live->fetching, client);
    client->state = RP_LIVE_RUNNING;
    MHD_resume_connection(client->connection);
}

static void suspend(struct rp_live_client *client)
{
    struct rp_live *live = client->live;
    client->state = client->after != NULL ? RP_LIVE_FETCHING : RP_LIVE_WAITING;
    client->since_ms = rp_time_boot_ms();
    rp_live_list_add(client->after != NULL ? &live->fetching : &live->waiting, client);
    if (client->after != NULL) pthread_cond_broadcast(&live->to_fetch);
    MHD_suspend_connection(client->connection);
}

void rp_live_text_done(struct rp_live_client *client)
{
    struct rp_live *live = client->live;
    rp_text_drop(&client->text);
    client->sent = 0;
    if (!client->part) return;
    client->part = false;
    live->n_parts--;
    rp_live_list_remove(&live->reading, client);
    pthread_cond_broadcast(&live->to_fetch);
}

/* One that is being fetched for is resumed by the catch-up thread, which looks at `ended` first. */
void rp_live_end_client(struct rp_live_client *client)
{
    client->ended = true;
    if (client->state == RP_LIVE_WAITING) rp_live_resume(client);
    if (client->state == RP_LIVE_FETCHING && client->live->in_hand != client) rp_live_resume(client);
}

void rp_live_end_all(struct rp_live *live)
{
    for (struct rp_live_client *c = live->newest; c != NULL; c = c->older)
        rp_live_end_client(c);
}

static bool has_event_for(const struct rp_feed_batch *batch, int64_t tenant_id)
{
    for (size_t i = 0; i < batch->n; i++)
        if (batch->events[i]->tenant_id == tenant_id) return true;
    return false;
}

void rp_live_wake(struct rp_live *live, const struct rp_feed_batch *batch)
{
    uint64_t from = batch->events[0]->number;
    uint64_t tenants = 0; /* one bit for many: most clients are passed over by it alone */
    struct rp_live_client *next;
    for (size_t i = 0; i < batch->n; i++)
        tenants |= UINT64_C(1) << (batch->events[i]->tenant_id & 63);
    for (struct rp_live_client *c = live->waiting.first; c != NULL; c = next) {
        next = c->next;
        if (c->at >= from + batch->n) continue; /* it was quicker */
        if (c->tenant_id != 0) {
            if ((tenants >> (c->tenant_id & 63) & 1) == 0) continue;
            if (!has_event_for(batch, c->tenant_id)) continue;
        }
        if (c->at < from) c->at = from; /* what it was passed over with is none of its own */
        rp_live_resume(c);
    }
}

static void end_expired(struct rp_live *live, int64_t now_ms)
{
    if (now_ms < live->next_end_ms) return;
    live->next_end_ms = INT64_MAX;
    for (struct rp_live_client *c = live->newest; c != NULL; c = c->older) {
        if (c->ends_ms <= now_ms)
            rp_live_end_client(c);
        else if (c->ends_ms < live->next_end_ms)
            live->next_end_ms = c->ends_ms;
    }
}

void rp_live_tend(struct rp_live *live, int64_t now_ms)
{
    struct rp_live_client *c;
    end_expired(live, now_ms);
    while ((c = live->waiting.first) != NULL && now_ms - c->since_ms >= live->options.idle_ms) {
        RP_ASSERT(c->text == NULL);
        bool sealed = rp_live_seals(c);
        c->text = shared(live, &live->idle[sealed], ": idle\n", true, sealed, &c->at);
        c->sent = 0;
        if (c->text == NULL || now_ms - c->began_ms >= live->options.life_ms) c->ended = true;
        rp_live_resume(c);
    }
    /* Who does not take its part leaves room for those who do. */
    while ((c = live->reading.first) != NULL && now_ms - c->since_ms >= PART_LATE_MS) {
        rp_live_text_done(c);
        c->ended = true;
    }
}

/* ---- bytes ---- */

static size_t copy_some(const char *from, size_t len, size_t *sent, char *to, size_t room)
{
    size_t n = len - *sent < room ? len - *sent : room;
    memcpy(to, from + *sent, n);
    *sent += n;
    return n;
}

bool rp_live_seals(const struct rp_live_client *client)
{
    return client->tenant_id != 0 && client->live->seal.on;
}

/* As this client sees it. Thousands of one tenant see the same one. */
static const char *id_of(const struct rp_live_client *client, const struct rp_feed_event *event)
{
    struct rp_live *live = client->live;
    if (!rp_live_seals(client)) return event->id;
    if (live->sealed[0] == '\0' || live->sealed_number != event->number)
        (void)rp_seal_close(&live->seal, event->id, live->sealed);
    live->sealed_number = event->number;
    return live->sealed;
}

/* The event as a client sees it. True: it was sent to its end. */
static bool copy_event(const struct rp_feed_event *event, const char *id, size_t *sent, char *to, size_t room,
                       size_t *n)
{
    const struct {
        const char *at;
        size_t len;
    } pieces[] = { { "id: ", 4 },      { id, strlen(id) },
                   { "\nevent: ", 8 }, { event->name, strlen(event->name) },
                   { "\ndata: ", 7 },  { event->json, event->json_bytes },
                   { "\n\n", 2 } };
    size_t begin = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        size_t skip = *sent > begin ? *sent - begin : 0;
        if (skip < pieces[i].len) {
            size_t copied = copy_some(pieces[i].at, pieces[i].len, &skip, to + *n, room - *n);
            *n += copied;
            *sent += copied;
            if (skip < pieces[i].len) return false;
        }
        begin += pieces[i].len;
    }
    return true;
}

struct taking {
    struct rp_live_client *client;
    char *to;
    size_t n, max;
};

static bool take_event(void *ctx, struct rp_feed_event *event)
{
    struct taking *t = ctx;
    struct rp_live_client *client = t->client;
    if (t->n == t->max) return false;
    if ((client->tenant_id == 0 || client->tenant_id == event->tenant_id) &&
        !copy_event(event, id_of(client, event), &client->sent, t->to, t->max, &t->n))
        return false;
    client->sent = 0;
    return true;
}

/* The next bytes from memory. */
static size_t take_events(struct rp_live_client *client, char *to, size_t max)
{
    struct taking t = { .client = client, .to = to, .max = max };
    if (client->ended) return 0;
    /* Too slow: what it needs is not held any more. */
    if (!rp_feed_visit(client->live->feed, &client->at, take_event, &t)) client->ended = true;
    return t.n;
}

static size_t take(struct rp_live_client *client, char *to, size_t max)
{
    size_t n = 0;
    if (client->text != NULL) {
        n = copy_some(client->text->data, client->text->len, &client->sent, to, max);
        if (client->sent < client->text->len) return n;
        rp_live_text_done(client);
    }
    if (client->after == NULL) n += take_events(client, to + n, max - n);
    return n;
}

static ssize_t client_read(void *ctx, uint64_t pos, char *to, size_t max)
{
    struct rp_live_client *client = ctx;
    struct rp_live *live = client->live;
    ssize_t n = MHD_CONTENT_READER_END_OF_STREAM;
    (void)pos;
    pthread_mutex_lock(&live->lock);
    if (!live->ending && !client->ended && rp_time_boot_ms() < client->ends_ms) {
        n = (ssize_t)take(client, to, max);
        if (n == 0 && (client->ended || rp_time_boot_ms() - client->began_ms >= live->options.life_ms))
            n = MHD_CONTENT_READER_END_OF_STREAM;
        else if (n == 0)
            suspend(client);
    }
    pthread_mutex_unlock(&live->lock);
    return n;
}

static void client_free(void *ctx)
{
    struct rp_live_client *client = ctx;
    struct rp_live *live = client->live;
    pthread_mutex_lock(&live->lock);
    RP_ASSERT(client->state == RP_LIVE_RUNNING);
    rp_live_text_done(client);
    if (client->older != NULL) client->older->newer = client->newer;
    if (client->newer != NULL) client->newer->older = client->older;
    if (live->newest == client) live->newest = client->older;
    live->n_clients--;
    atomic_store(&live->listening, live->n_clients);
    rp_feed_leave(live->feed);
    pthread_mutex_unlock(&live->lock);
    free(client->after);
    free(client);
}

/* ---- in ---- */

static int begin_client(struct rp_live *live, struct rp_live_client *client, const struct rp_feed_cursor *after,
                        struct rp_error *err)
{
    if (live->ending || live->n_clients >= live->options.clients_max)
        return rp_error_set(err, RP_EBUSY, live->ending ? "the server is stopping" : "too many clients listen already");
    rp_feed_join(live->feed); /* first: nothing that comes after its cursor is forgotten */
    bool sealed = rp_live_seals(client);
    client->text = shared(live, after == NULL ? &live->hello[sealed] : &live->again, ": hello\nretry: 2000\n",
                          after == NULL, sealed, &client->at);
    if (client->text == NULL) {
        rp_feed_leave(live->feed);
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    }
    if (after != NULL && rp_feed_find(live->feed, after, &client->at)) {
        free(client->after);
        client->after = NULL;
    }
    client->older = live->newest;
    if (live->newest != NULL) live->newest->newer = client;
    live->newest = client;
    if (client->ends_ms < live->next_end_ms) live->next_end_ms = client->ends_ms;
    live->n_clients++;
    atomic_store(&live->listening, live->n_clients);
    return 0;
}

static int read_id(const struct rp_live *live, const struct rp_live_ask *ask, char text[RP_FEED_CURSOR_TEXT],
                   struct rp_feed_cursor *out, struct rp_error *err)
{
    if (ask->tenant_id != 0 && live->seal.on) {
        int r = rp_seal_open(&live->seal, ask->after, text, err);
        return r < 0 ? r : rp_feed_cursor_parse(text, out, err);
    }
    int r = rp_feed_cursor_parse(ask->after, out, err);
    if (r == 0) rp_feed_cursor_format(out, text);
    return r;
}

int rp_live_open(struct rp_live *live, const struct rp_live_ask *ask, struct rp_stream_reply *how, struct rp_error *err)
{
    struct rp_feed_cursor after;
    char text[RP_FEED_CURSOR_TEXT];
    int r = ask->after != NULL ? read_id(live, ask, text, &after, err) : 0;
    if (r < 0) return r;
    struct rp_live_client *client = calloc(1, sizeof *client);
    if (client != NULL && ask->after != NULL) client->after = strdup(text);
    if (client == NULL || (ask->after != NULL && client->after == NULL)) {
        free(client);
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    }
    client->live = live;
    client->connection = ask->connection;
    client->tenant_id = ask->tenant_id;
    client->token_id = ask->token_id;
    client->began_ms = rp_time_boot_ms();
    client->ends_ms = ask->expires_at_ms == 0
                          ? INT64_MAX
                          : client->began_ms + ask->expires_at_ms - rp_clock_now_ms(live->options.clock);
    pthread_mutex_lock(&live->lock);
    r = begin_client(live, client, ask->after != NULL ? &after : NULL, err);
    pthread_mutex_unlock(&live->lock);
    if (r < 0) {
        free(client->after);
        free(client);
        return r;
    }
    *how = (struct rp_stream_reply){ .size = -1, .read = client_read, .free = client_free, .ctx = client };
    return 0;
}

void rp_live_forget_token(struct rp_live *live, int64_t token_id)
{
    if (live == NULL) return;
    pthread_mutex_lock(&live->lock);
    for (struct rp_live_client *c = live->newest; c != NULL; c = c->older)
        if (token_id == 0 || c->token_id == token_id) rp_live_end_client(c);
    pthread_mutex_unlock(&live->lock);
}
