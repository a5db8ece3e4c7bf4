-- Who may look into which schema, and who may connect at all.
DECLARE
  login text;
  entry record;
BEGIN
  FOREACH login IN ARRAY ARRAY[
    current_setting('stanchion.rest'), current_setting('stanchion.auth'), current_setting('stanchion.storage'),
    current_setting('stanchion.realtime'), current_setting('stanchion.read_only'), current_setting('stanchion.functions')]
  LOOP
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), login);
  END LOOP;
  EXECUTE format('GRANT ALL ON DATABASE %I TO %I', current_database(), current_setting('stanchion.meta'));
  -- Realtime says CREATE SCHEMA IF NOT EXISTS, and makes a publication of its own.
  EXECUTE format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_setting('stanchion.realtime'));

  FOR entry IN
    SELECT * FROM (VALUES
      ('USAGE', 'public', ARRAY[current_setting('stanchion.read_only'), 'postgres', 'anon', 'authenticated', 'service_role', current_setting('stanchion.realtime')]),
      ('USAGE', 'extensions', ARRAY[current_setting('stanchion.read_only'), 'postgres', 'anon', 'authenticated', 'service_role',
        current_setting('stanchion.auth'), current_setting('stanchion.storage'), current_setting('stanchion.realtime')]),
      ('USAGE', 'graphql_public', ARRAY[current_setting('stanchion.read_only'), 'postgres', 'anon', 'authenticated', 'service_role']),
      ('USAGE', 'auth', ARRAY[current_setting('stanchion.read_only'), 'postgres', 'anon', 'authenticated', 'service_role', 'supabase_realtime_admin',
        current_setting('stanchion.storage'), current_setting('stanchion.realtime')]),
      ('USAGE', 'storage', ARRAY[current_setting('stanchion.read_only'), 'postgres', 'anon', 'authenticated', 'service_role']),
      ('USAGE', 'realtime', ARRAY[current_setting('stanchion.read_only'), 'postgres', 'anon', 'authenticated', 'service_role']),
      ('USAGE', 'supabase_functions', ARRAY[current_setting('stanchion.read_only'), 'postgres', 'anon', 'authenticated', 'service_role']),
      ('ALL', 'realtime', ARRAY['supabase_realtime_admin', current_setting('stanchion.realtime')]),
      ('ALL', '_realtime', ARRAY[current_setting('stanchion.realtime')]),
      ('ALL', 'public', ARRAY[current_setting('stanchion.meta')]),
      ('ALL', 'extensions', ARRAY[current_setting('stanchion.meta')])
    ) AS g (privilege, schema, roles)
  LOOP
    FOREACH login IN ARRAY entry.roles LOOP
      EXECUTE format('GRANT %s ON SCHEMA %I TO %I', entry.privilege, entry.schema, login);
    END LOOP;
  END LOOP;
END;
