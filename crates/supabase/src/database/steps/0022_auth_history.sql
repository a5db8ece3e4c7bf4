-- Auth logged in without a search path of its own writes its history of migrations into public, and would start all
-- over with one. A history that is plainly Auth's is copied to where Auth will look for it; the original stays.
DECLARE
  known boolean;
BEGIN
  IF to_regclass('public.schema_migrations') IS NULL OR to_regclass('auth.schema_migrations') IS NULL
     OR to_regclass('auth.users') IS NULL
  THEN
    RETURN;
  END IF;
  -- Two early migrations of Auth's.
  EXECUTE $query$
    SELECT count(*) = 2 FROM public.schema_migrations WHERE version::text IN ('20210710035447', '20210722035447')
      AND NOT EXISTS (SELECT FROM auth.schema_migrations)
  $query$ INTO known;
  IF known THEN
    -- STRRL's operator keeps versions as numbers, so that 00 became 0.
    EXECUTE $query$
      INSERT INTO auth.schema_migrations (version)
      SELECT CASE version::text WHEN '0' THEN '00' ELSE version::text END FROM public.schema_migrations
    $query$;
  END IF;
EXCEPTION WHEN undefined_column THEN
  -- A table of that name and of another make.
  RETURN;
END;
