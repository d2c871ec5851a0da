/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.h - the route table as an OpenAPI 3.1 document. */
#ifndef RP_HTTP_ROUTE_OPENAPI_H
#define RP_HTTP_ROUTE_OPENAPI_H

#include <jansson.h>

/* NULL: no memory. */
json_t *rp_openapi(void);

#endif
