-- In the database of analytics and pooler: a schema for one of them, which nobody else reaches.
DECLARE
  place text := current_setting('stanchion.schema');
  owner text := current_setting(current_setting('stanchion.schema_owner'));
BEGIN
  EXECUTE format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
  -- Both create extensions, and analytics a publication.
  EXECUTE format('GRANT CONNECT, CREATE, TEMPORARY ON DATABASE %I TO %I', current_database(), owner);
  IF to_regnamespace(place) IS NULL THEN
    EXECUTE format('CREATE SCHEMA %I AUTHORIZATION %I', place, owner);
  ELSE
    EXECUTE format('GRANT ALL ON SCHEMA %I TO %I', place, owner);
  END IF;
END;
