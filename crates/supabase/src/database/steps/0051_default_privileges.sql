-- What is created from now on in public, by whoever administers or uses Studio, can be reached through the API, as in
-- every Supabase: row level security decides what is seen. What was there before is opened to Studio only.
DECLARE
  rule record;
  kind text;
BEGIN
  FOR rule IN
    SELECT d.creator, d.schema, d.grantees
    FROM (VALUES
      (current_user::text, 'public', 'postgres, anon, authenticated, service_role'),
      (current_setting('stanchion.meta'), 'public', 'postgres, anon, authenticated, service_role'),
      ('supabase_admin', 'public', 'postgres, anon, authenticated, service_role'),
      ('postgres', 'public', 'anon, authenticated, service_role'),
      (current_user::text, 'graphql_public', 'postgres, anon, authenticated, service_role'),
      (current_setting('stanchion.auth'), 'auth', 'postgres'),
      -- As Storage does it itself where it may make the roles; its tables are under row level security.
      (current_setting('stanchion.storage'), 'storage', 'postgres, anon, authenticated, service_role'),
      ('supabase_admin', 'realtime', 'postgres')
    ) AS d (creator, schema, grantees)
    -- Only of roles that we may act for.
    WHERE pg_has_role(d.creator, 'USAGE')
  LOOP
    FOREACH kind IN ARRAY ARRAY['TABLES', 'ROUTINES', 'SEQUENCES'] LOOP
      EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT ALL ON %s TO %s, %I',
        rule.creator, rule.schema, kind, rule.grantees, current_setting('stanchion.meta'));
    END LOOP;
    EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT SELECT ON TABLES TO %I',
      rule.creator, rule.schema, current_setting('stanchion.read_only'));
  END LOOP;
  FOREACH kind IN ARRAY ARRAY['TABLES', 'ROUTINES', 'SEQUENCES'] LOOP
    EXECUTE format('GRANT ALL ON ALL %s IN SCHEMA public TO %I', kind, current_setting('stanchion.meta'));
  END LOOP;
  EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA public, auth, storage, realtime TO %I',
    current_setting('stanchion.read_only'));
END;
