-- A schema for each service. One that is there keeps its owner; the service then gets the right to create in it.
DECLARE
  wanted record;
  present_owner name;
BEGIN
  FOR wanted IN
    SELECT * FROM (VALUES
      ('extensions', current_user::text),
      ('graphql_public', current_user::text),
      ('auth', current_setting('stanchion.auth')),
      ('storage', current_setting('stanchion.storage')),
      ('realtime', 'supabase_admin'),
      ('_realtime', 'supabase_admin'),
      ('supabase_functions', current_setting('stanchion.functions'))
    ) AS w (name, owner)
  LOOP
    SELECT pg_get_userbyid(n.nspowner) INTO present_owner FROM pg_namespace n WHERE n.nspname = wanted.name;
    IF NOT FOUND THEN
      EXECUTE format('CREATE SCHEMA %I AUTHORIZATION %I', wanted.name, wanted.owner);
    ELSIF pg_has_role(present_owner, 'USAGE') THEN
      EXECUTE format('GRANT ALL ON SCHEMA %I TO %I', wanted.name, wanted.owner);
    ELSIF NOT has_schema_privilege(wanted.owner, wanted.name, 'CREATE') THEN
      RAISE EXCEPTION 'role % may not create in schema %, which belongs to %', wanted.owner, wanted.name, present_owner
        USING ERRCODE = 'insufficient_privilege',
              HINT = format('As %I: GRANT ALL ON SCHEMA %I TO %I', present_owner, wanted.name, wanted.owner);
    END IF;
  END LOOP;
END;
