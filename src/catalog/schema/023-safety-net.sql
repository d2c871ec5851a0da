-- The safety net (core/safety_net) looks for what nothing would find any more, without reading what lives.

-- Files that wait for a mark's end, and files that are gone: what lives is in none of them. `+ 0`: for the
-- pages of the safety net alone; other questions about a status have better indexes.
CREATE INDEX file_pending ON file (id) WHERE status + 0 = 1;
CREATE INDEX file_deleted ON file (id) WHERE status + 0 = 4;
CREATE INDEX file_purged ON file (id) WHERE status + 0 = 5;
CREATE INDEX file_expired ON file (id) WHERE status + 0 = 6;
-- Marks that wait and that nobody will look at: as a rule none.
CREATE INDEX mark_unwatched ON mark (id) WHERE next_at IS NULL AND active = 1 AND state IN (1, 2, 3);
-- Marks that wait for a person.
CREATE INDEX mark_dead ON mark (id) WHERE state = 6;
