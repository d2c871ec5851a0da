/* SPDX-License-Identifier: Apache-2.0 */
/* fs_steps.h - a directory store under a directory of its own, and the ways in which tests get in
 * its way. */
#ifndef RP_TESTS_FS_STEPS_H
#define RP_TESTS_FS_STEPS_H

#include <sys/stat.h>
#include <sys/wait.h>

#include "store/fs/fs.h"
#include "store_steps.h"

#define CRASHED 77

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static struct rp_error error;

struct fixture {
    struct rp_backend *backend;
    char dir[64]; /* holds root/ and outside/ */
    char root[80];
};

int open_fixture(void **state);
int close_fixture(void **state);
/* The path below the root; of the last eight calls. */
const char *at(const struct fixture *f, const char *path);
void write_file(const char *path, const char *text);
void expect_file(const char *path, const char *text);
bool exists(const char *path);
size_t files_below(const char *path);
/* Another program's atomic replacement: no lock, just a rename. */
void replace_outside(const struct fixture *f, const char *path, const char *text);
/* Runs the steps in a child whose failed assertions end the child, not the run. */
void in_child(const char *name, CMUnitTestFunction steps, void *state);

static const struct rp_pair old_pair = { "which", "old" }, new_pair = { "which", "new" };
static const struct rp_meta old_meta = { .user = &old_pair, .n_user = 1 },
                            new_meta = { .user = &new_pair, .n_user = 1 };

struct rp_identity put_meta(struct rp_backend *s, const char *key, const char *text, const struct rp_meta *meta);
void expect_meta(struct rp_backend *s, const char *key, const char *value);

struct intruder {
    struct fixture *f;
    const char *path, *point, *then; /* at `point` replace; at `then` once more, or stop the process if it is "crash" */
    const char *crash_at;
    int moves;
};
void hook(struct fixture *f, struct intruder *i);

#endif
