/* SPDX-License-Identifier: Apache-2.0 */
/* mark.pml - one key, its marks, two sweepers, a user, and deletes that take effect whenever they like.
 *
 * Abstracts: src/core/purge (claim_tx, check_tx, rp_purge_erase, rp_purge_judge, finish_tx), reprieve.c (transact), mark.c
 * (rp_mark_decide), dead.c, catalog/mark/mark.c (mark_claim, mark_move).
 * Every atomic { } is one transaction of the catalog or one call of the store; between two of them anything may happen.
 *
 * NO-LOSS       bytes vanish only if a mark of that upload was committed as `purging`
 * INTENT-FIRST  no delete is sent before that
 * RESTORE-WINS  what was restored, with an answer, does not vanish until it is marked again
 * NEWER-WINS    a delete for one upload takes no newer one along
 * EVENTUAL      purged means gone; and once faults stop, every mark ends or waits as a dead letter
 *
 * Leases end at any moment, also under a worker that is at work. A request that was sent may take effect at any later time, any number of
 * times, whether anybody waits for it or not. A worker may die between any two steps, a delete may go unanswered, a person may mark and restore,
 * all of it any number of times; for EVENTUAL alone they are counted, so that they stop. Not here: time (a mark is due at once), holds (fence.pml),
 * the guard's window.
 *
 * mark_move compares id, fence and state with what was read. Every claim, restore and new mark changes id or fence, so what a worker read is still so
 * until the next of these: that is `mine`. fence.pml has the numbers.
 *
 * check: model   exact         -DLEVEL=EXACT
 * check: model   version       -DLEVEL=VERSION
 * check: model   etag          -DLEVEL=ETAG
 * check: model   quarantine    -DLEVEL=VERSION -DQUARANTINE
 * check: ltl     eventual      -DLEVEL=VERSION -DLIVENESS
 * check: twin    INTENT_FIRST  -DLEVEL=EXACT   -DBROKEN_DELETE_BEFORE_INTENT
 * check: twin    INTENT_FIRST  -DLEVEL=EXACT   -DBROKEN_ERASE_FROM_CHECKING
 * check: twin    RESTORE_WINS  -DLEVEL=EXACT   -DBROKEN_RESTORE_AFTER_CLAIM
 * check: twin    RESTORE_WINS  -DLEVEL=EXACT   -DBROKEN_CLAIM_WITHOUT_COMPARING
 * check: twin    NEWER_WINS    -DLEVEL=VERSION -DBROKEN_DELETE_BY_KEY
 * check: twin    EVENTUAL      -DLEVEL=EXACT   -DBROKEN_UNKNOWN_IS_DONE
 * check: ltltwin eventual      -DLEVEL=VERSION -DLIVENESS -DBROKEN_LEASE_FOR_EVER
 * What a level does not give, and the design says so: this must be lost; and where that is accepted, nothing else is.
 * check: twin    NEWER_WINS    -DLEVEL=WINDOW
 * check: model   window        -DLEVEL=WINDOW  -DACCEPTED
 * check: twin    NEWER_WINS    -DLEVEL=ETAG    -DSAME_BYTES
 * A copy that is returned from quarantine stands under its old key. Where the delete of the first object does not name more than key and etag (buckets
 * without versions) and is still on its way, it meets the copy; a version, or the inode of a directory's file, tells the two apart.
 * check: twin    RESTORE_WINS  -DLEVEL=EXACT   -DQUARANTINE
 * check: twin    RESTORE_WINS  -DLEVEL=ETAG    -DQUARANTINE
 * check: model   quarantine    -DLEVEL=EXACT   -DQUARANTINE -DDIRECTORY
 * Of a dead letter that was given up a delete may still be on its way. Who marks what was left of it, and restores it, can lose it yet.
 * check: twin    RESTORE_WINS  -DLEVEL=EXACT   -DGIVEN_UP
 */
#define EXACT   1 /* nobody uses a key twice */
#define VERSION 2 /* the delete names a version, and takes the older ones along */
#define ETAG    3 /* If-Match that was seen to work */
#define WINDOW  4 /* looked at, then deleted by key */

#define UPLOADS 2

bit NO_LOSS, INTENT_FIRST, RESTORE_WINS, NEWER_WINS, EVENTUAL; /* always 0: they name what is asserted */
#define MUST(name, condition) assert((condition) || name)

#ifdef LIVENESS
byte commands = 2, crashes = 1, early = 1, unknowns = 1, asks = 1;
#define MAY(fault)   (fault > 0)
#define SPEND(fault) fault--
#else
#define MAY(fault)   true
#define SPEND(fault) skip
#endif

