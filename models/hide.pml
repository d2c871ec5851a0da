/* SPDX-License-Identifier: Apache-2.0 */
/* hide.pml - quarantine in place: one key of a bucket that keeps versions, a worker that hides what was marked under a delete
 * marker, users beside it, a return, and the end of the quarantine.
 *
 * Abstracts: src/store/s3/hide.c (rp_s3_hide, rp_s3_show), core/purge/store.c (leave_shown, rp_purge_erase), reprieve.c (the return).
 * Every atomic { } is one request that the server carries out, or one transaction of the catalog; between two of them anything may happen.
 *
 * The marked upload is 1. A DELETE without a version names nothing: it puts a marker on whatever lies on top when it arrives. A
 * request that was sent may act at any later time, while its mark is still being worked on. The worker may die between any two steps;
 * its next attempt knows only that an earlier one may have sent something, and which uploads are newer than the mark's time.
 *
 * HIDDEN        "moved to quarantine" is said only of what lies there and does not show itself
 * NEWER_WINS    once the mark has ended, none of our markers lies on a newer upload
 * USERS_MARKER  a marker that a user has put on a newer upload is not removed
 * RESTORE_WINS  "returned" is said only when the key shows it; and what shows itself when its time is over is not erased
 * EVENTUAL      what the end of the quarantine has left, for it showed itself, is not hidden by us any more: no mark is left of it
 *
 * check: model   answers                 -DACCEPTED
 * check: model   one_marker_at_a_time    -DACCEPTED -DONE_MARKER
 * check: twin    NEWER_WINS    -DACCEPTED -DBROKEN_NO_LOOK_AFTER
 * check: twin    NEWER_WINS    -DACCEPTED -DBROKEN_LATE_MARKER_STAYS
 * check: twin    HIDDEN        -DACCEPTED -DBROKEN_UNKNOWN_IS_DONE
 * check: twin    USERS_MARKER  -DACCEPTED -DBROKEN_ANY_MARKER_IS_OURS
 * check: twin    USERS_MARKER  -DACCEPTED -DONE_MARKER -DBROKEN_ANSWER_NOT_READ
 * check: twin    RESTORE_WINS  -DACCEPTED -DBROKEN_SHOWN_BELOW_NEWER
 * check: twin    RESTORE_WINS  -DACCEPTED -DBROKEN_ERASED_WITHOUT_A_LOOK
 * check: twin    EVENTUAL      -DACCEPTED -DBROKEN_TAKEN_AWAY_AFTER_THE_CLAIM
 * What a DELETE that names nothing cannot give: one without an answer may come down on a newer upload after the last look, and a user's
 * only marker may be taken for it.
 * check: twin    NEWER_WINS
 */
#define ROOM 7          /* uploads and markers on the key */
#define UPLOADS 2
#define OURS 10         /* a marker; a number is an upload */
#define USERS 11

bit HIDDEN, NEWER_WINS, USERS_MARKER, RESTORE_WINS, EVENTUAL; /* always 0: they name what is asserted */
#define MUST(name, condition) assert((condition) || name)

/* ---- the bucket ---- */

byte pile[ROOM]; /* the versions of the key, oldest first */
byte height, uploads;
byte top;        /* of the pile: what the key shows, if it is an upload */
byte waiting;    /* DELETEs of ours that were sent and have not acted */
bit there = 1;   /* upload 1 */

inline add(what)
{
    pile[height] = what;
    height++;
    top = what
}

/* ONE_MARKER: Ceph makes none on another one. */
inline cover(by)
{
#ifdef ONE_MARKER
    if
    :: top < OURS -> add(by)
    :: else
    fi
#else
    add(by)
#endif
}

inline uncover_top()
{
    height--;
    pile[height] = 0;
    top = pile[height - 1]
}

#define COVERS  ((top >= OURS) + (top >= OURS && pile[height - 2] >= OURS)) /* 2: two or more */
#define NEWER   (uploads > 1)
#define SINGLE  (COVERS == 1)

/* ---- the catalog ---- */

mtype = { purging, moved, changed, returned, erasing, erased, left };
mtype state = purging;

/* ---- the worker ---- */

bit sent_before; /* an earlier attempt may have sent a DELETE */
bit unsure;      /* nobody heard what one of ours has made */

/* The single marker on something newer. `heard`: the answer has named ours, or said that none was made. */
#ifdef BROKEN_ANY_MARKER_IS_OURS
#define TAKEN_FOR_OURS true
#elif defined(BROKEN_LATE_MARKER_STAYS)
#define TAKEN_FOR_OURS ((heard && top == OURS) || (sent && !heard))
#elif defined(BROKEN_ANSWER_NOT_READ)
#define TAKEN_FOR_OURS (sent || sent_before)
#else
#define TAKEN_FOR_OURS ((heard && top == OURS) || (sent && !heard) || sent_before)
#endif

