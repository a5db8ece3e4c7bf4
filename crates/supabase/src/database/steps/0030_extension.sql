-- One extension, in the schema that is meant for it. One that is there stays where it is.
DECLARE
  extension_name text := current_setting('stanchion.extension');
  place text := current_setting('stanchion.extension_schema');
BEGIN
  IF EXISTS (SELECT FROM pg_extension e WHERE e.extname = extension_name) THEN
    RETURN;
  END IF;
  EXECUTE format('CREATE EXTENSION %I', extension_name)
    || CASE WHEN place = '' THEN '' ELSE format(' WITH SCHEMA %I', place) END;
END;
