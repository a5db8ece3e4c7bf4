-- Who may look into which schema, and who may connect at all.
DECLARE
  api text[] := ARRAY['postgres', 'anon', 'authenticated', 'service_role', current_setting('stanchion.read_only')];
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
      ('USAGE', 'public', api || current_setting('stanchion.realtime')),
      ('USAGE', 'extensions', api || ARRAY[current_setting('stanchion.auth'), current_setting('stanchion.storage'),
        current_setting('stanchion.realtime')]),
      ('USAGE', 'graphql_public', api),
      ('USAGE', 'auth', api || ARRAY['supabase_realtime_admin', current_setting('stanchion.storage'),
        current_setting('stanchion.realtime')]),
      ('USAGE', 'storage', api),
      ('USAGE', 'realtime', api),
      ('USAGE', 'supabase_functions', api),
      ('ALL', 'realtime', ARRAY['supabase_realtime_admin', current_setting('stanchion.realtime')]),
      ('ALL', '_realtime', ARRAY[current_setting('stanchion.realtime')]),
      ('ALL', 'public', ARRAY[current_setting('stanchion.meta')]),
      ('ALL', 'extensions', ARRAY[current_setting('stanchion.meta')])
    ) AS g (privilege, schema, roles)
  LOOP
    FOREACH login IN ARRAY entry.roles LOOP
      IF pg_has_role((SELECT n.nspowner FROM pg_namespace n WHERE n.nspname = entry.schema), 'USAGE') THEN
        EXECUTE format('GRANT %s ON SCHEMA %I TO %I', entry.privilege, entry.schema, login);
      -- Somebody else's schema: a GRANT would end in a mere warning.
      ELSIF NOT has_schema_privilege(login, entry.schema, CASE entry.privilege WHEN 'ALL' THEN 'CREATE' ELSE 'USAGE' END) THEN
        RAISE EXCEPTION 'role % may not look into schema %, which is not ours to grant', login, entry.schema
          USING ERRCODE = 'insufficient_privilege',
                HINT = format('As the schema''s owner: GRANT %s ON SCHEMA %I TO %I', entry.privilege, entry.schema, login);
      END IF;
    END LOOP;
  END LOOP;
END;
