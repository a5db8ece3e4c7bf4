-- What policies ask about the caller. They belong to Auth, whose migrations replace them: they are made only where
-- they are missing, so that policies can be written before Auth has started once.
DECLARE
  helper record;
BEGIN
  FOR helper IN
    SELECT * FROM (VALUES
      ('uid', 'uuid', $sql$
        SELECT coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
                        nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid $sql$),
      ('role', 'text', $sql$
        SELECT coalesce(nullif(current_setting('request.jwt.claim.role', true), ''),
                        nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role') $sql$),
      ('email', 'text', $sql$
        SELECT coalesce(nullif(current_setting('request.jwt.claim.email', true), ''),
                        nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email') $sql$),
      ('jwt', 'jsonb', $sql$
        SELECT coalesce(nullif(current_setting('request.jwt.claim', true), ''),
                        nullif(current_setting('request.jwt.claims', true), ''))::jsonb $sql$)
    ) AS f (name, result, body)
    WHERE to_regprocedure(format('auth.%I()', f.name)) IS NULL
  LOOP
    EXECUTE format('CREATE FUNCTION auth.%I() RETURNS %s LANGUAGE sql STABLE AS %L', helper.name, helper.result, helper.body);
    EXECUTE format('ALTER FUNCTION auth.%I() OWNER TO %I', helper.name, current_setting('stanchion.auth'));
  END LOOP;
END;
