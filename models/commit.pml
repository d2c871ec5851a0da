/* SPDX-License-Identifier: Apache-2.0 */
/* commit.pml - a transaction over two files, one of which takes the place of a third by id, the other that of a fourth by name.
 *
 * Abstracts: src/core/file/transaction.c (commit_one, abort_one), confirm.c (run_confirm), work.c, sweep.c (rp_files_claimed),
 * catalog/file/file.c (rp_files_living, and the unique index file_live).
 * The rows that a commit decides on (transaction, members, their marks, what they replace) are locked as they are read, so deciding and writing is one step.
 * Who holds a name is looked up by a statement before it: nobody can lock a row that is not there, and what was found is locked until the end. A
 * second one under the name then breaks the unique index: the whole transaction is rolled back and run again.
 *
 * TXN-ATOMIC  both members appear in one step, and only if the transaction is committed; of an aborted one none ever appears
 * NO-LOSS     what appears has its bytes, and they are not erased while it lives or waits
 * REPLACED    (X2) at the commit what is replaced is marked, if it still lived; never twice
 * ONE-LIVE    (F3) one live file a name
 *
 * Two commits at once, an abort, the time-out, the members' marks coming due, a sweeper that may die anywhere, deletes and restores by others.
 *
 * check: model commit
 * check: twin  TXN_ATOMIC -DBROKEN_COMMIT_IN_TWO
 * check: twin  TXN_ATOMIC -DBROKEN_CLAIMED_MEMBERS_SKIPPED
 * check: twin  TXN_ATOMIC -DBROKEN_OPEN_AS_SEEN
 * check: twin  NO_LOSS    -DBROKEN_MEMBERS_NOT_LOOKED_AT
 * check: twin  REPLACED   -DBROKEN_REPLACED_AS_SEEN
 * check: twin  ONE_LIVE   -DBROKEN_NAME_NOT_UNIQUE
 */
bit TXN_ATOMIC, NO_LOSS, REPLACED, ONE_LIVE; /* always 0: they name what is asserted */
#define MUST(name, condition) assert((condition) || name)

mtype = { open, committed, aborted };
mtype = { pending, live, deleted, expired, purged };
mtype = { none, marked, purging };

mtype txn = open;
bit over; /* its time is; the marks of its members are due from then on, or later */
bit due;

mtype member[2]; /* status */
mtype mark[2];   /* of the member */
bit there[2];
bit appeared[2]; /* was live once */
bit given_up;    /* an abort was answered with "aborted" */

mtype old = live; /* what member 1 replaces by id */
byte old_marks;   /* its active marks */

mtype other = pending; /* has the name of member 0 */
bit other_locked, member_locked;

#define COMMITTED                                                                                                       \
    MUST(TXN_ATOMIC, appeared[0] == appeared[1]);                                                                       \
    MUST(TXN_ATOMIC, appeared[0] == (txn == committed));                                                                \
    MUST(TXN_ATOMIC, !given_up || !appeared[0]);                                                                        \
    MUST(ONE_LIVE, member[0] != live || other != live);                                                                 \
    MUST(REPLACED, old_marks <= 1)

#define READY(i) (member[i] == pending && mark[i] == marked && seen[i])

inline appear(i)
{
    member[i] = live;
    mark[i] = none;
    appeared[i] = 1;
    MUST(NO_LOSS, there[i])
}

inline replace_old()
{
    if
#ifdef BROKEN_REPLACED_AS_SEEN
    :: old_lived -> old = deleted; old_marks++
#else
    :: old == live -> old = deleted; old_marks++
#endif
    :: else
    fi;
    MUST(REPLACED, old != live)
}

