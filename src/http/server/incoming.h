/* SPDX-License-Identifier: Apache-2.0 */
/* incoming.h - what libmicrohttpd calls, from its threads; `cls` is the server. */
#ifndef RP_HTTP_SERVER_INCOMING_H
#define RP_HTTP_SERVER_INCOMING_H

#include "http/server/inner.h"

enum MHD_Result rp_incoming_call(void *cls, struct MHD_Connection *connection, const char *path, const char *method,
                                 const char *version, const char *bytes, size_t *n, void **context);
void rp_incoming_completed(void *cls, struct MHD_Connection *connection, void **context,
                           enum MHD_RequestTerminationCode how);
void rp_incoming_connection(void *cls, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode what);
/* Paths and queries are decoded by us (percent.h). */
size_t rp_incoming_unescape(void *cls, struct MHD_Connection *connection, char *text);

#endif
