/* SPDX-License-Identifier: Apache-2.0 */
/* s3_bare.h - a bucket worked on with nothing but libcurl: what a loop reaches that remembers and
 * promises nothing. It signs with what libcurl has for that, looks for words in the answers instead
 * of parsing them, and knows its keys beforehand. */
#ifndef RP_BENCH_S3_BARE_H
#define RP_BENCH_S3_BARE_H

#include "ground.h"

#include <stdbool.h>

#define BENCH_REGION "us-east-1"

struct bench_bucket {
    const char *endpoint, *access, *secret;
    char name[64];
};

/* Makes one on the server that RP_TEST_S3 names. */
void bench_bucket_make(struct bench_bucket *b, const char *name);
/* Objects 0 to n of BENCH_OBJECT bytes. */
void bench_bucket_fill(const struct bench_bucket *b, size_t n);
/* The same n objects, 1,000 a request, over so many connections at once. */
struct bench_spent bench_bucket_delete(const struct bench_bucket *b, size_t n, int connections);
/* Keys there are, those under .reprieve/ left out. */
size_t bench_bucket_list(const struct bench_bucket *b);
/* CPU seconds so far of the processes that BENCH_SERVER names; 0 without it. */
double bench_server_cpu_s(void);
/* With whatever is in it. */
void bench_bucket_remove(const struct bench_bucket *b);

#endif
