-- Removes what the operator created here, and nothing else. Each object is dropped in its own subtransaction: an object that
-- others depend on stays, and the reason is reported. Objects of others are listed before the first
-- and after each DROP.
DECLARE
  thing record;
  ours oid[];
  services text[];
  extensions text[];
  had text[];
  has text[];
  lost text;
  remains text[] := '{}';
  -- The new owner of objects that people created in Studio: a role without privileges.
  keeper text := current_setting('stanchion.keeper');
  -- Everything in schemas of users, and their objects in the schemas of the services.
  others text := $query$
    WITH mine (catalog, oid) AS (
      SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
      WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = ANY ($3)),
    place (oid) AS (
      SELECT n.oid FROM pg_namespace n WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'),
    relation (oid) AS (
      SELECT c.oid FROM pg_class c
      WHERE c.relnamespace IN (SELECT oid FROM place)
        AND NOT (c.relnamespace = ANY ($1) AND pg_get_userbyid(c.relowner) = ANY ($2))
        AND ('pg_class'::regclass, c.oid) NOT IN (SELECT catalog, oid FROM mine)),
    thing (catalog, oid, part) AS (
      SELECT 'pg_namespace'::regclass, p.oid, 0 FROM place p
      WHERE p.oid <> ALL ($1) AND ('pg_namespace'::regclass, p.oid) NOT IN (SELECT catalog, oid FROM mine)
      UNION ALL SELECT 'pg_class'::regclass, r.oid, 0 FROM relation r
      UNION ALL SELECT 'pg_class'::regclass, a.attrelid, a.attnum FROM pg_attribute a JOIN relation r ON r.oid = a.attrelid
        WHERE a.attnum > 0 AND NOT a.attisdropped
      UNION ALL SELECT 'pg_attrdef'::regclass, d.oid, 0 FROM pg_attrdef d JOIN relation r ON r.oid = d.adrelid
      UNION ALL SELECT 'pg_constraint'::regclass, k.oid, 0 FROM pg_constraint k JOIN relation r ON r.oid = k.conrelid
      UNION ALL SELECT 'pg_trigger'::regclass, t.oid, 0 FROM pg_trigger t JOIN relation r ON r.oid = t.tgrelid
        WHERE NOT t.tgisinternal
      UNION ALL SELECT 'pg_policy'::regclass, p.oid, 0 FROM pg_policy p JOIN relation r ON r.oid = p.polrelid
      UNION ALL SELECT 'pg_proc'::regclass, p.oid, 0 FROM pg_proc p
        WHERE p.pronamespace IN (SELECT oid FROM place)
          AND NOT (p.pronamespace = ANY ($1) AND (pg_get_userbyid(p.proowner) = ANY ($2) OR p.proname = ANY (
            ARRAY['pgrst_ddl_watch', 'pgrst_drop_watch', 'grant_pg_cron_access', 'grant_pg_net_access',
                  'grant_pg_graphql_access', 'graphql', 'get_auth', 'open_extension'])))
          AND ('pg_proc'::regclass, p.oid) NOT IN (SELECT catalog, oid FROM mine)
      UNION ALL SELECT 'pg_type'::regclass, t.oid, 0 FROM pg_type t
        WHERE t.typtype IN ('d', 'e', 'r') AND t.typnamespace IN (SELECT oid FROM place)
          AND NOT (t.typnamespace = ANY ($1) AND pg_get_userbyid(t.typowner) = ANY ($2))
          AND ('pg_type'::regclass, t.oid) NOT IN (SELECT catalog, oid FROM mine)
      UNION ALL SELECT 'pg_extension'::regclass, e.oid, 0 FROM pg_extension e WHERE e.extname <> ALL ($3)
      UNION ALL SELECT 'pg_event_trigger'::regclass, t.oid, 0 FROM pg_event_trigger t
        WHERE t.evtname NOT IN (SELECT m.name FROM _stanchion.made m WHERE m.kind = 'event trigger'))
    SELECT coalesce(array_agg(pg_describe_object(t.catalog, t.oid, t.part)), '{}') FROM thing t
  $query$;
BEGIN
  SELECT coalesce(array_agg(n.oid), '{}') INTO ours FROM pg_namespace n
  WHERE n.nspname = '_stanchion' OR n.nspname IN (SELECT m.name FROM _stanchion.made m WHERE m.kind = 'schema');
  SELECT coalesce(array_agg(m.name), '{}') INTO extensions FROM _stanchion.made m WHERE m.kind = 'extension';
  -- Objects that people create in Studio belong to them, under any role. Tables of the services are never in their schemas.
  SELECT array_agg(r.rolname) INTO services FROM pg_roles r
  WHERE r.rolname IN ('supabase_admin', 'supabase_realtime_admin', current_setting('stanchion.auth'),
    current_setting('stanchion.storage'), current_setting('stanchion.realtime'), current_setting('stanchion.functions'));

  EXECUTE others INTO had USING ours, services, extensions;
  FOR thing IN
    SELECT m.kind, m.name FROM _stanchion.made m WHERE m.kind <> 'database'
    ORDER BY array_position(ARRAY['connect', 'event trigger', 'publication', 'setting', 'schema', 'extension', 'role'], m.kind),
             -- The schema of extensions is dropped after them; logins before the roles that they may become.
             m.name IN ('extensions', 'anon', 'authenticated', 'service_role', 'supabase_admin', 'postgres'), m.name
  LOOP
    BEGIN
      CASE thing.kind
      WHEN 'connect' THEN EXECUTE format('GRANT CONNECT ON DATABASE %I TO PUBLIC', current_database());
      WHEN 'event trigger' THEN EXECUTE format('DROP EVENT TRIGGER IF EXISTS %I', thing.name);
      WHEN 'publication' THEN EXECUTE format('DROP PUBLICATION IF EXISTS %I', thing.name);
      WHEN 'setting' THEN
        EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I RESET %I', current_database(), thing.name);
      WHEN 'schema' THEN EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', thing.name);
      WHEN 'extension' THEN EXECUTE format('DROP EXTENSION IF EXISTS %I CASCADE', thing.name);
      WHEN 'role' THEN
        IF EXISTS (SELECT FROM pg_roles r WHERE r.rolname = thing.name) THEN
          -- Without superuser, objects can be reassigned only to a role that may create where the old owner did.
          IF current_setting('is_superuser') = 'on' THEN
            EXECUTE format('REASSIGN OWNED BY %I TO %I', thing.name, keeper);
          ELSE
            EXECUTE format('GRANT %I TO %I', thing.name, keeper);
            EXECUTE format('REASSIGN OWNED BY %I TO %I', thing.name, keeper);
            EXECUTE format('REVOKE %I FROM %I', thing.name, keeper);
          END IF;
          EXECUTE format('DROP OWNED BY %I', thing.name);
          EXECUTE format('DROP ROLE %I', thing.name);
        END IF;
      END CASE;
      EXECUTE others INTO has USING ours, services, extensions;
      SELECT string_agg(o, ', ' ORDER BY o) INTO lost
      FROM (SELECT unnest(had) EXCEPT SELECT unnest(has) LIMIT 5) AS gone (o);
      IF lost IS NOT NULL THEN
        RAISE EXCEPTION 'it is used by %', lost USING ERRCODE = 'dependent_objects_still_exist';
      END IF;
      had := has;
    EXCEPTION WHEN OTHERS THEN
      IF left(SQLSTATE, 2) IN ('40', '53', '57', 'XX') OR SQLSTATE = '55P03' THEN
        RAISE;
      END IF;
      remains := remains || format('%s %s: %s', thing.kind, thing.name, SQLERRM);
    END;
  END LOOP;
  DROP SCHEMA _stanchion CASCADE;
  PERFORM set_config('stanchion.left', array_to_string(remains, '; '), true);
END;
