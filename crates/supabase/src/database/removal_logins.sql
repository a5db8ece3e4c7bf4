-- Disables the logins of the project and terminates their sessions.
DECLARE
  thing record;
BEGIN
  -- A role that has to stay can no longer log in.
  FOR thing IN
    SELECT m.name FROM _stanchion.made m JOIN pg_roles r ON r.rolname = m.name WHERE m.kind = 'role' AND r.rolcanlogin
  LOOP
    EXECUTE format('ALTER ROLE %I NOLOGIN', thing.name);
  END LOOP;
  PERFORM pg_terminate_backend(a.pid) FROM pg_stat_activity a
  WHERE a.usename IN (SELECT m.name FROM _stanchion.made m WHERE m.kind = 'role') AND a.pid <> pg_backend_pid();
END;
