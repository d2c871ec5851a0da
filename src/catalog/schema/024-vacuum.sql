-- PostgreSQL cleans every table of ours by settings of its own. By its defaults a table that retention lets rows go from
-- waits until a fifth of it is dead, and a small one that is rewritten all the time until fifty rows are.

-- Small rows that are changed often.
@VACUUM(store, 0, 200);
@VACUUM(alert, 0, 200);
@VACUUM(schedule, 0, 200);
@VACUUM(feed_cursor, 0, 200);
@VACUUM(restore_run, 0, 200);
-- A few hundred, or some thousands, of which now and then one goes.
@VACUUM(hold, 0.02, 500);
@VACUUM(token, 0.02, 500);
@VACUUM(dead_letter, 0.02, 500);
@VACUUM(run_record, 0.02, 500);
@VACUUM(audit_segment, 0.02, 500);
-- Large ones that retention lets rows go from.
@VACUUM(audit, 0.02, 5000);
@VACUUM(txn, 0.02, 5000);
