/* SPDX-License-Identifier: Apache-2.0 */
/* The set of directories whose names are durable: exact about what it knows, bounded, and able to
 * forget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/fs/durable.h"

static const struct rp_fs_dir_id above = { .dev = 1, .ino = 2, .born_ns = 3 };

static int open_set(void **state)
{
    struct rp_fs_durable *set = calloc(1, sizeof *set);
    assert_non_null(set);
    rp_fs_durable_init(set);
    *state = set;
    return 0;
}

static int close_set(void **state)
{
    rp_fs_durable_done(*state);
    free(*state);
    return 0;
}

static struct rp_fs_fact fact_of(uint64_t ino, int64_t born_ns)
{
    const struct rp_fs_dir_id dir = { .dev = 1, .ino = ino, .born_ns = born_ns };
    return rp_fs_fact_of(&above, "name", &dir);
}

static void it_knows_what_it_was_told_and_nothing_that_differs_in_any_way(void **state)
{
    struct rp_fs_durable *set = *state;
    const struct rp_fs_fact told = fact_of(10, 20);
    assert_false(rp_fs_durable_has(set, &told));
    rp_fs_durable_add(set, &told);
    assert_true(rp_fs_durable_has(set, &told));
    uint64_t words[sizeof told / sizeof(uint64_t)];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct rp_fs_fact other;
        memcpy(words, &told, sizeof words);
        words[i] ^= 1;
        memcpy(&other, words, sizeof other);
        assert_false(rp_fs_durable_has(set, &other));
    }
    const struct rp_fs_fact renamed = rp_fs_fact_of(&above, "other", &told.dir);
    assert_false(rp_fs_durable_has(set, &renamed));
    assert_true(rp_fs_durable_has(set, &told));
}

static void a_directory_of_unknown_birth_is_never_known(void **state)
{
    struct rp_fs_durable *set = *state;
    struct rp_fs_fact fact = fact_of(10, 0);
    rp_fs_durable_add(set, &fact);
    assert_false(rp_fs_durable_has(set, &fact));
    fact = fact_of(10, 20);
    fact.in.born_ns = 0; /* of the root, which is held open */
    rp_fs_durable_add(set, &fact);
    assert_true(rp_fs_durable_has(set, &fact));
}

/* Far more than there is room for: what is asked for all the time stays, of the others as many as
 * there is room for at most. */
static void it_forgets_what_is_asked_for_least(void **state)
{
    struct rp_fs_durable *set = *state;
    const uint64_t many = 20 * RP_FS_DURABLE_MAX;
    const struct rp_fs_fact busy = fact_of(1, 1);
    size_t known = 0, late = 0;
    rp_fs_durable_add(set, &busy);
    for (uint64_t ino = 2; ino < many; ino++) {
        const struct rp_fs_fact fact = fact_of(ino, 1);
        rp_fs_durable_add(set, &fact);
        assert_true(rp_fs_durable_has(set, &fact));
        assert_true(rp_fs_durable_has(set, &busy));
    }
    for (uint64_t ino = 2; ino < many; ino++) {
        const struct rp_fs_fact fact = fact_of(ino, 1);
        if (!rp_fs_durable_has(set, &fact)) continue;
        known++;
        late += ino >= many - 2 * RP_FS_DURABLE_MAX;
    }
    assert_in_range(known, RP_FS_DURABLE_MAX * 9 / 10, RP_FS_DURABLE_MAX);
    assert_true(late * 10 >= known * 9);
}

static void what_was_told_twice_takes_one_place(void **state)
{
    struct rp_fs_durable *set = *state;
    struct rp_fs_fact row[RP_FS_DURABLE_WAYS] = { fact_of(1, 1) };
    for (int64_t born_ns = 2; born_ns <= RP_FS_DURABLE_WAYS; born_ns++) /* the inode chooses the row, not the birth */
        row[born_ns - 1] = fact_of(1, born_ns);
    for (int times = 0; times < 3; times++)
        for (size_t i = 0; i < RP_FS_DURABLE_WAYS; i++)
            rp_fs_durable_add(set, &row[i]);
    for (size_t i = 0; i < RP_FS_DURABLE_WAYS; i++)
        assert_true(rp_fs_durable_has(set, &row[i]));
}

static void real_directories_have_an_id_of_their_own(void **state)
{
    char path[] = "/tmp/rp-durable-XXXXXX";
    struct rp_fs_dir_id id, again, other;
    (void)state;
    assert_non_null(mkdtemp(path));
    int fd = open(path, O_PATH | O_DIRECTORY), up_fd = open("/tmp", O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0 && up_fd >= 0);
    assert_int_equal(rp_fs_dir_id_of(fd, &id), 0);
    assert_int_equal(rp_fs_dir_id_of(fd, &again), 0);
    assert_int_equal(rp_fs_dir_id_of(up_fd, &other), 0);
    assert_memory_equal(&id, &again, sizeof id);
    assert_true(id.ino != other.ino || id.dev != other.dev);
    close(fd);
    close(up_fd);
    rmdir(path);
    assert_true(rp_fs_dir_id_of(fd, &id) < 0);
}

int main(void)
{
#define WITH_SET(test) cmocka_unit_test_setup_teardown(test, open_set, close_set)
    const struct CMUnitTest tests[] = {
        WITH_SET(it_knows_what_it_was_told_and_nothing_that_differs_in_any_way),
        WITH_SET(a_directory_of_unknown_birth_is_never_known),
        WITH_SET(it_forgets_what_is_asked_for_least),
        WITH_SET(what_was_told_twice_takes_one_place),
        cmocka_unit_test(real_directories_have_an_id_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
