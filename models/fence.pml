/* SPDX-License-Identifier: Apache-2.0 */
/* fence.pml - one mark, two workers with fences in numbers, and a person who places and lifts a hold.
 *
 * Abstracts: src/catalog/mark/mark.c (rp_marks_claim: hold_epoch_share, then mark_claim; rp_marks_move), src/core/hold.c (place_tx), catalog/mark/hold.c
 * (rp_hold_add), core/purge, dead.c (retry).
 * PostgreSQL runs the claim and the placing of a hold in READ COMMITTED: each statement sees what was committed when it began. So here each of their statements is
 * a step of its own, what a transaction writes shows to others when it commits, and the lock of the row hold_epoch (shared by claims, exclusive for a hold) is
 * kept until then. On SQLite a transaction is one step, which is among these.
 *
 * FENCED  whoever changes the mark is the one who claimed it last; an old fence changes nothing
 * HELD    (NO-LOSS) once a hold is acknowledged, nothing is claimed until it is lifted, and nothing is erased that its answer did not list, or that was
 *         a dead letter then
 *
 * A worker may die between any two steps and leases end at any moment, as long as fences last (MOST).
 *
 * check: model fencing
 * check: twin  FENCED -DBROKEN_FINISH_WITHOUT_FENCE
 * check: twin  FENCED -DBROKEN_TAKEOVER_KEEPS_THE_FENCE
 * check: twin  HELD   -DBROKEN_HOLD_READ_OUTSIDE_THE_CLAIM
 * check: twin  HELD   -DBROKEN_CLAIM_WITHOUT_EPOCH
 * check: twin  HELD   -DBROKEN_LIST_BEFORE_EPOCH
 * A dead letter is past the claim too: a delete of it may be on its way. The answer to a hold does not list it.
 * check: twin  HELD   -DDEAD_LETTERS_COUNT
 */
bit FENCED, HELD; /* always 0: they name what is asserted */
#define MUST(name, condition) assert((condition) || name)

#define MOST 5 /* fences: claims and retries in all */

mtype = { marked, purging, purged, dead };
mtype state = marked;
byte fence;
byte claimed_by; /* not in the catalog: who made the last claim that was committed */

/* ---- holds, and the lock of the row hold_epoch ---- */

bit hold;   /* a hold is committed and not lifted */
bit listed; /* its answer names the mark as past the claim; or it was a dead letter */
byte sharers;
bit exclusive;

#ifdef BROKEN_CLAIM_WITHOUT_EPOCH
#define SHARE   skip
#define UNSHARE skip
#else
#define SHARE   !exclusive -> sharers++
#define UNSHARE sharers--
#endif

proctype worker(byte me)
{
    byte my_fence;
    bit free;
#ifdef BROKEN_HOLD_READ_OUTSIDE_THE_CLAIM
    bit held;
#endif
again:
    my_fence = 0; free = 0;
end_idle:
    /* claim: the epoch's row is locked; then, in the next statement, due marks that no hold covers */
#ifdef BROKEN_HOLD_READ_OUTSIDE_THE_CLAIM
    atomic { state != purged -> held = hold }
#endif
    atomic { state != purged && fence < MOST -> SHARE }
    atomic { /* the look at the holds sees what is committed now; the row is written, and shows with the commit */
        if
#ifdef BROKEN_HOLD_READ_OUTSIDE_THE_CLAIM
        :: !held && (state == marked || state == purging) -> free = 1
#else
        :: !hold && (state == marked || state == purging) -> free = 1
#endif
        :: else -> UNSHARE; goto again
        fi
    }
    atomic { /* commit. The row was locked since the look (FOR UPDATE SKIP LOCKED): two claims of it never overlap */
        if
        :: free && (state == marked || state == purging) && fence < MOST ->
            MUST(HELD, !hold);
#ifdef BROKEN_TAKEOVER_KEEPS_THE_FENCE
            if
            :: state == marked -> fence++
            :: else
            fi;
#else
            fence++;
#endif
            state = purging;
            claimed_by = me;
            my_fence = fence;
            UNSHARE
        :: else -> UNSHARE; goto again
        fi
    }
    if
    :: goto again /* died */
    :: atomic { MUST(HELD, !hold || listed || state == purged) } /* erase: what a hold did not stop, it has listed */
    fi;
    if
    :: goto again /* died */
    :: atomic { /* finish */
            if
#ifdef BROKEN_FINISH_WITHOUT_FENCE
            :: state == purging ->
#else
            :: state == purging && fence == my_fence ->
#endif
                MUST(FENCED, claimed_by == me);
                if
                :: state = purged
                :: state = dead
                :: skip /* tried again later */
                fi
            :: else /* nothing changes */
            fi
        }
    fi;
    goto again
} /* unreached: a worker never ends */

#ifdef DEAD_LETTERS_COUNT
#define PAST_THE_CLAIM (state == purging)
#else
#define PAST_THE_CLAIM (state == purging || state == dead)
#endif

proctype person()
{
    bit sees;
end:
    do
    :: /* place a hold: raise the epoch, add the hold, list what is claimed, commit */
#ifdef BROKEN_LIST_BEFORE_EPOCH
        atomic { !hold -> sees = PAST_THE_CLAIM }
        atomic { sharers == 0 -> exclusive = 1 }
#else
        atomic { !hold && sharers == 0 -> exclusive = 1 }
        atomic { sees = PAST_THE_CLAIM }
#endif
        atomic { hold = 1; listed = sees; exclusive = 0; sees = 0 }
    :: atomic { hold -> hold = 0; listed = 0 }
    :: atomic { state == dead && fence < MOST -> fence++; state = purging; claimed_by = 0 } /* retry of a dead letter */
    od
} /* unreached: people go on for ever */

init { atomic { run worker(1); run worker(2); run person() } }
