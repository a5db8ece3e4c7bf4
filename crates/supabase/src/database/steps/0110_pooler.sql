-- How the pooler learns the verifiers of those who log in through it. Never those of superusers.
BEGIN
  CREATE SCHEMA IF NOT EXISTS pgbouncer;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), current_setting('stanchion.pooler_auth'));
  EXECUTE format('GRANT USAGE ON SCHEMA pgbouncer TO %I', current_setting('stanchion.pooler_auth'));
  IF to_regprocedure('pgbouncer.get_auth(text)') IS NULL THEN
    CREATE FUNCTION pgbouncer.get_auth(p_usename text) RETURNS TABLE (username text, password text)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
        SELECT a.rolname::text, CASE WHEN a.rolvaliduntil < now() THEN NULL ELSE a.rolpassword END
        FROM pg_authid a WHERE a.rolname = p_usename AND a.rolcanlogin AND NOT a.rolsuper
      $body$;
    REVOKE ALL ON FUNCTION pgbouncer.get_auth(text) FROM PUBLIC;
  END IF;
  EXECUTE format('GRANT EXECUTE ON FUNCTION pgbouncer.get_auth(text) TO %I', current_setting('stanchion.pooler_auth'));
  -- Creating it is allowed to anybody; it works only if its owner may read pg_authid.
  PERFORM FROM pgbouncer.get_auth('');
END;
