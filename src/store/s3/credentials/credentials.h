/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.h - where the keys of a store come from, in the order in which AWS tools look: the
 * configuration; AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; the profile in
 * ~/.aws/credentials and ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE, AWS_PROFILE);
 * the container's endpoint (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, _FULL_URI with
 * AWS_CONTAINER_AUTHORIZATION_TOKEN[_FILE]); the instance's (IMDSv2; AWS_EC2_METADATA_DISABLED).
 *
 * C1  Keys that end are fetched again five minutes before they do; while that fails (tried every 30
 *     s) the old ones serve until their end. They are fetched from where they were found first:
 *     another place may speak for somebody else.
 * C2  Keys never appear in an error, a log line or a URL. An error says where was looked and what
 *     to set.
 * C3  Any thread may ask; one fetches, the others wait for it, unless the old keys still serve. A
 *     failure is the answer for a second.
 * C4  A place that is set up and does not work is an error; nobody looks further. A profile in the
 *     configuration counts before the environment. Roles, web identities, SSO and
 *     credential_process are not supported, and said so. */
#ifndef RP_STORE_S3_CREDENTIALS_H
#define RP_STORE_S3_CREDENTIALS_H

#include "base/error.h"
#include "store/open.h"
#include "store/s3/wire/sign.h"

struct rp_clock;
struct s3_credentials;

/* `options` must outlive it: access_key, secret_key, session_token and profile are read. Looks at
 * nothing yet. */
int rp_s3_credentials_new(const struct rp_s3_options *options, const struct rp_clock *clock,
                          struct s3_credentials **out, struct rp_error *err);
void rp_s3_credentials_free(struct s3_credentials *credentials);
/* RP_ECONFIG: nothing was found anywhere. */
int rp_s3_credentials_get(struct s3_credentials *credentials, struct s3_keys *out, struct rp_error *err);
/* The store refused them (expired token): the next get fetches again, unless that was done for the
 * same reason less than a minute ago. */
void rp_s3_credentials_refused(struct s3_credentials *credentials);
/* "configuration", "environment", "profile media", ...: for doctor. "" before the first get. */
void rp_s3_credentials_source(struct s3_credentials *credentials, char out[RP_KEYS_SOURCE]);

#endif
