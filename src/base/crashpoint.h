/* SPDX-License-Identifier: Apache-2.0 */
/* crashpoint.h - named moments at which the crash tests end the process as a power cut would.
 *
 * REPRIEVE_CRASH_AT=NAME[:N] in the environment: the N-th passing of NAME (the first, unless told
 * otherwise) is SIGKILL. Only the binary of the crash tests is built with RP_CRASHPOINTS;
 * everywhere else the macro is nothing. */
#ifndef RP_BASE_CRASHPOINT_H
#define RP_BASE_CRASHPOINT_H

#ifdef RP_CRASHPOINTS
#define RP_CRASHPOINT(name) rp_crashpoint(name)
void rp_crashpoint(const char *name); /* any thread */
#else
#define RP_CRASHPOINT(name) ((void)(name))
#endif

#endif
