/* SPDX-License-Identifier: Apache-2.0 */
/* form.h - the forms that texts of the configuration have. */
#ifndef RP_CONFIG_FORM_H
#define RP_CONFIG_FORM_H

#include <stdbool.h>

/* 1 to 63 of a-z 0-9 - _, beginning with a letter. */
bool rp_form_is_name(const char *text);
#define RP_FORM_NAME_RULE "a name of 1 to 63 of a-z 0-9 - _ that begins with a letter"
bool rp_form_is_url(const char *text);      /* of a database that outlives the process */
bool rp_form_is_web(const char *text);      /* http:// or https:// */
bool rp_form_is_address(const char *text);  /* HOST:PORT to listen on */
bool rp_form_is_schedule(const char *text); /* "continuous", or a line of cron */
bool rp_form_is_cron(const char *text);     /* the same or "", for never */
bool rp_form_is_signing(const char *text);  /* if it begins with whsec_, base64 follows */

#endif
