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

#define BLOCK        1024 /* bytes; MHD fills its own buffer for HTTP/1.1 and has this one for nothing, once a client */
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

/* The same words for everybody who is at the same event: made once, and again when the head has moved. */
static struct rp_text *shared(struct rp_live *live, struct rp_text **kept, const char *words, bool with_id)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(RP_LIVE_CURSOR_TEXT + 256);
    char id[RP_LIVE_CURSOR_TEXT];
    if (*kept == NULL) {
        rp_live_cursor_format(&live->head, id);
        rp_buf_str(&b, words);
        if (with_id) rp_buf_fmt(&b, "id: %s\n", id);
        rp_buf_char(&b, '\n');
        if (b.failed == 0) *kept = rp_text_new(b.data, b.len);
    }
    if (*kept != NULL) (*kept)->refs++;
    return *kept;
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

static bool has_event_for(const struct rp_live *live, int64_t tenant_id, uint64_t from)
{
    for (uint64_t i = from > live->ring.first ? from : live->ring.first; i < live->ring.next; i++)
        if (rp_ring_get(&live->ring, i)->tenant_id == tenant_id) return true;
    return false;
}

void rp_live_wake(struct rp_live *live, uint64_t from)
{
    struct rp_live_client *next;
    uint64_t tenants = 0; /* one bit for many: most clients are passed over by it alone */
    for (uint64_t i = from > live->ring.first ? from : live->ring.first; i < live->ring.next; i++)
        tenants |= UINT64_C(1) << (rp_ring_get(&live->ring, i)->tenant_id & 63);
    for (struct rp_live_client *c = live->waiting.first; c != NULL; c = next) {
        next = c->next;
        if (c->tenant_id != 0) {
            if ((tenants >> (c->tenant_id & 63) & 1) == 0) continue;
            if (!has_event_for(live, c->tenant_id, from)) continue;
        }
        c->at = from;
        rp_live_resume(c);
    }
}

void rp_live_tend(struct rp_live *live, int64_t now_ms)
{
    struct rp_live_client *c;
    while ((c = live->waiting.first) != NULL && now_ms - c->since_ms >= live->options.idle_ms) {
        RP_ASSERT(c->text == NULL);
        c->at = live->ring.next;
        c->text = shared(live, &live->idle, ": idle\n", true);
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

/* The next bytes from the ring. */
static size_t take_events(struct rp_live_client *client, char *to, size_t max)
{
    const struct rp_ring *ring = &client->live->ring;
    size_t n = 0;
    if (client->at < ring->first) client->ended = true; /* too slow: what it needs is no longer here */
    while (!client->ended && n < max && client->at < ring->next) {
        const struct rp_ring_event *event = rp_ring_get(ring, client->at);
        if (client->tenant_id == 0 || client->tenant_id == event->tenant_id)
            n += copy_some(event->text, event->len, &client->sent, to + n, max - n);
        else
            client->sent = event->len;
        if (client->sent < event->len) break;
        client->sent = 0;
        client->at++;
    }
    return n;
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
    if (!live->ending && !client->ended) {
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
    pthread_mutex_unlock(&live->lock);
    free(client->after);
    free(client);
}

/* ---- in ---- */

static int begin_client(struct rp_live *live, struct rp_live_client *client, const struct rp_live_cursor *after,
                        struct rp_error *err)
{
    if (live->ending || live->n_clients >= live->options.clients_max)
        return rp_error_set(err, RP_EBUSY, live->ending ? "the server is stopping" : "too many clients listen already");
    client->at = live->ring.next;
    if (after == NULL)
        client->text = shared(live, &live->hello, ": hello\nretry: 2000\n", true);
    else
        client->text = shared(live, &live->again, ": hello\nretry: 2000\n", false);
    if (client->text == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    if (after != NULL && rp_ring_find(&live->ring, after, &client->at)) {
        free(client->after);
        client->after = NULL;
    }
    client->older = live->newest;
    if (live->newest != NULL) live->newest->newer = client;
    live->newest = client;
    live->n_clients++;
    atomic_store(&live->listening, live->n_clients);
    return 0;
}

int rp_live_open(struct rp_live *live, const struct rp_live_ask *ask, struct rp_stream_reply *how, struct rp_error *err)
{
    struct rp_live_cursor after;
    int r = ask->after != NULL ? rp_live_cursor_parse(ask->after, &after, err) : 0;
    if (r < 0) return r;
    struct rp_live_client *client = calloc(1, sizeof *client);
    if (client != NULL && ask->after != NULL) client->after = strdup(ask->after);
    if (client == NULL || (ask->after != NULL && client->after == NULL)) {
        free(client);
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    }
    client->live = live;
    client->connection = ask->connection;
    client->tenant_id = ask->tenant_id;
    client->token_id = ask->token_id;
    client->began_ms = rp_time_boot_ms();
    pthread_mutex_lock(&live->lock);
    r = begin_client(live, client, ask->after != NULL ? &after : NULL, err);
    pthread_mutex_unlock(&live->lock);
    if (r < 0) {
        free(client->after);
        free(client);
        return r;
    }
    *how =
        (struct rp_stream_reply){ .size = -1, .block = BLOCK, .read = client_read, .free = client_free, .ctx = client };
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
