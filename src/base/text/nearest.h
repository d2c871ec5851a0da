/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.h - what somebody may have meant. */
#ifndef RP_BASE_TEXT_NEAREST_H
#define RP_BASE_TEXT_NEAREST_H

#include <stddef.h>

/* The candidate that is most like `text`, NULL if none is near. */
const char *rp_text_nearest(const char *text, const char *const *candidates, size_t n);

#endif
