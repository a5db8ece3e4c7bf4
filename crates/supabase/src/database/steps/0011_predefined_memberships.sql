-- PostgreSQL's own roles for watching; from 16 on only a superuser can give them. Not pg_read_all_data: who has it
-- reads everybody's password verifiers.
DECLARE
  pair record;
BEGIN
  FOR pair IN
    SELECT g.role, g.member
    FROM (VALUES
      ('pg_monitor', current_setting('stanchion.meta')),
      ('pg_signal_backend', current_setting('stanchion.meta'))
    ) AS g (role, member)
    WHERE NOT EXISTS (
      SELECT FROM pg_auth_members m
      JOIN pg_roles r ON r.oid = m.roleid
      JOIN pg_roles u ON u.oid = m.member
      WHERE r.rolname = g.role AND u.rolname = g.member)
  LOOP
    EXECUTE format('GRANT %I TO %I', pair.role, pair.member);
  END LOOP;
END;