inline look()
{
    if
    :: NEWER && SINGLE && TAKEN_FOR_OURS ->
        MUST(USERS_MARKER, top == OURS || unsure);
        uncover_top();
        seen = changed
    :: NEWER && !(SINGLE && TAKEN_FOR_OURS) -> seen = changed
    :: !NEWER && COVERS > 0 -> seen = moved
    :: !NEWER && COVERS == 0 -> seen = purging /* it shows itself */
    fi
#ifdef BROKEN_UNKNOWN_IS_DONE
    ;
    seen = (seen == purging && sent && !heard -> moved : seen)
#endif
}

inline end_mark()
{
    MUST(HIDDEN, seen != moved || top != 1);
    state = seen
}

/* ACCEPTED: nothing of ours acts after the last look. */
#ifdef ACCEPTED
#define AND_END if :: seen != purging -> end_mark() :: else fi
#else
#define AND_END skip
#endif

proctype worker()
{
    mtype seen;
    bit sent, heard;
again: /* also after a death, and when an attempt has failed */
    atomic { sent = 0; heard = 0; seen = purging; look(); AND_END }
    if
    :: seen != purging -> goto end_over
    :: else
    fi;
end_full: /* enough was tried */
    atomic {
        height < ROOM - 1;
        sent = 1;
        if
        :: true -> cover(OURS); heard = 1 /* it acts, and the answer names the marker, or none */
        :: true -> cover(OURS); unsure = 1 /* it acts, and the answer is lost */
        :: waiting == 0 -> waiting++; unsure = 1 /* it may act yet */
        fi
    }
    if
    :: true
    :: atomic { sent_before = 1; unsure = 1; goto again } /* it dies */
    fi;
#ifdef BROKEN_NO_LOOK_AFTER
    atomic { seen = (heard -> moved : purging); AND_END }
#else
    atomic { look(); AND_END }
#endif
    if
    :: atomic { seen == purging -> sent_before = 1; unsure = 1; goto again } /* tried again later */
    :: else
    fi;
end_over:
#ifdef ACCEPTED
    skip
#else
    atomic { state == purging -> end_mark() }
#endif
}

proctype late()
{
end:
    do
#ifdef ACCEPTED
    :: atomic { waiting > 0 && state == purging && height < ROOM - 1 -> waiting--; cover(OURS) }
#else
    :: atomic { waiting > 0 && height < ROOM - 1 -> waiting--; cover(OURS) }
#endif
    od
} /* unreached: a request may act for ever */

/* ---- people ---- */

proctype user()
{
    byte deletes;
end:
    do
    :: atomic { uploads < UPLOADS && height < ROOM - 1 -> uploads++; add(uploads) }
    :: atomic { deletes < 2 && height < ROOM - 1 -> deletes++; cover(USERS) }
    :: atomic { state == moved && top >= OURS -> uncover_top() } /* by hand */
    od
} /* unreached: people go on for ever */

/* A restore: prepare shows the object, then the catalog decides. */
proctype restorer()
{
    bit shown;
end:
    state == moved;
again:
    atomic { /* looks, and removes one marker */
        if
#ifndef BROKEN_SHOWN_BELOW_NEWER
        :: NEWER -> goto end /* refused */
        :: !NEWER && COVERS > 0 && there -> uncover_top()
        :: !NEWER && COVERS == 0 -> shown = top == 1; goto decide
#else
        :: COVERS > 0 && there -> uncover_top()
        :: COVERS == 0 -> shown = top == 1; goto decide
#endif
        :: !there -> goto end
        fi
    }
    goto again;
decide:
    atomic {
        if
        :: state == moved -> MUST(RESTORE_WINS, shown); state = returned
        :: state != moved -> /* too late: left to the sweep */
#ifdef BROKEN_TAKEN_AWAY_AFTER_THE_CLAIM
            if
            :: top == 1 && height < ROOM - 1 -> add(OURS); MUST(EVENTUAL, state != left)
            :: else
            fi;
#endif
            skip
        fi
    }
}

/* The end of the quarantine. */
proctype eraser()
{
end:
    atomic { state == moved -> state = erasing }
    atomic {
        if
#ifndef BROKEN_ERASED_WITHOUT_A_LOOK
        :: top == 1 -> state = left /* somebody has shown it again */
        :: top != 1 ->
#else
        :: true ->
#endif
            MUST(RESTORE_WINS, top != 1);
            there = 0;
            state = erased
        fi
    }
}

/* Whenever the mark has ended. */
proctype observer()
{
end:
    atomic { state != purging -> MUST(NEWER_WINS, !(top == OURS && pile[height - 2] > 1 && pile[height - 2] < OURS)) }
}

init
{
    atomic {
        uploads = 1;
        add(1);
        run worker(); run late(); run user(); run restorer(); run eraser(); run observer()
    }
}
