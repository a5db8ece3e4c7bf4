-- Drops the logins of a project whose database is gone. A login that something depends on stays, and can no longer log in.
DECLARE
  login text;
  remains text[] := '{}';
BEGIN
  FOREACH login IN ARRAY string_to_array(current_setting('stanchion.orphans'), ',') LOOP
    BEGIN
      EXECUTE format('ALTER ROLE %I NOLOGIN', login);
      PERFORM pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.usename = login AND a.pid <> pg_backend_pid();
    EXCEPTION WHEN insufficient_privilege THEN
      remains := remains || format('role %s: %s', login, SQLERRM);
      CONTINUE;
    END;
    BEGIN
      EXECUTE format('DROP ROLE %I', login);
    EXCEPTION WHEN dependent_objects_still_exist OR insufficient_privilege THEN
      remains := remains || format('role %s: %s', login, SQLERRM);
    END;
  END LOOP;
  PERFORM set_config('stanchion.left', array_to_string(remains, '; '), true);
END;
