/* SPDX-License-Identifier: Apache-2.0 */
/* owner.h - whose store it is, by what the bucket and the catalog say, read from outside. */
#ifndef RP_SIM_OWNER_H
#define RP_SIM_OWNER_H

#include <stdbool.h>
#include <stdint.h>

struct sim;
struct sim_node;

/* Whether the owner record that this node finds names our catalog, no later epoch than the
 * catalog's, and a stamp that it drew, and the catalog lies where it did. */
bool sim_owns(const struct sim *s, const struct sim_node *n);
/* Whether the catalog drew this record's stamp, or has seen a later record
 * (src/core/owner/stamps.h). */
bool sim_drew(const struct sim *s, const char *record);
int64_t sim_catalog_epoch(const struct sim *s);
/* The owner record's, noted with the moment of its change; -1: there is none. */
int64_t sim_record_epoch(struct sim *s);
bool sim_is_known_ours(struct sim *s);

#endif
