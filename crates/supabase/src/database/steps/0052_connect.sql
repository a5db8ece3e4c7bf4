-- Nobody connects who has nothing to do here: the API roles are the server's, so a login of another project that got in could
-- become them. Logins that own something here or were given something keep what they had by way of PUBLIC, but for those
-- of other projects.
DECLARE
  here oid := (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
  mark text := '\[stanchion SupabaseProject \S+ (\d+)[^]]*\]$';
  shared text[] := ARRAY['postgres', 'anon', 'authenticated', 'service_role', 'supabase_admin', 'supabase_realtime_admin'];
  alone boolean;
  login text;
BEGIN
  alone := NOT EXISTS (
    SELECT FROM pg_roles r JOIN pg_database d ON d.oid::text = substring(shobj_description(r.oid, 'pg_authid'), mark)
    WHERE d.oid <> here);
  FOR login IN
    SELECT r.rolname FROM pg_roles r
    WHERE r.rolcanlogin AND NOT r.rolsuper
      AND coalesce(substring(shobj_description(r.oid, 'pg_authid'), mark), here::text) = here::text
      AND EXISTS (
        SELECT FROM pg_roles known
        WHERE pg_has_role(r.oid, known.oid, 'MEMBER')
          AND (known.rolname ~ '^pg_' AND known.rolname <> 'pg_database_owner'
            OR known.rolname <> ALL (CASE WHEN alone THEN '{}' ELSE shared END) AND known.oid IN (
              SELECT d.refobjid FROM pg_shdepend d
              WHERE d.refclassid = 'pg_authid'::regclass AND (d.dbid = here OR d.classid = 'pg_database'::regclass AND d.objid = here))))
  LOOP
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), login);
  END LOOP;
  -- Who makes a role in Studio can let it in.
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I WITH GRANT OPTION', current_database(), current_setting('stanchion.meta'));
  IF EXISTS (
    SELECT FROM pg_database d CROSS JOIN aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) AS a
    WHERE d.oid = here AND a.grantee = 0 AND a.privilege_type = 'CONNECT')
  THEN
    -- What is taken away here is given back when the project goes and takes everything with it.
    INSERT INTO _stanchion.made (kind, name) VALUES ('connect', 'PUBLIC') ON CONFLICT DO NOTHING;
    EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database());
  END IF;
  IF EXISTS (
    SELECT FROM pg_database d CROSS JOIN aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) AS a
    WHERE d.oid = here AND a.grantee = 0 AND a.privilege_type = 'CONNECT')
  THEN
    RAISE EXCEPTION 'PUBLIC may still connect to database %, by a grant that is not ours to revoke', current_database()
      USING ERRCODE = 'insufficient_privilege',
            HINT = format('As a superuser: REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database());
  END IF;
END;
