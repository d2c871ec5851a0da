/* SPDX-License-Identifier: Apache-2.0 */
/* form.h - the forms that texts of the configuration have, and how an error says them. */
#ifndef RP_CONFIG_FORM_H
#define RP_CONFIG_FORM_H

#include <stdbool.h>

#include "config/settings.h"

/* Of a type whose bounds do not say it: fits after "expected". */
const char *rp_form_words(enum rp_setting_type type);
/* Whether a value of this type has its form. Types that have none: true. */
bool rp_form_fits(enum rp_setting_type type, const char *text);

/* 1 to 63 of a-z 0-9 - _, beginning with a letter. */
bool rp_form_is_name(const char *text);
#define RP_FORM_NAME_RULE "a name of 1 to 63 of a-z 0-9 - _ that begins with a letter"
bool rp_form_is_line(const char *text);  /* no control characters */
bool rp_form_is_url(const char *text);   /* of a database that outlives the process */
bool rp_form_is_web(const char *text);   /* http:// or https://, and no user */
bool rp_form_has_user(const char *text); /* of a URL: it would be a password in the open */

#endif
