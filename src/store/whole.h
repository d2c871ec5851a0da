/* SPDX-License-Identifier: Apache-2.0 */
/* whole.h - put() and get() of a backend that works in parts (T8). */
#ifndef RP_STORE_WHOLE_H
#define RP_STORE_WHOLE_H

#include "store/backend.h"

int rp_backend_put_whole(struct rp_backend *backend, const char *key, const struct rp_source *from,
                         const struct rp_meta *meta, int flags, struct rp_identity *out, struct rp_error *err);
int rp_backend_get_whole(struct rp_backend *backend, const char *key, const struct rp_sink *to, struct rp_arena *arena,
                         struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err);

#endif
