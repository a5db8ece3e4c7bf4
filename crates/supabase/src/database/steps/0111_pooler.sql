-- How the pooler learns the verifiers of those who log in through it: of roles that may connect here, and never those of
-- superusers.
DECLARE
  pooler text := current_setting('stanchion.pooler_auth');
BEGIN
  IF to_regnamespace('pgbouncer') IS NULL THEN
    CREATE SCHEMA pgbouncer;
  END IF;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), pooler);
  EXECUTE format('GRANT USAGE ON SCHEMA pgbouncer TO %I', pooler);
  IF to_regprocedure('pgbouncer.get_auth(text)') IS NULL THEN
    CREATE FUNCTION pgbouncer.get_auth(p_usename text) RETURNS TABLE (username text, password text)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
        SELECT a.rolname::text, CASE WHEN a.rolvaliduntil < now() THEN NULL ELSE a.rolpassword END
        FROM pg_authid a WHERE a.rolname = p_usename AND a.rolcanlogin AND NOT a.rolsuper
          AND has_database_privilege(a.oid, current_database(), 'CONNECT')
      $body$;
    REVOKE ALL ON FUNCTION pgbouncer.get_auth(text) FROM PUBLIC;
  END IF;
  EXECUTE format('GRANT EXECUTE ON FUNCTION pgbouncer.get_auth(text) TO %I', pooler);
  -- Creating it is allowed to anybody; it works only if its owner may read pg_authid.
  IF NOT has_table_privilege((SELECT p.proowner FROM pg_proc p WHERE p.oid = 'pgbouncer.get_auth(text)'::regprocedure),
                             'pg_catalog.pg_authid', 'SELECT') THEN
    RAISE EXCEPTION 'permission denied for table pg_authid' USING ERRCODE = 'insufficient_privilege';
  END IF;
END;
