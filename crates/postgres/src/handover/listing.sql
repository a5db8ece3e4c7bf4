WITH me AS (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = $1)
SELECT found.what, pg_catalog.count(*) OVER () FROM (
  SELECT pg_catalog.format('function %s', p.oid::pg_catalog.regprocedure) AS what
  FROM pg_catalog.pg_proc p, me WHERE p.proowner = me.oid AND p.prosecdef
  UNION ALL
  SELECT pg_catalog.format('view %s', c.oid::pg_catalog.regclass)
  FROM pg_catalog.pg_class c, me WHERE c.relowner = me.oid AND c.relkind = 'v' AND (
    EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid AND w.ev_type <> '1')
    OR NOT coalesce((SELECT o.option_value::pg_catalog.bool FROM pg_catalog.pg_options_to_table(c.reloptions) o
                     WHERE o.option_name = 'security_invoker'), false))
  UNION ALL
  SELECT pg_catalog.format('rule %I of %s', w.rulename, c.oid::pg_catalog.regclass)
  FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_class c ON c.oid = w.ev_class, me
  WHERE c.relowner = me.oid AND c.relkind IN ('r', 'p') AND w.ev_enabled <> 'D'
  UNION ALL
  SELECT pg_catalog.format('event trigger %I', e.evtname) FROM pg_catalog.pg_event_trigger e, me WHERE e.evtowner = me.oid
  UNION ALL
  SELECT pg_catalog.format('subscription %I', s.subname) FROM pg_catalog.pg_subscription s, me
  WHERE s.subowner = me.oid
    AND s.subdbid = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
  UNION ALL
  SELECT pg_catalog.format('publication %I', p.pubname) FROM pg_catalog.pg_publication p, me
  WHERE p.pubowner = me.oid
    AND (p.puballtables OR EXISTS (SELECT FROM pg_catalog.pg_publication_namespace n WHERE n.pnpubid = p.oid))
) found ORDER BY 1 LIMIT 20
