/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/audit/chain.h"

#include <string.h>

void rp_audit_digest_of(struct rp_digest *d, const char *details, uint8_t out[RP_DIGEST_BYTES])
{
    rp_digest_begin(d);
    rp_digest_add(d, details != NULL ? details : "", details != NULL ? strlen(details) : 0);
    rp_digest_end(d, out);
}

void rp_audit_chain(struct rp_digest *d, const uint8_t prev[RP_DIGEST_BYTES], const struct rp_audit_row *row,
                    uint8_t out[RP_DIGEST_BYTES])
{
    rp_digest_begin(d);
    rp_digest_add(d, prev, RP_DIGEST_BYTES);
    rp_digest_add_int(d, row->lane);
    rp_digest_add_int(d, row->seq);
    rp_digest_add_int(d, row->at_ms);
    rp_digest_add(d, row->event, strlen(row->event) + 1);
    rp_digest_add(d, row->actor, strlen(row->actor) + 1);
    rp_digest_add_int(d, row->mark_id);
    rp_digest_add_int(d, row->tenant_id);
    rp_digest_add(d, row->digest, RP_DIGEST_BYTES);
    rp_digest_end(d, out);
}

const char *rp_audit_details_fault(struct rp_digest *d, const struct rp_audit_row *row)
{
    uint8_t expected[RP_DIGEST_BYTES];
    if (row->details == NULL) return NULL;
    rp_audit_digest_of(d, row->details, expected);
    return memcmp(expected, row->digest, RP_DIGEST_BYTES) == 0 ? NULL : "its details are not what was recorded";
}

const char *rp_audit_link_fault(struct rp_digest *d, const uint8_t prev[RP_DIGEST_BYTES],
                                const struct rp_audit_row *row)
{
    uint8_t expected[RP_DIGEST_BYTES];
    const char *fault = rp_audit_details_fault(d, row);
    if (fault != NULL) return fault;
    rp_audit_chain(d, prev, row, expected);
    if (memcmp(expected, row->hash, RP_DIGEST_BYTES) == 0) return NULL;
    return "its hash does not follow from the row before and its content";
}

bool rp_audit_is_erased(struct rp_digest *d, const struct rp_audit_row *row)
{
    uint8_t none[RP_DIGEST_BYTES];
    rp_audit_digest_of(d, NULL, none);
    return row->details == NULL && memcmp(none, row->digest, RP_DIGEST_BYTES) != 0;
}
