-- Search paths and time limits of the roles. What somebody has set already stays.
DECLARE
  wanted record;
BEGIN
  FOR wanted IN
    SELECT w.role, w.here, w.name, w.value
    FROM (VALUES
      ('anon', false, 'statement_timeout', '3s'),
      ('authenticated', false, 'statement_timeout', '8s'),
      (current_setting('stanchion.rest'), false, 'statement_timeout', '8s'),
      (current_setting('stanchion.rest'), false, 'lock_timeout', '8s'),
      -- Auth's migrator does not qualify its own table: without this its history would lie in public.
      (current_setting('stanchion.auth'), false, 'search_path', 'auth'),
      (current_setting('stanchion.auth'), false, 'idle_in_transaction_session_timeout', '60000'),
      (current_setting('stanchion.storage'), false, 'search_path', 'storage'),
      (current_setting('stanchion.functions'), false, 'search_path', 'supabase_functions'),
      (current_setting('stanchion.realtime'), false, 'search_path', '"$user", public, auth, extensions'),
      ('supabase_realtime_admin', false, 'search_path', 'public, extensions, realtime'),
      (current_setting('stanchion.meta'), false, 'search_path', '"$user", public, extensions'),
      (current_setting('stanchion.read_only'), false, 'search_path', '"$user", public, extensions'),
      -- The administrator is not ours: in this database only.
      (current_user::text, true, 'search_path', '"$user", public, extensions')
    ) AS w (role, here, name, value)
    WHERE NOT EXISTS (
      SELECT FROM pg_db_role_setting s
      JOIN pg_roles r ON r.oid = s.setrole
      CROSS JOIN unnest(s.setconfig) AS c (entry)
      WHERE r.rolname = w.role AND c.entry LIKE w.name || '=%'
        AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())))
  LOOP
    EXECUTE format('ALTER ROLE %I ', wanted.role)
      || CASE WHEN wanted.here THEN format('IN DATABASE %I ', current_database()) ELSE '' END
      -- A list of names is written as such; a quoted one would be a single name.
      || format('SET %I TO ', wanted.name)
      || CASE WHEN wanted.name = 'search_path' THEN wanted.value ELSE quote_literal(wanted.value) END;
  END LOOP;
END;
