DO $unblock$
DECLARE
  waiting CONSTANT pg_catalog.int4 := pg_catalog.current_setting('stanchion.waiting');
  roles CONSTANT pg_catalog.text[] := pg_catalog.string_to_array(pg_catalog.current_setting('stanchion.roles'), E'\n');
  blocker pg_catalog.int4;
BEGIN
  -- A little shorter than the lock timeout of the session that waits, which begins at the same time.
  FOR round IN 1..90 LOOP
    PERFORM pg_catalog.pg_stat_clear_snapshot();
    FOR blocker IN
      SELECT a.pid FROM pg_catalog.pg_stat_activity a JOIN pg_catalog.pg_roles u ON u.oid = a.usesysid
      WHERE a.pid = ANY (pg_catalog.pg_blocking_pids(waiting)) AND u.rolname NOT IN (session_user, current_user)
        AND EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = ANY (roles)
                    AND (r.oid = u.oid OR (NOT u.rolsuper AND pg_catalog.pg_has_role(u.oid, r.oid, 'MEMBER'))))
    LOOP
      BEGIN
        PERFORM pg_catalog.pg_terminate_backend(blocker);
      EXCEPTION WHEN insufficient_privilege THEN
        RAISE DEBUG 'session % of a member may not be ended', blocker;
      END;
    END LOOP;
    PERFORM pg_catalog.pg_sleep(0.1);
  END LOOP;
END
$unblock$
