-- What each host's clocks said together, so that a wall clock that was set forward is told by the boot clock (catalog/clock.h).
CREATE TABLE host_clock (
    boot_id  @TEXT_C PRIMARY KEY,         -- one start of one host
    host     TEXT NOT NULL,               -- its name, for people
    boot_ms  BIGINT NOT NULL,             -- at this moment of the boot clock ...
    wall_ms  BIGINT NOT NULL,             -- ... it was this time
    ahead_ms BIGINT NOT NULL,             -- how far the wall clock was ahead of that when it was last noted
    noted_at BIGINT NOT NULL
);
