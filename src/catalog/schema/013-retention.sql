-- Records of what has ended are let go after a while (core/retention), and until then no list walks past them.

-- Deleted and purged files that stay listed: a page of a tenant's files does not read those that do not.
CREATE INDEX file_shown ON file (tenant_id, status, id) WHERE shown = 1;
-- Files whose record goes one day, in that order. It grows at its end.
CREATE INDEX file_over ON file (changed_at, id) WHERE status IN (5, 6) AND shown = 0;
-- All copies that an object has had in quarantine, not only those in place and waiting: an object's marks stay as long as
-- one of its copies waits, and a file's copies go with the file.
DROP INDEX mark_in_place;
CREATE INDEX mark_copy ON mark (store_id, original, active) WHERE original IS NOT NULL;

-- When a run of each name ended last: the metrics read a row a name, and not a thousand records.
CREATE INDEX run_record_name ON run_record (name, run_id);

-- Small rows that every commit writes: cleaned often, or each read of them walks over what they were.
@VACUUM(lane, 0, 200);
@VACUUM(tally, 0, 200);
@VACUUM(meta, 0, 200);
@VACUUM(run, 0, 200);
@VACUUM(run_lock, 0, 200);
@VACUUM(node, 0, 200);
@VACUUM(host_clock, 0, 200);
@VACUUM(tenant, 0.02, 500);
-- Large ones: a fifth of ten million marks is too long to wait for.
@VACUUM(mark, 0.02, 5000);
@VACUUM(file, 0.02, 5000);
@VACUUM(ledger, 0.02, 5000);
@VACUUM(idempotency, 0.02, 5000);
