/* SPDX-License-Identifier: Apache-2.0 */
/* follower.c - readers without a name: called by the feed's own thread with each page of the log. */
#include "feed/inner.h"

#include "base/error.h"

#include <stdlib.h>

struct rp_feed_follower {
    struct rp_feed *feed;
    struct rp_feed_reader reader;
    struct rp_feed_follower *next;
};

bool rp_feed_is_followed(const struct rp_feed *feed, const struct rp_audit_row *row)
{
    for (const struct rp_feed_follower *f = feed->followers; f != NULL; f = f->next)
        if (f->reader.want.names != NULL && rp_feed_wants(&f->reader.want, row->tenant_id, row->event)) return true;
    return false;
}

static void tell(const struct rp_feed_follower *f, const struct rp_feed_page *page, bool started_over)
{
    struct rp_feed_event *wanted[RP_FEED_PAGE];
    struct rp_feed_batch batch = { .events = wanted, .started_over = started_over };
    struct rp_feed_dealt not_asked = { 0 };
    struct rp_error ignored = { 0 };
    bool complete = page->all || f->reader.want.names != NULL;
    for (size_t i = 0; complete && i < page->n; i++)
        if (rp_feed_wants(&f->reader.want, page->events[i]->tenant_id, page->events[i]->name))
            wanted[batch.n++] = page->events[i];
    if (batch.n > 0 || started_over) (void)f->reader.deliver(f->reader.ctx, &batch, &not_asked, &ignored);
}

void rp_feed_tell(struct rp_feed *feed, bool started_over)
{
    for (struct rp_feed_follower *f = feed->followers; f != NULL; f = f->next)
        tell(f, &feed->page, started_over);
}

void rp_feed_tell_looked(struct rp_feed *feed)
{
    for (struct rp_feed_follower *f = feed->followers; f != NULL; f = f->next)
        if (f->reader.looked != NULL) f->reader.looked(f->reader.ctx);
}

int rp_feed_follower_add(struct rp_feed *feed, const struct rp_feed_reader *reader, struct rp_feed_follower **out,
                         struct rp_error *err)
{
    struct rp_feed_follower *f = calloc(1, sizeof *f);
    if (f == NULL) return rp_error_set(err, RP_ENOMEM, "a follower of the feed: out of memory");
    f->feed = feed;
    f->reader = *reader;
    pthread_mutex_lock(&feed->followers_lock);
    f->next = feed->followers;
    feed->followers = f;
    pthread_mutex_unlock(&feed->followers_lock);
    *out = f;
    return 0;
}

void rp_feed_follower_remove(struct rp_feed_follower *f)
{
    pthread_mutex_lock(&f->feed->followers_lock);
    struct rp_feed_follower **link = &f->feed->followers;
    while (*link != f)
        link = &(*link)->next;
    *link = f->next;
    pthread_mutex_unlock(&f->feed->followers_lock);
    free(f);
}
