/* SPDX-License-Identifier: Apache-2.0 */
/* quota.pml - an upload from its reservation to its refund, beside another that wants the same room.
 *
 * Abstracts: src/core/file/confirm.c (run_init, run_confirm), delete.c (run_delete, run_restore), sweep.c (rp_files_claimed, rp_files_purged),
 * catalog/file/tenant.c (rp_ledger_add), core/purge. Every atomic { } is one transaction of the catalog or one call of the store. The
 * rows that a transaction decides on (tenant, file, mark) are locked as they are read, so a transaction is one step on both engines.
 *
 * QUOTA-EXACT   counter = ledger after every transaction
 * REFUND-ONCE   (of QUOTA-EXACT) a ledger row is never written twice, and whoever is expired or purged has been refunded
 * WITHIN-LIMIT  (of QUOTA-EXACT) used and reserved together never pass the limit
 * NO-LOSS       what lives, or is deleted and can be restored, is not erased
 * EVENTUAL      bytes that nobody owns are always covered by a mark, until no PUT can arrive any more
 *
 * Confirms are doubled and repeated, an init is repeated, a PUT may arrive at any time until `put_over` (its URL's end and 24 h), a sweeper may die
 * between any two steps, leases end at any moment, deletes act whenever they like: all of it any number of times. `mine`: see mark.pml.
 *
 * check: model uploads
 * check: twin  QUOTA_EXACT  -DBROKEN_CONFIRM_AS_SEEN
 * check: twin  REFUND_ONCE  -DBROKEN_REFUND_WITHOUT_LEDGER
 * check: twin  REFUND_ONCE  -DBROKEN_REFUND_AFTER_THE_CLAIM
 * check: twin  WITHIN_LIMIT -DBROKEN_RESERVE_IN_TWO
 * check: twin  EVENTUAL     -DBROKEN_NO_SECOND_MARK
 * check: twin  EVENTUAL     -DBROKEN_FINISH_WITHOUT_FENCE
 * check: twin  NO_LOSS      -DBROKEN_RESTORE_AFTER_CLAIM
 * check: twin  EVENTUAL     -DBROKEN_SECOND_MARK_ONLY_OF_THE_UNCONFIRMED
 * A confirmed file has a second mark if its URL could be used when it was deleted. Asked when the purge ends instead, a PUT slips in between the erasure
 * and the end of its time:
 * check: twin  EVENTUAL     -DBROKEN_URL_JUDGED_AT_THE_END
 */
bit QUOTA_EXACT, REFUND_ONCE, WITHIN_LIMIT, NO_LOSS, EVENTUAL; /* always 0: they name what is asserted */
#define MUST(name, condition) assert((condition) || name)

#define LIMIT 1 /* each of the two files has one byte */

/* ---- the catalog ---- */

mtype = { absent, pending, live, deleted, expired, purged };
mtype = { none, marked, purging };
mtype = { birth, grace, second };

byte used, reserved; /* the tenant's counters */
bit R[2], U[2], F[2]; /* the ledger: reserve, use, refund of file 0 and 1 */

mtype status = absent; /* of file 0 */
bit unconfirmed;       /* it was deleted before it was confirmed */
bit url_open;          /* when it was deleted a PUT could still arrive */
mtype mark = none, kind = birth;
bit mine[3];
#define REFENCE mine[1] = 0; mine[2] = 0
#define COMMITTED                                                                                                       \
    MUST(QUOTA_EXACT, used == (U[0] && !F[0]) + (U[1] && !F[1]));                                                       \
    MUST(QUOTA_EXACT, reserved == (R[0] && !U[0] && !F[0]) + (R[1] && !U[1] && !F[1]));                                 \
    MUST(WITHIN_LIMIT, used + reserved <= LIMIT);                                                                       \
    MUST(REFUND_ONCE, (status != expired && status != purged) || F[0]);                                                 \
    MUST(EVENTUAL, !there || status == live || mark != none)

/* ---- the store ---- */

bit there, sent, put_over;

/* The row is unique by (file, kind): a second one is RP_ECORRUPT, which must never be seen. */
inline refund(f, counter)
{
    MUST(REFUND_ONCE, !F[f]);
    F[f] = 1;
    counter--
}

inline carry_out()
{
    if
    :: there ->
        MUST(NO_LOSS, status == expired || status == purged || (status == deleted && mark == purging));
        there = 0
    :: else
    fi
}

/* ---- the client of file 0 ---- */

proctype client()
{
#ifdef BROKEN_RESERVE_IN_TWO
    atomic { used + reserved < LIMIT }
    atomic { R[0] = 1; reserved++; status = pending; mark = marked; kind = birth; COMMITTED }
#else
end_refused:
    atomic { used + reserved < LIMIT -> R[0] = 1; reserved++; status = pending; mark = marked; kind = birth; COMMITTED }
#endif
end:
    do /* the same init again finds its Idempotency-Key; the URL can be used as long as it lasts */
    :: atomic { !put_over && !there -> there = 1; COMMITTED }
    :: atomic { !put_over -> put_over = 1 }
    od
} /* unreached: a client may try for ever */

