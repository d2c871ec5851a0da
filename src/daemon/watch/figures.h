/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h - what alerts are judged by, read from the catalog: bounded, by indexes. */
#ifndef RP_DAEMON_WATCH_FIGURES_H
#define RP_DAEMON_WATCH_FIGURES_H

#include "catalog/catalog.h"
#include "config/config.h"
#include "core/alert.h"
#include "core/room.h"
#include "core/store.h"

/* `stores`: as config->stores, for their clocks as they were last asked; NULL: none. `began_ms`:
 * when this daemon began; what never happened is counted from there. */
int rp_figures_read(struct rp_catalog *catalog, const struct rp_config *config, const struct rp_store *stores,
                    int64_t host_ms, int64_t began_ms, struct rp_alert_figures *out, struct rp_error *err);
/* The disks, which need no catalog. `rooms` NULL: not known. */
void rp_figures_room(struct rp_rooms *rooms, const struct rp_config *config, struct rp_alert_figures *out);

#endif
