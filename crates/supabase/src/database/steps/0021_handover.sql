-- What we ourselves own in a service's schema was made by the service when it still logged in as we do. It
-- becomes the service's, or its next migration would fail. What others own stays theirs.
DECLARE
  thing record;
BEGIN
  FOR thing IN
    WITH handed (schema, owner) AS (VALUES
      ('auth', current_setting('stanchion.auth')),
      ('storage', current_setting('stanchion.storage')),
      ('realtime', 'supabase_admin'),
      ('_realtime', 'supabase_admin'),
      ('supabase_functions', current_setting('stanchion.functions'))),
    ours AS (
      SELECT 'pg_class'::regclass AS catalog, c.oid, c.relnamespace AS namespace,
             CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
                            WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END AS kind,
             c.oid::regclass::text AS name
      FROM pg_class c
      WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND c.relowner = to_regrole(quote_ident(current_user))
        -- The sequence of a column goes with its table.
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                                                  AND d.deptype IN ('a', 'i') AND c.relkind = 'S')
      UNION ALL
      SELECT 'pg_proc'::regclass, p.oid, p.pronamespace, 'ROUTINE', p.oid::regprocedure::text
      FROM pg_proc p WHERE p.proowner = to_regrole(quote_ident(current_user))
      UNION ALL
      SELECT 'pg_type'::regclass, t.oid, t.typnamespace, 'TYPE', t.oid::regtype::text
      FROM pg_type t LEFT JOIN pg_class r ON r.oid = t.typrelid
      WHERE t.typowner = to_regrole(quote_ident(current_user))
        AND (t.typtype IN ('e', 'd', 'r') OR (t.typtype = 'c' AND r.relkind = 'c')))
    SELECT o.kind, o.name, h.owner
    FROM ours o
    JOIN pg_namespace n ON n.oid = o.namespace
    JOIN handed h ON h.schema = n.nspname AND h.owner <> current_user
    WHERE NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = o.catalog AND d.objid = o.oid AND d.deptype = 'e')
  LOOP
    EXECUTE format('ALTER %s %s OWNER TO %I', thing.kind, thing.name, thing.owner);
  END LOOP;
END;
