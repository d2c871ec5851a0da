/* SPDX-License-Identifier: Apache-2.0 */
/* owner.pml - one store, its owner record, a catalog, and a copy of that catalog made at any moment: a clone, or a backup put back.
 *
 * Abstracts: src/core/owner/owner.c (rp_owner_look: the record, then the catalog; rp_owner_write: raise_tx, then settle_record), stamps.c (the stamps that
 * a catalog knows), core/sweep (rp_sweeper_admit before a pass), core/purge. A node may die after its raise, and a write that nobody answered may act
 * later, any number of times in either catalog. The record is written over the one that was looked at, or not at all; with WEAK over whatever stands there.
 *
 * OWNED         a catalog whose look finds the record of a raise that the other one has made since the copy purges nothing, nor does it write over that record
 * FORWARD       the epoch of the record only grows
 * EVENTUAL      no look of a catalog's own nodes is refused as long as there is no copy; with one, no catalog is refused a record of its own making
 * RESTORE-WINS  (of these two catalogs) what was restored in the first is not erased by the copy
 *
 * check: model owner
 * check: model nodes         -DNODES=2 -DNO_COPY
 * check: model both          -DNODES=2 -DMOST=3
 * check: model weak          -DWEAK
 * check: model weak_nodes    -DWEAK -DNODES=2 -DNO_COPY
 * check: twin  OWNED         -DBROKEN_EPOCH_NOT_RAISED
 * check: twin  OWNED         -DBROKEN_LOOK_SKIPPED
 * check: twin  OWNED         -DBROKEN_STAMP_NOT_COMPARED
 * check: twin  OWNED         -DBROKEN_STAMP_AT_SAME_EPOCH_ONLY
 * check: twin  EVENTUAL      -DBROKEN_STORE_FIRST -DNO_COPY
 * check: twin  EVENTUAL      -DBROKEN_CATALOG_READ_FIRST -DNODES=2 -DNO_COPY
 * check: twin  EVENTUAL      -DBROKEN_LAST_STAMP_ONLY -DNODES=2 -DNO_COPY
 * check: twin  EVENTUAL      -DBROKEN_OLDER_RECORD_REFUSED -DNODES=2 -DNO_COPY
 * What no record can show: until the first catalog has raised its epoch again, a copy that looks finds its own record, and what was restored since is due in it;
 * check: twin  RESTORE_WINS  -DCOPY_LOOKS_FIRST
 * and what a store without conditional writes leaves: a record that another catalog has just written is written over, and an earlier one may come last.
 * check: twin  OWNED         -DWEAK -DWEAK_ASSERTED
 * check: twin  FORWARD       -DWEAK -DWEAK_ASSERTED -DNODES=2 -DNO_COPY
 */
bit OWNED, FORWARD, EVENTUAL, RESTORE_WINS; /* always 0: they name what is asserted */
#define MUST(name, condition) assert((condition) || name)
#ifdef WEAK
#define STANDS(over, over_by) true
#else
#define STANDS(over, over_by) (record == over && record_by == over_by)
#endif
#if defined(WEAK) && !defined(WEAK_ASSERTED)
#define MUST_BUT_WEAK(name, condition) skip
#else
#define MUST_BUT_WEAK(name, condition) MUST(name, condition)
#endif

#ifndef NODES
#define NODES 1 /* of the first catalog; the copy has one */
#endif
#ifndef MOST
#define MOST 4 /* epochs */
#endif
#define FIRST  0 /* catalogs */
#define COPY   1
#define NOBODY 2 /* drew this stamp: a record of the format that had none; or: neither has raised the record since the copy */

/* A catalog raises to a number once, so that the stamp of a raise is the catalog that drew it, and that number. */
#define STAMP(by, number) (1 << ((number) + (by) * (MOST + 1)))
#define BELOW(number)     (((1 << (number)) - 1) * (1 + (1 << (MOST + 1))))

/* ---- two catalogs and the store ---- */

byte epoch[2];
int known[2]; /* stamps of records that may stand there */
byte low[2];  /* the record was seen at this epoch: earlier ones are not known any more */
bit copied;
byte record, record_by = NOBODY;
#ifdef COPY_LOOKS_FIRST
bit marked[2], restored; /* in each catalog; in the first one, since */
#endif

/* A write that was sent, and that nobody waits for any more. */
bit sent;
byte sent_over, sent_over_by, sent_epoch, sent_by;
bit sent_after;

/* ---- not in the code ---- */

byte owner = NOBODY; /* whose raise since the copy stands in the record */

inline look()
{
#ifdef BROKEN_CATALOG_READ_FIRST
    atomic { mine = epoch[c] };
    atomic { own = known[c]; least = low[c] };
#endif
    atomic { seen = record; by = record_by; too_late = (owner == 1 - c) };
#ifndef BROKEN_CATALOG_READ_FIRST
    atomic { mine = epoch[c] };
    atomic { own = known[c]; least = low[c] };
#endif
}

