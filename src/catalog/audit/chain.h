/* SPDX-License-Identifier: Apache-2.0 */
/* chain.h - how a row of the audit log is hashed onto the one before (audit.h, A1). For the files
 * of this folder. */
#ifndef RP_CATALOG_AUDIT_CHAIN_H
#define RP_CATALOG_AUDIT_CHAIN_H

#include "catalog/audit/audit.h"

void rp_audit_digest_of(struct rp_digest *d, const char *details, uint8_t out[RP_DIGEST_BYTES]);
void rp_audit_chain(struct rp_digest *d, const uint8_t prev[RP_DIGEST_BYTES], const struct rp_audit_row *row,
                    uint8_t out[RP_DIGEST_BYTES]);
/* Whether the details are what was recorded: NULL, or words for what is wrong. */
const char *rp_audit_details_fault(struct rp_digest *d, const struct rp_audit_row *row);
/* The same, and whether the row follows from the hash of the one before. */
const char *rp_audit_link_fault(struct rp_digest *d, const uint8_t prev[RP_DIGEST_BYTES],
                                const struct rp_audit_row *row);
/* It had details, and they were erased. */
bool rp_audit_is_erased(struct rp_digest *d, const struct rp_audit_row *row);

#endif
