-- PostgREST reads the schema again when it changes.
BEGIN
  IF to_regprocedure('extensions.pgrst_ddl_watch()') IS NULL THEN
    CREATE FUNCTION extensions.pgrst_ddl_watch() RETURNS event_trigger LANGUAGE plpgsql AS $body$
    BEGIN
      IF EXISTS (
        SELECT FROM pg_event_trigger_ddl_commands() AS command
        WHERE command.schema_name IS DISTINCT FROM 'pg_temp'
          AND command.command_tag IN (
            'CREATE SCHEMA', 'ALTER SCHEMA', 'CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE',
            'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'CREATE VIEW', 'ALTER VIEW',
            'CREATE MATERIALIZED VIEW', 'ALTER MATERIALIZED VIEW', 'CREATE FUNCTION', 'ALTER FUNCTION',
            'CREATE TRIGGER', 'CREATE TYPE', 'ALTER TYPE', 'CREATE RULE', 'COMMENT'))
      THEN
        NOTIFY pgrst, 'reload schema';
      END IF;
    END $body$;
  END IF;
  IF to_regprocedure('extensions.pgrst_drop_watch()') IS NULL THEN
    CREATE FUNCTION extensions.pgrst_drop_watch() RETURNS event_trigger LANGUAGE plpgsql AS $body$
    BEGIN
      IF EXISTS (
        SELECT FROM pg_event_trigger_dropped_objects() AS dropped
        WHERE NOT dropped.is_temporary
          AND dropped.object_type IN ('schema', 'table', 'foreign table', 'view', 'materialized view', 'function',
                                      'trigger', 'type', 'rule'))
      THEN
        NOTIFY pgrst, 'reload schema';
      END IF;
    END $body$;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_event_trigger t WHERE t.evtname = 'pgrst_ddl_watch') THEN
    CREATE EVENT TRIGGER pgrst_ddl_watch ON ddl_command_end EXECUTE FUNCTION extensions.pgrst_ddl_watch();
  END IF;
  IF NOT EXISTS (SELECT FROM pg_event_trigger t WHERE t.evtname = 'pgrst_drop_watch') THEN
    CREATE EVENT TRIGGER pgrst_drop_watch ON sql_drop EXECUTE FUNCTION extensions.pgrst_drop_watch();
  END IF;
END;