#define KNOWN (by == NOBODY || own == 0 || (own & STAMP(by, seen)))
#if defined(BROKEN_LOOK_SKIPPED)
#define REFUSED false
#elif defined(BROKEN_STAMP_NOT_COMPARED)
#define REFUSED (seen > mine)
#elif defined(BROKEN_STAMP_AT_SAME_EPOCH_ONLY)
#define REFUSED (seen > mine || (seen == mine && !KNOWN))
#elif defined(BROKEN_OLDER_RECORD_REFUSED)
#define REFUSED (seen > mine || !KNOWN)
#else
#define REFUSED (seen > mine || (seen >= least && !KNOWN))
#endif

/* One transaction. What was looked at was found to be ours: what came before it will not be seen again, unless late. */
inline raise()
{
#ifndef BROKEN_EPOCH_NOT_RAISED
    epoch[c]++;
    number = epoch[c];
    after = copied;
#ifdef BROKEN_LAST_STAMP_ONLY
    known[c] = 0;
#endif
    if
    :: by != NOBODY && seen >= low[c] ->
        known[c] = (known[c] & ~BELOW(seen)) | STAMP(by, seen);
        low[c] = seen
    :: else
    fi;
    known[c] = known[c] | STAMP(c, number)
#else
    number = epoch[c];
    after = copied
#endif
}

/* The store acts. */
inline write(new, new_by, new_after)
{
    MUST_BUT_WEAK(OWNED, owner != 1 - new_by);
#ifndef BROKEN_EPOCH_NOT_RAISED
    MUST_BUT_WEAK(FORWARD, new > record);
    record = new;
    record_by = new_by;
#endif
    if
    :: new_after -> owner = new_by
    :: else -> owner = NOBODY
    fi
}


proctype node(byte c)
{
    byte seen, by, mine, least, number;
    int own;
    bit too_late, after;
again:
    atomic { seen = 0; by = 0; mine = 0; own = 0; least = 0; number = 0; too_late = 0; after = 0 }
end_over:
    epoch[c] > 0 && epoch[c] < MOST;
    look();
    atomic {
        if
        :: REFUSED -> goto refused
        :: else
        fi
    }
#ifdef BROKEN_STORE_FIRST
    atomic { record = mine + 1; record_by = c }
    if
    :: goto again
    :: atomic { epoch[c]++; known[c] = known[c] | STAMP(c, epoch[c]) }
    fi;
#else
    if
    :: goto pass /* lazily */
    :: true
    fi;
    atomic {
        if
        :: epoch[c] < MOST -> raise()
        :: else -> goto again
        fi
    }
write_it:
    if
    :: goto again /* it dies */
    :: atomic {
            !sent -> sent = 1; sent_over = seen; sent_over_by = by; sent_epoch = number; sent_by = c; sent_after = after;
            goto again
        }
    :: atomic { STANDS(seen, by) -> write(number, c, after); too_late = 0; goto pass }
#ifndef WEAK
    :: atomic { !STANDS(seen, by) }
#endif
    fi;
#ifndef WEAK
    look();
    atomic {
        if
        :: REFUSED -> goto refused /* unreached: as long as there is no copy */
        :: seen > number && !(REFUSED) -> goto pass /* another node's, or that write of ours that nobody answered */
        :: else -> goto write_it
        fi
    }
#endif
#endif
pass: /* what is due in this catalog goes */
    atomic {
        MUST_BUT_WEAK(OWNED, !too_late);
#ifdef COPY_LOOKS_FIRST
        MUST(RESTORE_WINS, !(marked[c] && restored));
#endif
        goto again
    }
refused: /* RP_ENOTOWNER, until somebody runs recover */
    MUST(EVENTUAL, copied && by != c) /* unreached: as long as there is no copy */
} /* unreached: as long as there is no copy */

#ifndef BROKEN_STORE_FIRST
proctype slow()
{
end:
    do
    :: atomic {
            sent && STANDS(sent_over, sent_over_by) ->
            write(sent_epoch, sent_by, sent_after);
            sent = 0; sent_over = 0; sent_over_by = 0; sent_epoch = 0; sent_by = 0; sent_after = 0
        }
    :: atomic { sent -> sent = 0; sent_over = 0; sent_over_by = 0; sent_epoch = 0; sent_by = 0; sent_after = 0 }
    od
} /* unreached: it may always be late */
#endif

#ifndef NO_COPY
proctype copier()
{
    atomic {
        epoch[COPY] = epoch[FIRST]; known[COPY] = known[FIRST]; low[COPY] = low[FIRST];
#ifdef COPY_LOOKS_FIRST
        marked[COPY] = marked[FIRST];
#endif
        copied = 1
    }
}
#endif

#ifdef COPY_LOOKS_FIRST
/* People talk to the first catalog. */
proctype user()
{
    atomic { marked[FIRST] = 1 }
    atomic { marked[FIRST] = 0; restored = 1 }
}
#endif

init
{
    atomic {
        epoch[FIRST] = 1; record = 1;
        if
        :: record_by = FIRST; known[FIRST] = STAMP(FIRST, 1)
        :: true /* it was written before there were stamps */
        fi;
        run node(FIRST);
#ifndef BROKEN_STORE_FIRST
        run slow();
#endif
#if NODES == 2
        run node(FIRST);
#endif
#ifndef NO_COPY
        run node(COPY); run copier();
#endif
#ifdef COPY_LOOKS_FIRST
        run user()
#endif
    }
}
