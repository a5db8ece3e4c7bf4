-- Extensions that come later, or are there already, are opened to the roles that use them.
DECLARE
  extension_name text;
BEGIN
  EXECUTE format($template$
  CREATE OR REPLACE FUNCTION _stanchion.open_extension(extension_name text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
  DECLARE
    routine regprocedure;
  BEGIN
    CASE extension_name
    WHEN 'pg_cron' THEN
      GRANT USAGE ON SCHEMA cron TO postgres, %1$I WITH GRANT OPTION;
      GRANT ALL ON ALL TABLES IN SCHEMA cron TO postgres, %1$I WITH GRANT OPTION;
      GRANT ALL ON ALL ROUTINES IN SCHEMA cron TO postgres, %1$I WITH GRANT OPTION;
      -- Jobs are made by cron.schedule, not by writing into its table.
      REVOKE ALL ON cron.job FROM postgres, %1$I;
      GRANT SELECT ON cron.job TO postgres, %1$I WITH GRANT OPTION;
    WHEN 'pg_net' THEN
      GRANT USAGE ON SCHEMA net TO %2$I, postgres, %1$I, anon, authenticated, service_role;
      FOR routine IN
        SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = 'net'::regnamespace AND p.proname IN ('http_get', 'http_post', 'http_delete')
      LOOP
        -- The queue behind them is nobody's but theirs.
        EXECUTE format('ALTER FUNCTION %%s SECURITY DEFINER SET search_path = net', routine);
        EXECUTE format('REVOKE ALL ON FUNCTION %%s FROM PUBLIC', routine);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %%s TO %2$I, postgres, %1$I, '
          || 'anon, authenticated, service_role', routine);
      END LOOP;
    WHEN 'pg_graphql' THEN
      GRANT USAGE ON SCHEMA graphql TO postgres, %1$I WITH GRANT OPTION;
      GRANT USAGE ON SCHEMA graphql TO anon, authenticated, service_role;
      GRANT SELECT ON ALL TABLES IN SCHEMA graphql TO postgres, anon, authenticated, service_role;
      GRANT ALL ON ALL ROUTINES IN SCHEMA graphql TO postgres, anon, authenticated, service_role;
      GRANT ALL ON ALL SEQUENCES IN SCHEMA graphql TO postgres, anon, authenticated, service_role;
    END CASE;
  END $body$
  $template$, current_setting('stanchion.meta'), current_setting('stanchion.functions'));
  REVOKE ALL ON FUNCTION _stanchion.open_extension(text) FROM PUBLIC;

  FOREACH extension_name IN ARRAY ARRAY['pg_cron', 'pg_net', 'pg_graphql'] LOOP
    IF EXISTS (SELECT FROM pg_extension e WHERE e.extname = extension_name) THEN
      PERFORM _stanchion.open_extension(extension_name);
    END IF;
  END LOOP;
END;
