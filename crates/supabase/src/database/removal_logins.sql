-- Ends the sessions of everybody who leaves, and lets none of them in again.
DECLARE
  thing record;
BEGIN
  -- Whoever has to stay cannot log in any more.
  FOR thing IN
    SELECT m.name FROM _stanchion.made m JOIN pg_roles r ON r.rolname = m.name WHERE m.kind = 'role' AND r.rolcanlogin
  LOOP
    EXECUTE format('ALTER ROLE %I NOLOGIN', thing.name);
  END LOOP;
  PERFORM pg_terminate_backend(a.pid) FROM pg_stat_activity a
  WHERE a.usename IN (SELECT m.name FROM _stanchion.made m WHERE m.kind = 'role') AND a.pid <> pg_backend_pid();
END;
