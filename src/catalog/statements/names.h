/* SPDX-License-Identifier: Apache-2.0 */
/* statements/names.h - what the numbers in the tables are called, as text for statements.
 * tests/unit/test_state.c holds them against the enums. */
#ifndef RP_CATALOG_STATEMENTS_NAMES_H
#define RP_CATALOG_STATEMENTS_NAMES_H

/* mark.state (enum rp_state) and mark.outcome (enum rp_end) */
#define M_MARKED       "1"
#define M_CHECKING     "2"
#define M_PURGING      "3"
#define M_PURGED       "4"
#define M_REPRIEVED    "5"
#define M_DEAD         "6"
#define M_LOST         "7"
#define M_ACTIVE       "(" M_MARKED ", " M_CHECKING ", " M_PURGING ")"
#define M_TO_ASK_ABOUT "(" M_MARKED ", " M_CHECKING ")"
#define M_CLAIMED      "(" M_CHECKING ", " M_PURGING ")"
#define M_ERASED       "(" M_PURGED ", " M_LOST ")"
#define END_SUPERSEDED "3"
#define END_KEPT       "7"

/* a bit of mark.checks */
#define CHECK_CONFIRMATIONS "2"

/* hold.scope (enum rp_scope) */
#define H_SUBJECT    "1"
#define H_PREFIX     "2"
#define H_TENANT     "3"
#define H_EVERYTHING "4"
#define H_OF_A_STORE "(" H_SUBJECT ", " H_PREFIX ")"

/* file.status and file.was (enum rp_status) */
#define F_PENDING  "1"
#define F_SCANNING "2"
#define F_LIVE     "3"
#define F_DELETED  "4"
#define F_PURGED   "5"
#define F_EXPIRED  "6"
#define F_LIVING   "(" F_SCANNING ", " F_LIVE ")"
#define F_OVER     "(" F_PURGED ", " F_EXPIRED ")"
#define F_GONE     "(" F_DELETED ", " F_PURGED ", " F_EXPIRED ")"

/* ledger.kind (enum rp_ledger_kind) */
#define L_RESERVE "1"
#define L_USE     "2"
#define L_REFUND  "3"

/* token.kind (enum rp_token_kind) */
#define K_BEARER "1"
#define K_LINK   "2"

/* txn.state (enum rp_txn_state) */
#define T_COMMITTED "2"
#define T_ABORTED   "3"
#define T_ENDED     "(" T_COMMITTED ", " T_ABORTED ")"

/* confirmation.state (enum rp_confirmation_state) */
#define C_PENDING "1"
#define C_YES     "4"

/* processor_job.action (enum rp_process_action) and .state */
#define J_PROCESS "1"
#define J_CANCEL  "2"
#define J_WAITING "1"
#define J_TOLD    "2"
#define J_DEAD    "3"

#endif
