/* SPDX-License-Identifier: Apache-2.0 */
/* What is shipped has no mistakes made on purpose (base/mutant.h, MU1); a build with the switch has all of them. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mutant.h"

#ifdef RP_MUTANTS
static const bool seeded = true;
#else
static const bool seeded = false;
#define X(id, name, breaks, what) _Static_assert(!RP_MUTANT(id), "a mistake is switched on: " name);
RP_MUTANT_TABLE(X)
#undef X
#endif

static bool holds(const void *binary, size_t n, const void *bytes, size_t n_bytes)
{
    return memmem(binary, n, bytes, n_bytes) != NULL;
}

static void only_the_switch_brings_mutants_into_the_binary(void **state)
{
    (void)state;
    const char *path = getenv("REPRIEVE_BIN");
    assert_non_null(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    assert_true(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0);
    size_t n = (size_t)st.st_size;
    void *binary = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(binary != MAP_FAILED);
    assert_true(
        holds(binary, n, "rp_catalog_transact", sizeof "rp_catalog_transact")); /* its symbols can be seen at all */
    assert_int_equal(holds(binary, n, "\0rp_mutant", sizeof "\0rp_mutant"), seeded);
    assert_int_equal(holds(binary, n, "\0rp_mutant_rows", sizeof "\0rp_mutant_rows"), seeded);
#define X(id, name, breaks, what) assert_int_equal(holds(binary, n, name, sizeof name), seeded);
    RP_MUTANT_TABLE(X)
#undef X
    munmap(binary, n);
    close(fd);
}

static const char *const invariants[] = { "NO-LOSS",     "NO-EARLY",   "INTENT-FIRST", "NEWER-WINS",    "RESTORE-WINS",
                                          "QUOTA-EXACT", "TXN-ATOMIC", "IDEMPOTENT",   "AT-LEAST-ONCE", "CONFLUENT",
                                          "FENCED",      "AUDITED",    "TENANT",       "BRAKED",        "BOUNDED",
                                          "EVENTUAL",    "HONEST" };

static bool is_invariant(const char *name)
{
    for (size_t i = 0; i < sizeof invariants / sizeof invariants[0]; i++)
        if (strcmp(invariants[i], name) == 0) return true;
    return false;
}

static void every_mutant_has_its_own_name_and_breaks_an_invariant(void **state)
{
    (void)state;
    static const struct {
        const char *name, *breaks, *what;
    } rows[] = {
#define X(id, name, breaks, what) { name, breaks, what },
        RP_MUTANT_TABLE(X)
#undef X
    };
    size_t n = sizeof rows / sizeof rows[0];
    assert_int_equal(n, RP_MUTANTS_N - 1);
    assert_true(n >= 24);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(strspn(rows[i].name, "abcdefghijklmnopqrstuvwxyz-"), strlen(rows[i].name));
        assert_true(is_invariant(rows[i].breaks) && strlen(rows[i].what) > 10);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(rows[k].name, rows[i].name);
    }
}

#ifdef RP_MUTANTS
static void a_mutant_is_found_by_its_name(void **state)
{
    (void)state;
    assert_int_equal(rp_mutant, RP_MUTANT_NONE);
    assert_int_equal(rp_mutant_find("claim-before-due"), RP_MUTANT_CLAIM_BEFORE_DUE);
    assert_int_equal(rp_mutant_find("no-such-mistake"), RP_MUTANT_NONE);
    assert_int_equal(rp_mutant_find(""), RP_MUTANT_NONE);
    assert_false(RP_MUTANT(CLAIM_BEFORE_DUE));
    rp_mutant = RP_MUTANT_CLAIM_BEFORE_DUE;
    assert_true(RP_MUTANT(CLAIM_BEFORE_DUE) && !RP_MUTANT(TENANT_IGNORED));
    rp_mutant = RP_MUTANT_NONE;
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_switch_brings_mutants_into_the_binary),
        cmocka_unit_test(every_mutant_has_its_own_name_and_breaks_an_invariant),
#ifdef RP_MUTANTS
        cmocka_unit_test(a_mutant_is_found_by_its_name),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
