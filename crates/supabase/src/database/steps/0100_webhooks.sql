-- Database webhooks: a trigger function that sends a row somewhere by way of pg_net.
DECLARE
  owner text := current_setting('stanchion.functions');
BEGIN
  CREATE TABLE IF NOT EXISTS supabase_functions.migrations (
    version text PRIMARY KEY,
    inserted_at timestamptz NOT NULL DEFAULT now());
  CREATE TABLE IF NOT EXISTS supabase_functions.hooks (
    id bigserial PRIMARY KEY,
    hook_table_id integer NOT NULL,
    hook_name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    request_id bigint);
  CREATE INDEX IF NOT EXISTS supabase_functions_hooks_request_id_idx ON supabase_functions.hooks (request_id);
  CREATE INDEX IF NOT EXISTS supabase_functions_hooks_h_table_id_h_name_idx
    ON supabase_functions.hooks (hook_table_id, hook_name);
  IF to_regprocedure('supabase_functions.http_request()') IS NULL THEN
    -- Arguments of the trigger: URL, method, headers, parameters, milliseconds.
    CREATE FUNCTION supabase_functions.http_request() RETURNS trigger
      LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
    DECLARE
      url text := TG_ARGV[0];
      method text := TG_ARGV[1];
      headers jsonb := coalesce(nullif(TG_ARGV[2], 'null')::jsonb, '{"Content-Type": "application/json"}');
      params jsonb := coalesce(nullif(TG_ARGV[3], 'null')::jsonb, '{}');
      patience integer := coalesce(nullif(TG_ARGV[4], 'null')::integer, 1000);
      request bigint;
    BEGIN
      IF url IS NULL OR url = 'null' THEN
        RAISE EXCEPTION 'the webhook has no URL';
      ELSIF to_regnamespace('net') IS NULL THEN
        RAISE EXCEPTION 'webhooks need the extension pg_net, which this database does not have';
      ELSIF method = 'GET' THEN
        EXECUTE 'SELECT net.http_get($1, $2, $3, $4)' INTO request USING url, params, headers, patience;
      ELSIF method = 'POST' THEN
        EXECUTE 'SELECT net.http_post($1, $2, $3, $4, $5)' INTO request
          USING url,
                jsonb_build_object('old_record', OLD, 'record', NEW, 'type', TG_OP,
                                   'table', TG_TABLE_NAME, 'schema', TG_TABLE_SCHEMA),
                params, headers, patience;
      ELSE
        RAISE EXCEPTION 'the webhook''s method must be GET or POST, not %', method;
      END IF;
      INSERT INTO supabase_functions.hooks (hook_table_id, hook_name, request_id)
        VALUES (TG_RELID::integer, TG_NAME, request);
      RETURN coalesce(NEW, OLD);
    END $body$;
    EXECUTE format('ALTER FUNCTION supabase_functions.http_request() OWNER TO %I', owner);
    REVOKE ALL ON FUNCTION supabase_functions.http_request() FROM PUBLIC;
    EXECUTE format('GRANT EXECUTE ON FUNCTION supabase_functions.http_request() TO postgres, anon, authenticated, service_role, %I',
      current_setting('stanchion.meta'));
  END IF;
  EXECUTE format('ALTER TABLE supabase_functions.migrations OWNER TO %I', owner);
  EXECUTE format('ALTER TABLE supabase_functions.hooks OWNER TO %I', owner);
END;
