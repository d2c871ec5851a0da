-- A copy in quarantine knows the key that it came from: a hold on the object covers its copy too.
ALTER TABLE mark ADD COLUMN original @TEXT_C;  -- NULL: the mark is of no copy

-- Copies that stand there already: their keys end with the id of the original's mark, 13 digits to the base 32.
UPDATE mark SET original = (
    SELECT o.key FROM mark o WHERE o.id = (
        SELECT CAST(SUM(d.value * p.weight) AS BIGINT) FROM
            (SELECT 1 AS at, 1152921504606846976 AS weight UNION ALL SELECT 2, 36028797018963968
             UNION ALL SELECT 3, 1125899906842624 UNION ALL SELECT 4, 35184372088832 UNION ALL SELECT 5, 1099511627776
             UNION ALL SELECT 6, 34359738368 UNION ALL SELECT 7, 1073741824 UNION ALL SELECT 8, 33554432
             UNION ALL SELECT 9, 1048576 UNION ALL SELECT 10, 32768 UNION ALL SELECT 11, 1024 UNION ALL SELECT 12, 32
             UNION ALL SELECT 13, 1) AS p
        JOIN (SELECT '0' AS digit, 0 AS value
              UNION ALL SELECT '1', 1 UNION ALL SELECT '2', 2 UNION ALL SELECT '3', 3 UNION ALL SELECT '4', 4
              UNION ALL SELECT '5', 5 UNION ALL SELECT '6', 6 UNION ALL SELECT '7', 7 UNION ALL SELECT '8', 8
              UNION ALL SELECT '9', 9 UNION ALL SELECT 'a', 10 UNION ALL SELECT 'b', 11 UNION ALL SELECT 'c', 12
              UNION ALL SELECT 'd', 13 UNION ALL SELECT 'e', 14 UNION ALL SELECT 'f', 15 UNION ALL SELECT 'g', 16
              UNION ALL SELECT 'h', 17 UNION ALL SELECT 'j', 18 UNION ALL SELECT 'k', 19 UNION ALL SELECT 'm', 20
              UNION ALL SELECT 'n', 21 UNION ALL SELECT 'p', 22 UNION ALL SELECT 'q', 23 UNION ALL SELECT 'r', 24
              UNION ALL SELECT 's', 25 UNION ALL SELECT 't', 26 UNION ALL SELECT 'v', 27 UNION ALL SELECT 'w', 28
              UNION ALL SELECT 'x', 29 UNION ALL SELECT 'y', 30 UNION ALL SELECT 'z', 31) AS d
        ON d.digit = substr(mark.key, 25 + p.at, 1)))
WHERE active = 1 AND substr(key, 1, 25) = '.reprieve/quarantine/mrk_';
