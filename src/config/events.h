/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - the names of what happens, as those choose them who are told of it. A pattern is a
 * name, or what names begin with and a star: "file.*". */
#ifndef RP_CONFIG_EVENTS_H
#define RP_CONFIG_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#define RP_EVENT_NAMES_MAX 64

extern const char *const rp_event_names[]; /* all of them, in order; then NULL */

/* The pattern is the first `n` bytes. */
bool rp_event_fits(const char *pattern, size_t n, const char *name);
/* Whether any name fits. */
bool rp_event_pattern_is_known(const char *pattern, size_t n);
/* The names that fit any of the patterns, which have a space between; then NULL. */
void rp_event_names_of(const char *patterns, const char *out[RP_EVENT_NAMES_MAX]);

#endif
