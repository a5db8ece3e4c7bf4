DO $handover$
DECLARE
  leaving CONSTANT pg_catalog.oid :=
    (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = pg_catalog.current_setting('stanchion.handover'));
  version CONSTANT pg_catalog.int4 := pg_catalog.current_setting('server_version_num');
  thing record;
  holder record;
BEGIN
  FOR thing IN
    SELECT pg_catalog.format('ROUTINE %s', p.oid::pg_catalog.regprocedure) AS name, p.proacl AS acl
    FROM pg_catalog.pg_proc p WHERE p.proowner = leaving AND p.prosecdef
  LOOP
    EXECUTE pg_catalog.format('ALTER %s SECURITY INVOKER', thing.name);
    FOR holder IN
      SELECT DISTINCT pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) AS name
      FROM pg_catalog.aclexplode(thing.acl) a WHERE a.is_grantable AND a.grantee NOT IN (0, leaving)
    LOOP
      EXECUTE pg_catalog.format('REVOKE GRANT OPTION FOR ALL PRIVILEGES ON %s FROM %s CASCADE', thing.name, holder.name);
    END LOOP;
    EXECUTE pg_catalog.format('REVOKE ALL PRIVILEGES ON %s FROM PUBLIC', thing.name);
  END LOOP;

  FOR thing IN
    SELECT c.oid, c.relkind, c.relacl AS acl, c.oid::pg_catalog.regclass::pg_catalog.text AS name,
           EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid AND w.ev_type <> '1') AS ruled
    FROM pg_catalog.pg_class c WHERE c.relowner = leaving AND c.relkind IN ('v', 'm')
  LOOP
    IF thing.relkind = 'v' AND NOT coalesce((
      SELECT o.option_value::pg_catalog.bool
      FROM pg_catalog.pg_class c, pg_catalog.pg_options_to_table(c.reloptions) o
      WHERE c.oid = thing.oid AND o.option_name = 'security_invoker'), false)
    THEN
      EXECUTE pg_catalog.format('ALTER VIEW %s SET (security_invoker = true)', thing.name);
      FOR holder IN
        SELECT DISTINCT pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) AS name
        FROM pg_catalog.aclexplode(thing.acl) a WHERE a.is_grantable AND a.grantee NOT IN (0, leaving)
      LOOP
        EXECUTE pg_catalog.format('REVOKE GRANT OPTION FOR ALL PRIVILEGES ON TABLE %s FROM %s CASCADE',
                                  thing.name, holder.name);
      END LOOP;
      EXECUTE pg_catalog.format('REVOKE ALL PRIVILEGES ON TABLE %s FROM PUBLIC', thing.name);
    END IF;
    IF thing.ruled OR (thing.relkind = 'm' AND version >= 170000) THEN
      FOR holder IN
        SELECT DISTINCT CASE held.grantee WHEN 0 THEN 'PUBLIC'
                        ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(held.grantee)) END AS name
        FROM (SELECT a.grantee FROM pg_catalog.aclexplode(thing.acl) a
              UNION SELECT a.grantee FROM pg_catalog.pg_attribute t, pg_catalog.aclexplode(t.attacl) a
                    WHERE t.attrelid = thing.oid) held
        WHERE held.grantee <> leaving
      LOOP
        IF thing.ruled THEN
          EXECUTE pg_catalog.format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON TABLE %s FROM %s CASCADE',
                                    thing.name, holder.name);
        END IF;
        IF thing.relkind = 'm' AND version >= 170000 THEN
          EXECUTE pg_catalog.format('REVOKE MAINTAIN ON TABLE %s FROM %s CASCADE', thing.name, holder.name);
        END IF;
      END LOOP;
    END IF;
  END LOOP;

  FOR thing IN
    SELECT pg_catalog.format('ALTER TABLE %s DISABLE RULE %I', c.oid::pg_catalog.regclass, w.rulename) AS command
    FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_class c ON c.oid = w.ev_class
    WHERE c.relowner = leaving AND c.relkind IN ('r', 'p') AND w.ev_enabled <> 'D'
  LOOP
    EXECUTE thing.command;
  END LOOP;

  FOR thing IN SELECT e.evtname AS name FROM pg_catalog.pg_event_trigger e WHERE e.evtowner = leaving LOOP
    EXECUTE pg_catalog.format('ALTER EVENT TRIGGER %I DISABLE', thing.name);
    EXECUTE pg_catalog.format('ALTER EVENT TRIGGER %I OWNER TO CURRENT_USER', thing.name);
  END LOOP;

  FOR thing IN
    SELECT s.subname AS name FROM pg_catalog.pg_subscription s
    WHERE s.subowner = leaving
      AND s.subdbid = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
  LOOP
    EXECUTE pg_catalog.format('ALTER SUBSCRIPTION %I DISABLE', thing.name);
    EXECUTE pg_catalog.format('ALTER SUBSCRIPTION %I OWNER TO CURRENT_USER', thing.name);
  END LOOP;

  FOR thing IN
    SELECT p.pubname AS name FROM pg_catalog.pg_publication p
    WHERE p.pubowner = leaving
      AND (p.puballtables OR EXISTS (SELECT FROM pg_catalog.pg_publication_namespace n WHERE n.pnpubid = p.oid))
  LOOP
    EXECUTE pg_catalog.format('ALTER PUBLICATION %I SET (publish = '''')', thing.name);
    EXECUTE pg_catalog.format('ALTER PUBLICATION %I OWNER TO CURRENT_USER', thing.name);
  END LOOP;
END
$handover$
