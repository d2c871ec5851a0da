-- Sealed segments of the audit log: which rows of a lane stand in which file (catalog/audit/segment.h).
CREATE TABLE audit_segment (
    lane         BIGINT NOT NULL,
    to_seq       BIGINT NOT NULL,
    from_seq     BIGINT NOT NULL,
    hash_before  @BYTES NOT NULL,         -- of the row before the first one; 32 zero bytes: there is none
    hash_after   @BYTES NOT NULL,         -- of the last one
    first_at     BIGINT NOT NULL,         -- the earliest and the latest time in it
    last_at      BIGINT NOT NULL,
    with_details BIGINT NOT NULL,         -- rows whose details stand in the file
    file         TEXT NOT NULL,
    bytes        BIGINT NOT NULL,
    sha256       @BYTES NOT NULL,         -- of the file
    sealed_at    BIGINT NOT NULL,
    run_id       BIGINT NOT NULL,
    PRIMARY KEY (lane, to_seq)
) @CLUSTERED;
@APPEND_ONLY(audit_segment);
@NO_REPLACE(audit_segment, lane = NEW.lane AND to_seq = NEW.to_seq);
@LET_GO(audit, audit_segment, s.lane = old.lane AND s.from_seq <= old.seq AND s.to_seq >= old.seq);

-- Locked by whoever seals, and shared by whoever erases details, so that none does both at once.
INSERT INTO meta (name) VALUES ('audit_sealed');
