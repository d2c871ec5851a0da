/* SPDX-License-Identifier: Apache-2.0 */
/* docs.h - the route table for people: docs/http.md. */
#ifndef RP_HTTP_ROUTE_DOCS_H
#define RP_HTTP_ROUTE_DOCS_H

#include "base/buf.h"
#include "base/error.h"

int rp_http_write_docs(struct rp_buf *b, struct rp_error *err);

#endif