proctype committer()
{
    bit seen[2], holds;
#ifdef BROKEN_OPEN_AS_SEEN
    bit was_open;
#endif
#ifdef BROKEN_REPLACED_AS_SEEN
    bit old_lived;
#endif
#ifdef BROKEN_MEMBERS_NOT_LOOKED_AT
    atomic { seen[0] = 1; seen[1] = 1 }
#else
    atomic { seen[0] = there[0] } /* HEAD */
    atomic { seen[1] = there[1] } /* HEAD */
#endif
#ifdef BROKEN_OPEN_AS_SEEN
    atomic { was_open = (txn == open && !over) }
#endif
#ifdef BROKEN_REPLACED_AS_SEEN
    atomic { old_lived = (old == live) }
#endif
again:
    atomic { /* who holds the name? */
        if
        :: other == live && !other_locked -> holds = 1; other_locked = 1
        :: other != live -> holds = 0
        fi
    }
    atomic {
        if
        :: txn == committed -> skip /* the same answer again */
#ifdef BROKEN_OPEN_AS_SEEN
        :: txn != committed && !(was_open && READY(0) && READY(1)) -> skip
        :: txn != committed && was_open && READY(0) && READY(1) ->
#elif defined(BROKEN_CLAIMED_MEMBERS_SKIPPED)
        :: txn != committed && !(txn == open && !over && (READY(0) || READY(1))) -> skip
        :: txn == open && !over && !READY(0) && READY(1) -> txn = committed; appear(1); COMMITTED
        :: txn == open && !over && READY(0) && !READY(1) -> txn = committed; appear(0); COMMITTED
        :: txn == open && !over && READY(0) && READY(1) ->
#else
        :: txn != committed && !(txn == open && !over && READY(0) && READY(1)) -> skip /* refused: nothing changes */
        :: txn == open && !over && READY(0) && READY(1) ->
#endif
            if
#ifndef BROKEN_NAME_NOT_UNIQUE
            :: other == live && !holds -> goto again /* the unique index: rolled back */
            :: other != live || holds ->
#else
            :: true ->
#endif
                if
                :: holds -> other = deleted
                :: else
                fi;
#ifdef BROKEN_COMMIT_IN_TWO
                appear(0);
                COMMITTED;
#else
                txn = committed;
                appear(0);
                appear(1);
                replace_old();
                COMMITTED
#endif
            fi
        fi;
        if
        :: holds -> other_locked = 0; holds = 0
        :: else
        fi;
        seen[0] = 0; seen[1] = 0
    }
}

/* The client goes on uploading; time goes on; somebody gives up. */
proctype world()
{
end:
    do
    :: atomic { !there[0] && member[0] == pending && !over -> there[0] = 1 }
    :: atomic { !there[1] && member[1] == pending && !over -> there[1] = 1 }
    :: atomic { !over -> over = 1 }
    :: atomic { over && !due -> due = 1 } /* the rollback grace, or none */
    :: atomic { txn == open -> txn = aborted; given_up = 1; COMMITTED }
    od
} /* unreached: the world goes on */

/* A sweeper of one member's mark. The mark's row is locked by a commit only within its one step. */
proctype sweeper(byte i)
{
    do
    :: atomic { mark[i] == marked && due -> mark[i] = purging; member[i] = expired; COMMITTED }
    :: atomic { mark[i] == purging -> /* taken over as often as one dies; a delete acts when it likes */
            MUST(NO_LOSS, member[i] == expired);
            there[i] = 0
        }
    :: atomic { mark[i] == purging && !there[i] -> mark[i] = none; break }
    :: atomic { member[i] == live -> break }
    od
}

/* Others: they delete and restore what is replaced, and what has appeared. */
proctype people()
{
end:
    do
    :: atomic { old == live -> old = deleted; old_marks++; COMMITTED }
    :: atomic { old == deleted && old_marks > 0 -> old = live; old_marks--; COMMITTED } /* restore, until it is claimed */
    :: atomic { member[0] == live && !member_locked -> member[0] = deleted; COMMITTED }
    od
} /* unreached: people go on for ever */

/* An upload under the name of member 0, confirmed at any moment. */
proctype confirmer()
{
    bit holds;
again:
    atomic {
        if
        :: member[0] == live -> holds = 1; member_locked = 1
        :: else -> holds = 0
        fi
    }
    atomic {
        if
#ifdef BROKEN_NAME_NOT_UNIQUE
        :: true ->
#else
        :: member[0] == live && !holds -> goto again /* the unique index: rolled back */
        :: member[0] != live || holds ->
#endif
            if
            :: holds -> member[0] = deleted; member_locked = 0
            :: else
            fi;
            other = live;
            COMMITTED
        fi
    }
}

init
{
    atomic {
        member[0] = pending; member[1] = pending; mark[0] = marked; mark[1] = marked;
        run committer(); run committer(); run world(); run sweeper(0); run sweeper(1); run people(); run confirmer()
    }
}