/* ---- the catalog: the key's last mark ---- */

mtype = { none, marked, checking, purging, purged, reprieved, dead, lost };
mtype state = none;
byte ident; /* the upload that the mark names */
bit checks; /* it has a guard */
bit mine[3]; /* what this worker read is still so */
#ifdef BROKEN_LEASE_FOR_EVER
bit leased;
#endif
#ifdef QUARANTINE
bit aside; /* the mark ended as moved aside; its copy waits under a mark of its own */
#endif

#define ACTIVE      (state == marked || state == checking || state == purging || state == dead)
#define REFENCE     mine[1] = 0; mine[2] = 0

/* ---- the store ---- */

bit there[UPLOADS + 1]; /* index: number of the upload; 0 is none */
bit sent[UPLOADS + 1];  /* a delete for this upload was sent, and may act from now on */
byte newest;

#if defined(SAME_BYTES) || (defined(QUARANTINE) && LEVEL != VERSION && !defined(DIRECTORY))
#define SAME(a, b) true /* the second has the bytes of the first */
#else
#define SAME(a, b) ((a) == (b))
#endif

/* ---- what was said to people ---- */

bit doomed[UPLOADS + 1];   /* a mark of this upload was committed as purging */
bit restored[UPLOADS + 1]; /* was answered with "restored", and not marked since */

inline put()
{
    newest++;
#if LEVEL == ETAG || LEVEL == WINDOW
    there[newest - 1] = 0; /* overwritten, as the user wished */
#endif
    there[newest] = 1
}

inline vanish(u, d)
{
    if
#ifdef ACCEPTED
    :: there[u] && u > d -> there[u] = 0; doomed[u] = 1; restored[u] = 0
    :: there[u] && u <= d ->
#else
    :: there[u] ->
#endif
        MUST(RESTORE_WINS, !restored[u]);
        MUST(NEWER_WINS, u <= d);
        MUST(NO_LOSS, doomed[u] || u < d); /* older ones under the key were overwritten by their owner */
        there[u] = 0
    :: else
    fi
}

/* The store carries out a delete that names upload d. */
inline carry_out(d)
{
#if defined(BROKEN_DELETE_BY_KEY) || LEVEL == WINDOW
    vanish(newest, d)
#elif LEVEL == VERSION
    vanish(d, d);
#ifndef QUARANTINE
    if
    :: d > 1 -> vanish(1, d)
    :: else
    fi
#endif
    skip
#elif LEVEL == ETAG || (defined(QUARANTINE) && !defined(DIRECTORY))
    if
    :: SAME(newest, d) -> vanish(newest, d)
    :: else
    fi
#else
    vanish(d, d)
#endif
}

/* ---- sweeper ---- */

#ifdef BROKEN_LEASE_FOR_EVER
#define LEASE_IS_OVER (!leased)
#elif defined(LIVENESS)
#define LEASE_IS_OVER ((!mine[1] && !mine[2]) || early > 0)
#else
#define LEASE_IS_OVER true
#endif

/* mark_claim: marked becomes checking or purging; what is claimed already is taken over as it stands. */
inline claim()
{
    if
    :: state == marked && checks -> state = checking
    :: state == marked && !checks -> state = purging; doomed[ident] = 1
    :: state != marked ->
#ifdef LIVENESS
        if
        :: mine[1] || mine[2] -> early--
        :: else
        fi
#endif
        skip
    fi;
    REFENCE;
    mine[me] = 1;
#ifdef BROKEN_LEASE_FOR_EVER
    leased = 1;
#endif
    what = ident;
    asked = state == checking
}

inline give_back()
{
    mine[me] = 0;
#ifdef BROKEN_LEASE_FOR_EVER
    leased = 0;
#endif
    skip
}