/* Two of them: a confirm that is sent twice. */
proctype confirmer()
{
    bit seen;
#ifdef BROKEN_CONFIRM_AS_SEEN
    mtype was;
#endif
end:
    do
    :: atomic { status != absent -> seen = there /* HEAD */
#ifdef BROKEN_CONFIRM_AS_SEEN
            ; was = status
#endif
        }
        atomic {
            if
#ifdef BROKEN_CONFIRM_AS_SEEN
            :: was == pending && seen ->
#else
            :: status == pending && mark == marked && seen ->
#endif
                status = live;
                mark = none;
                REFENCE;
                U[0] = 1;
                reserved--;
                used++;
                COMMITTED
            :: else -> skip /* confirmed before, expired, deleted, or not uploaded */
            fi;
            seen = 0
        }
    od
} /* unreached: confirms are repeated for ever */

proctype user()
{
end:
    do
    :: atomic { status == pending -> status = deleted; unconfirmed = 1; COMMITTED } /* the mark it was born with goes on */
    :: atomic { status == live -> status = deleted; url_open = !put_over; mark = marked; kind = grace; REFENCE; COMMITTED }
    :: atomic { status == deleted && !unconfirmed && mark == marked -> status = live; mark = none; REFENCE; COMMITTED }
#ifdef BROKEN_RESTORE_AFTER_CLAIM
    :: atomic { status == deleted && !unconfirmed && mark == purging -> status = live; mark = none; REFENCE }
#endif
    od
} /* unreached: people go on for ever */

/* ---- sweeper ---- */

/* A second mark is due when no PUT can arrive any more; the others may be before. */
#define IS_DUE (mark == marked && (put_over || kind != second))

proctype sweeper(byte me)
{
again: /* also after a death */
    mine[me] = 0;
end:
    atomic {
        if
        :: IS_DUE ->
            mark = purging;
            if
            :: kind == birth && status == pending ->
                status = expired;
#ifndef BROKEN_REFUND_AFTER_THE_CLAIM
                refund(0, reserved)
#endif
            :: else /* deleted early: refunded when it is purged */
            fi
        :: mark == purging -> skip /* taken over */
        fi;
        REFENCE;
        mine[me] = 1;
        COMMITTED
    }
#ifdef BROKEN_REFUND_AFTER_THE_CLAIM
    atomic { status == expired && !F[0] -> refund(0, reserved) }
#endif
    if
    :: goto again
    :: atomic { sent = 1 }
    fi;
    if
    :: goto again
    :: atomic { carry_out() }
    fi;
    if
    :: goto again
    :: atomic {
            if
#ifdef BROKEN_FINISH_WITHOUT_FENCE
            :: mark != none ->
#else
            :: mark == purging && mine[me] ->
#endif
                mark = none;
#ifndef BROKEN_NO_SECOND_MARK
                if
                :: kind == birth && (status == expired || unconfirmed) -> mark = marked; kind = second; REFENCE
#ifdef BROKEN_SECOND_MARK_ONLY_OF_THE_UNCONFIRMED
                :: kind != birth
#elif defined(BROKEN_URL_JUDGED_AT_THE_END)
                :: kind == grace && !put_over -> mark = marked; kind = second; REFENCE
                :: kind == second || (kind == grace && put_over)
#else
                :: kind == grace && url_open -> mark = marked; kind = second; REFENCE
                :: kind == second || (kind == grace && !url_open)
#endif
                fi;
#endif
                if
                :: status == deleted && unconfirmed -> status = purged; refund(0, reserved)
                :: status == deleted && !unconfirmed -> status = purged; refund(0, used)
#ifdef BROKEN_REFUND_WITHOUT_LEDGER
                :: status == expired -> refund(0, reserved)
#endif
                :: else /* expired, and refunded then */
                fi;
                COMMITTED
            :: else /* an old fence */
            fi
        }
    fi;
    goto again
} /* unreached: a sweeper never ends */

proctype late()
{
end:
    do
    :: atomic { sent && there -> carry_out() }
    od
} /* unreached: a request may act for ever */

/* ---- somebody else of the same tenant: its upload, its purge ---- */

proctype other()
{
#ifdef BROKEN_RESERVE_IN_TWO
    atomic { used + reserved < LIMIT }
    atomic { R[1] = 1; reserved++; COMMITTED }
#else
end_refused:
    atomic { used + reserved < LIMIT -> R[1] = 1; reserved++; COMMITTED }
#endif
    if
    :: atomic { U[1] = 1; reserved--; used++; COMMITTED }
        atomic { refund(1, used); COMMITTED }
    :: atomic { refund(1, reserved); COMMITTED }
    fi
}

init { atomic { run client(); run confirmer(); run confirmer(); run user(); run sweeper(1); run sweeper(2); run late(); run other() } }
