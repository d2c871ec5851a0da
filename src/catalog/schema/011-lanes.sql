-- A lane is leased by one daemon at a time; lane 0 is shared by command lines and never leased.
ALTER TABLE lane ADD COLUMN holder TEXT NOT NULL DEFAULT '';          -- who has it, or had it last
ALTER TABLE lane ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;          -- raised by every lease: with an older one nothing is written
ALTER TABLE lane ADD COLUMN leased_until BIGINT NOT NULL DEFAULT 0;   -- moved on by every commit
-- The random number of the last commit: whoever lost the answer to a COMMIT compares it.
ALTER TABLE lane ADD COLUMN stamp BIGINT NOT NULL DEFAULT 0;
