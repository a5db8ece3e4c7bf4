-- GraphQL's entry point. It answers whether pg_graphql is there or not, so nothing has to be replaced when it comes
-- or goes.
BEGIN
  IF NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'graphql_public'::regnamespace AND p.proname = 'graphql') THEN
    CREATE FUNCTION graphql_public.graphql(
      "operationName" text DEFAULT NULL, query text DEFAULT NULL,
      variables jsonb DEFAULT NULL, extensions jsonb DEFAULT NULL)
      RETURNS jsonb LANGUAGE plpgsql SET search_path = '' AS $body$
    DECLARE
      answer jsonb;
    BEGIN
      IF NOT EXISTS (SELECT FROM pg_catalog.pg_extension e WHERE e.extname = 'pg_graphql') THEN
        RETURN pg_catalog.jsonb_build_object(
          'data', NULL::pg_catalog.jsonb, 'errors', ARRAY['pg_graphql extension is not enabled.']);
      END IF;
      EXECUTE 'SELECT graphql.resolve(query := $1, variables := $2, "operationName" := $3, extensions := $4)'
        INTO answer USING query, coalesce(variables, '{}'), "operationName", extensions;
      RETURN answer;
    END $body$;
    GRANT EXECUTE ON FUNCTION graphql_public.graphql TO postgres, anon, authenticated, service_role;
  END IF;
END;
