-- Who may act as whom. A membership that is there stays as it is.
DECLARE
  pair record;
BEGIN
  FOR pair IN
    SELECT g.role, g.member, g.admin
    FROM (VALUES
      ('anon', current_setting('stanchion.rest'), false),
      ('authenticated', current_setting('stanchion.rest'), false),
      ('service_role', current_setting('stanchion.rest'), false),
      -- Storage works as the user whose request it serves.
      (current_setting('stanchion.rest'), current_setting('stanchion.storage'), false),
      -- So does Realtime. Its migrations give what they make to supabase_realtime_admin, and that role to postgres.
      ('anon', current_setting('stanchion.realtime'), false),
      ('authenticated', current_setting('stanchion.realtime'), false),
      ('service_role', current_setting('stanchion.realtime'), false),
      ('supabase_admin', current_setting('stanchion.realtime'), false),
      ('supabase_realtime_admin', current_setting('stanchion.realtime'), true),
      -- Studio shows and edits policies and triggers on the services' tables, and tries queries as an API role.
      ('anon', current_setting('stanchion.meta'), false),
      ('authenticated', current_setting('stanchion.meta'), false),
      ('service_role', current_setting('stanchion.meta'), false),
      (current_setting('stanchion.auth'), current_setting('stanchion.meta'), false),
      (current_setting('stanchion.storage'), current_setting('stanchion.meta'), false),
      (current_setting('stanchion.functions'), current_setting('stanchion.meta'), false),
      ('supabase_realtime_admin', current_setting('stanchion.meta'), false),
      ('anon', current_setting('stanchion.functions'), false),
      ('authenticated', current_setting('stanchion.functions'), false),
      ('service_role', current_setting('stanchion.functions'), false),
      -- What upstream's own postgres, which is no superuser there, may do.
      ('anon', 'postgres', false),
      ('authenticated', 'postgres', false),
      ('service_role', 'postgres', false)
    ) AS g (role, member, admin)
    WHERE NOT EXISTS (
      SELECT FROM pg_auth_members m
      JOIN pg_roles r ON r.oid = m.roleid
      JOIN pg_roles u ON u.oid = m.member
      WHERE r.rolname = g.role AND u.rolname = g.member AND (m.admin_option OR NOT g.admin))
      -- A superuser needs no membership, and one who is none may not give it any.
      AND NOT EXISTS (SELECT FROM pg_roles u WHERE u.rolname = g.member AND u.rolsuper)
  LOOP
    EXECUTE format('GRANT %I TO %I', pair.role, pair.member)
      || CASE WHEN pair.admin THEN ' WITH ADMIN OPTION' ELSE '' END;
  END LOOP;
END;
