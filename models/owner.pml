/* SPDX-License-Identifier: Apache-2.0 */
/* owner.pml - one store, its owner record, a catalog, and a copy of that catalog made at any moment: a clone, or a backup put back.
 *
 * Abstracts: src/core/owner.c (rp_owner_look: the record, then the catalog; rp_owner_assert: raise_tx, then write_record), sweeper.c
 * (rp_sweeper_may_purge before a pass), sweep.c. The record is written over whatever stands there, as the code does.
 *
 * OWNED         a catalog whose look comes after the other one has asserted itself, from its look to its record, purges nothing; the two never look at
 *               the same time
 * EVENTUAL      as long as there is no copy, no look of the catalog's own nodes finds it behind
 * RESTORE-WINS  (of these two catalogs) what was restored in the first is not erased by the copy
 *
 * check: model owner
 * check: model nodes         -DNODES=2 -DNO_COPY -DCRASHES=0
 * check: twin  OWNED         -DBROKEN_EPOCH_NOT_RAISED
 * check: twin  OWNED         -DBROKEN_LOOK_SKIPPED
 * check: twin  EVENTUAL      -DBROKEN_STORE_FIRST -DNO_COPY
 * check: twin  EVENTUAL      -DBROKEN_CATALOG_READ_FIRST -DNODES=2 -DNO_COPY
 * What an epoch cannot show, being a number without a name:
 *   until the first catalog raises its epoch again, a copy that looks is not behind, and what was restored since is due in it;
 * check: twin  RESTORE_WINS  -DCOPY_LOOKS_FIRST
 *   two catalogs that look before either has written both go on, until the next raise of one;
 * check: twin  OWNED         -DAT_THE_SAME_TIME
 *   a copy that died between its raise and its record is as far as the first one, or further, and goes on after the first has written;
 * check: twin  OWNED         -DCRASHES=1
 *   of two nodes that raise at once the earlier may write last, and the record goes back.
 * check: twin  OWNED         -DNODES=2
 */
bit OWNED, EVENTUAL, RESTORE_WINS; /* always 0: they name what is asserted */
#define MUST(name, condition) assert((condition) || name)

#ifndef NODES
#define NODES 1 /* of the first catalog; the copy has one */
#endif
#define MOST 4 /* epochs */

/* ---- two catalogs and the store ---- */

byte epoch[2]; /* 0: the first catalog, 1: the copy */
mtype = { none, marked, purging, reprieved };
mtype mark[2];
bit copied;
byte record; /* the epoch of the owner record */
bit there = 1;
bit restored;

/* ---- not in the code: who has asserted itself while the other did not ---- */

byte inside[2]; /* nodes between their look and their record */
bit stopped[2]; /* the other one has asserted itself: a look from now on must find that */

#ifdef AT_THE_SAME_TIME
#define ALONE true
#else
#define ALONE (inside[1 - c] == 0)
#endif

inline enter()
{
    inside[c]++;
    too_late = stopped[c];
    after = copied
}

proctype node(byte c)
{
    byte seen, mine;
    bit too_late, after;
again:
    atomic { seen = 0; mine = 0; too_late = 0; after = 0 }
end_over:
#ifdef BROKEN_CATALOG_READ_FIRST
    atomic { epoch[c] > 0 && epoch[c] < MOST && ALONE -> mine = epoch[c]; enter() }
    atomic { seen = record }
#else
    atomic { epoch[c] > 0 && epoch[c] < MOST && ALONE -> seen = record; enter() }
    atomic { mine = epoch[c] }
#endif
#ifndef BROKEN_LOOK_SKIPPED
    atomic {
        if
        :: seen > mine -> /* RP_ENOTOWNER, until somebody runs recover */
            MUST(EVENTUAL, copied);
            inside[c]--; /* unreached: as long as there is no copy */
            goto refused
        :: else
        fi
    }
#endif
#ifdef BROKEN_STORE_FIRST
    atomic { record = mine + 1 }
    if
    :: atomic { inside[c]--; goto again }
    :: atomic { epoch[c]++; inside[c]-- }
    fi;
#else
#ifndef BROKEN_EPOCH_NOT_RAISED
    atomic { epoch[c]++; mine = epoch[c] }
#endif
    if
#ifdef CRASHES /* in which of the two catalogs */
    :: atomic { c == CRASHES -> inside[c]--; goto again }
#endif
    :: atomic {
            record = mine;
#ifndef NO_COPY
            if
            :: after -> stopped[1 - c] = 1
            :: else
            fi;
#endif
            inside[c]--
        }
    fi;
#endif
    /* the pass: what is due in this catalog */
    if
    :: atomic { mark[c] == marked || mark[c] == purging -> mark[c] = purging }
        atomic {
            MUST(OWNED, !too_late);
#ifdef COPY_LOOKS_FIRST
            MUST(RESTORE_WINS, !restored);
#endif
            there = 0
        }
    :: true /* nothing is due yet */
    fi;
    goto again;
refused:
    skip
} /* unreached: as long as there is no copy */

#ifndef NO_COPY
proctype copier()
{
    atomic { epoch[1] = epoch[0]; mark[1] = mark[0]; copied = 1 }
}
#endif

/* People talk to the first catalog. */
proctype user()
{
end:
    do
    :: atomic { mark[0] == none -> mark[0] = marked; restored = 0 }
    :: atomic { mark[0] == marked -> mark[0] = none; restored = 1 }
    od
} /* unreached: people go on for ever */

init
{
    atomic {
        epoch[0] = 1; record = 1; mark[0] = none; mark[1] = none;
        run node(0); run user();
#if NODES == 2
        run node(0);
#endif
#ifndef NO_COPY
        run node(1); run copier()
#endif
    }
}
