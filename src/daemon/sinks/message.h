/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - an event of the feed as a webhook's receiver gets it. Pure.
 *
 *   {"id":"evt_...","event":"file.deleted","at":"2026-...","actor","tenant"?,"mark"?, its details}
 *
 * The id is made of what the event is (moment, lane, number): the same in every delivery, from
 * whichever node, and another one in a catalog that was put back and went on differently. It sorts
 * by time. */
#ifndef RP_DAEMON_SINKS_MESSAGE_H
#define RP_DAEMON_SINKS_MESSAGE_H

#include "base/text/buf.h"
#include "feed/feed.h"

#define RP_SINK_EVENT_ID 48

const char *rp_sink_event_id(const struct rp_feed_event *event, char out[RP_SINK_EVENT_ID]);
/* RP_ENOMEM, or too long for the buffer. */
int rp_sink_message(const struct rp_feed_event *event, struct rp_buf *out, struct rp_error *err);

#endif