proctype sweeper(byte me)
{
    byte what; /* the upload that the claimed mark names */
    bit asked, known;
again: /* also after a death: what it knew is lost, its lease ends by itself */
    atomic { mine[me] = 0; what = 0; asked = 0; known = 0 }
end_idle:
#ifdef BROKEN_DELETE_BEFORE_INTENT
    atomic { state == marked -> what = ident; sent[what] = 1; MUST(INTENT_FIRST, doomed[what]) }
#endif
#ifdef BROKEN_CLAIM_WITHOUT_COMPARING
    atomic { state == marked && !checks -> what = ident }
    atomic { state = purging; doomed[what] = 1; REFENCE; mine[me] = 1; asked = 0 }
#else
    atomic { state == marked || ((state == checking || state == purging) && LEASE_IS_OVER) -> claim() }
#endif
    if
    :: asked ->
#ifdef BROKEN_ERASE_FROM_CHECKING
        goto erase;
#endif
        atomic { /* check_tx, after the guard has answered */
            if
            :: state == checking && mine[me] -> state = purging; doomed[ident] = 1
            :: state == checking && mine[me] && MAY(asks) -> SPEND(asks); state = marked; give_back(); goto again
            :: !(state == checking && mine[me]) -> goto again /* somebody else's by now: skipped */
            :: MAY(crashes) -> SPEND(crashes); goto again
            fi
        }
    :: else
    fi;
erase:
    atomic {
        if
        :: true
        :: MAY(crashes) -> SPEND(crashes); goto again
        fi;
#if LEVEL == WINDOW
        if
        :: there[what]
        :: else -> known = 1; goto finish
        fi /* what was looked at is what was marked, and now: */
    }
    atomic {
#endif
        MUST(INTENT_FIRST, doomed[what]);
        sent[what] = 1
    }
    atomic {
        if
        :: carry_out(what); known = 1
        :: MAY(unknowns) -> SPEND(unknowns); known = 0 /* no answer; it may act yet */
        :: MAY(crashes) -> SPEND(crashes); goto again
        fi
    }
finish:
    atomic {
        if
        :: true
        :: MAY(crashes) -> SPEND(crashes); goto again
        fi;
        if
        :: state == purging && mine[me] ->
            if
#ifdef BROKEN_UNKNOWN_IS_DONE
            :: true ->
#else
            :: known ->
#endif
                MUST(EVENTUAL, !there[what]);
                state = purged;
#ifdef QUARANTINE
                aside = 1;
#endif
                skip
            :: !known -> skip         /* stays purging: tried again later */
            :: !known -> state = dead /* its attempts are used up */
            fi;
            give_back()
        :: else -> skip /* an old fence changes nothing */
        fi
    }
    goto again
} /* unreached: a sweeper never ends */

/* A request that nobody waits for any more. */
proctype late()
{
    byte which;
end:
    do
    :: atomic {
            if
            :: sent[1] && (there[1] || there[newest]) -> which = 1
            :: sent[2] && there[2] -> which = 2
            fi;
            carry_out(which);
            which = 0
        }
    od
} /* unreached: a request may act for ever */

/* ---- people ---- */

inline make_mark(u)
{
    REFENCE; /* another id: nobody has read this one */
    ident = u;
    restored[u] = 0;
#if LEVEL != EXACT
    restored[1] = 0; /* it goes with the key that is marked */
#endif
#ifdef QUARANTINE
    aside = 0;
#endif
    state = marked;
    if
    :: checks = 0
    :: checks = 1
    fi
}

proctype user()
{
    byte seen;
end:
    do
    :: atomic { MAY(commands) && there[newest] -> SPEND(commands); seen = newest } /* mark: looks at the object, */
        atomic { /* then decides */
            if
            :: !ACTIVE -> make_mark(seen)
#if LEVEL != EXACT && !defined(QUARANTINE)
            :: state == marked && !SAME(ident, seen) -> make_mark(seen) /* the older mark ends as superseded */
#endif
            :: else -> skip /* the same mark, or refused */
            fi;
            seen = 0
        }
    :: atomic { MAY(commands) -> SPEND(commands); /* restore */
            if
            :: state == marked ->
                REFENCE;
                state = reprieved;
                MUST(NO_LOSS, there[ident] || newest > ident || doomed[ident]);
                restored[ident] = 1
#ifdef BROKEN_RESTORE_AFTER_CLAIM
            :: state == purging && there[ident] -> REFENCE; state = reprieved; restored[ident] = 1
#endif
#ifdef QUARANTINE
            :: state == purged && aside && newest < UPLOADS && !there[newest] -> /* never over something that stands there */
                put();
                aside = 0;
                restored[newest] = 1
#endif
            :: else -> skip /* too late, or nothing to restore */
            fi
        }
    :: atomic { MAY(commands) && state == dead -> SPEND(commands); REFENCE; state = purging } /* a dead letter is retried, */
#ifdef GIVEN_UP
    :: atomic { state == dead -> REFENCE; state = lost } /* or given up */
#endif
    od
} /* unreached: people go on for ever */

#ifndef QUARANTINE
/* A second person, who uploads while the first one marks. */
proctype uploader()
{
end:
    atomic { newest < UPLOADS -> put() }
}
#endif

init
{
    atomic {
        put();
        run sweeper(1); run sweeper(2); run late(); run user()
#ifndef QUARANTINE
        ; run uploader()
#endif
    }
}

#ifdef LIVENESS
ltl eventual { <>[] (state != marked && state != checking && state != purging) }
#endif
