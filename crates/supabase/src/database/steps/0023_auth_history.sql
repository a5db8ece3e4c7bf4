-- Auth logged in without a search path of its own writes its history of migrations into public, and would start all
-- over with one. A history that is plainly Auth's is copied to where Auth will look for it; the original stays.
-- A table in public can be anybody's. It is read only if it is a plain table of a superuser's, of ours or of Auth's, with a
-- version of a type of PostgreSQL's own: anything else could run code of its owner's. Auth's own table is written as Auth.
DECLARE
  auth text := current_setting('stanchion.auth');
  caller text := current_user;
  versions text[];
BEGIN
  IF to_regclass('auth.schema_migrations') IS NULL OR to_regclass('auth.users') IS NULL OR NOT EXISTS (
    SELECT FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_roles r ON r.oid = c.relowner
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'version' AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE n.nspname = 'public' AND c.relname = 'schema_migrations' AND c.relkind = 'r'
      AND (r.rolsuper OR r.rolname IN (caller, auth)) AND t.typnamespace = 'pg_catalog'::regnamespace)
  THEN
    RETURN;
  END IF;
  -- Two early migrations of Auth's. STRRL's operator keeps versions as numbers, so that 00 became 0.
  EXECUTE 'SELECT array_agg(CASE version::text WHEN ''0'' THEN ''00'' ELSE version::text END) FROM ONLY public.schema_migrations'
    INTO versions;
  IF versions @> ARRAY['20210710035447', '20210722035447'] THEN
    EXECUTE format('SET LOCAL ROLE %I', auth);
    EXECUTE 'INSERT INTO auth.schema_migrations (version) SELECT unnest($1) WHERE NOT EXISTS (SELECT FROM auth.schema_migrations)'
      USING versions;
    EXECUTE format('SET LOCAL ROLE %I', caller);
  END IF;
END;
