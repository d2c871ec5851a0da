/* SPDX-License-Identifier: Apache-2.0 */
/* url_key.h - the key that signs URLs: made once, shared by all nodes and by the command line. */
#ifndef RP_LIB_URL_KEY_H
#define RP_LIB_URL_KEY_H

#include "catalog/catalog.h"

int rp_url_key(struct rp_catalog *catalog, char out[RP_DIGEST_HEX], struct rp_error *err);

#endif
