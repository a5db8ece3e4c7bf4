-- An extension that somebody creates later is opened in the same moment.
DECLARE
  extension_name text;
  routine text;
  trigger_name text;
BEGIN
  FOREACH extension_name IN ARRAY ARRAY['pg_cron', 'pg_net', 'pg_graphql'] LOOP
    routine := 'grant_' || extension_name || '_access';
    trigger_name := 'issue_' || extension_name || '_access';
    IF to_regprocedure(format('extensions.%I()', routine)) IS NULL THEN
      EXECUTE format(
        $template$
          CREATE FUNCTION extensions.%I() RETURNS event_trigger
            LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
          BEGIN
            IF EXISTS (
              SELECT FROM pg_event_trigger_ddl_commands() AS command
              JOIN pg_extension e ON e.oid = command.objid AND command.classid = 'pg_extension'::regclass
              WHERE e.extname = %L)
            THEN
              PERFORM _stanchion.open_extension(%L);
            END IF;
          END $body$
        $template$, routine, extension_name, extension_name);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_event_trigger t WHERE t.evtname = trigger_name) THEN
      EXECUTE format(
        'CREATE EVENT TRIGGER %I ON ddl_command_end WHEN TAG IN (%L) EXECUTE FUNCTION extensions.%I()',
        trigger_name, 'CREATE EXTENSION', routine);
    END IF;
  END LOOP;
END;
