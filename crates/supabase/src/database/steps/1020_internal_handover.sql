-- What we ourselves own in the schema of analytics or the pooler was made when that one still logged in as we do. It
-- becomes its login's, or the next migration would fail. What others own stays theirs.
DECLARE
  place text := current_setting('stanchion.schema');
  owner text := current_setting(current_setting('stanchion.schema_owner'));
  ours oid := to_regrole(quote_ident(current_user));
  thing record;
BEGIN
  FOR thing IN
    WITH made AS (
      SELECT 'pg_class'::regclass AS catalog, c.oid, c.relnamespace AS namespace, c.relowner AS owner,
             CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
                            WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END AS kind,
             c.oid::regclass::text AS name
      FROM pg_class c
      WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
        -- The sequence of a column goes with its table.
        AND NOT (c.relkind = 'S' AND EXISTS (
          SELECT FROM pg_depend d
          WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')))
      UNION ALL
      SELECT 'pg_proc'::regclass, p.oid, p.pronamespace, p.proowner, 'ROUTINE', p.oid::regprocedure::text FROM pg_proc p
      UNION ALL
      SELECT 'pg_type'::regclass, t.oid, t.typnamespace, t.typowner, 'TYPE', t.oid::regtype::text
      FROM pg_type t LEFT JOIN pg_class r ON r.oid = t.typrelid
      WHERE t.typtype IN ('e', 'd', 'r') OR (t.typtype = 'c' AND r.relkind = 'c'))
    SELECT m.kind, m.name FROM made m
    WHERE m.namespace = to_regnamespace(quote_ident(place)) AND m.owner = ours
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = m.catalog AND d.objid = m.oid AND d.deptype = 'e')
  LOOP
    EXECUTE format('ALTER %s %s OWNER TO %I', thing.kind, thing.name, owner);
  END LOOP;
END;
