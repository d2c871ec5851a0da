/* SPDX-License-Identifier: Apache-2.0 */
/* assert.h - facts that only a bug can break. Stays on in release: a process that has lost a
 * fact it stands on must stop before it deletes anything. */
#ifndef RP_BASE_ASSERT_H
#define RP_BASE_ASSERT_H

#define RP_ASSERT(fact) ((fact) ? (void)0 : rp_assert_failed(#fact, __FILE__, __LINE__, __func__))

_Noreturn void rp_assert_failed(const char *fact, const char *file, int line, const char *function);

#endif
