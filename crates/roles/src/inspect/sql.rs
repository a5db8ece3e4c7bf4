//! The SQL of the catalog queries.

/// Planner settings for the rest of the transaction. Right after a large apply the statistics still describe a small
/// catalog, and the planner would compare every role with every row; a hash join is never much worse, and no query is
/// worth JIT compilation.
pub(super) const PLANNER: &str =
    "SELECT set_config('enable_nestloop', $1, true), set_config('jit', 'off', true)";

pub(super) const SERVER: &str = "\
SELECT current_setting('server_version_num')::int4, d.datname::text, current_user::text,
       (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user),
       has_table_privilege('pg_catalog.pg_authid', 'SELECT'),
       pg_get_userbyid(d.datdba)::text, d.datacl::text[], current_setting('createrole_self_grant', true)
FROM pg_database d WHERE d.datname = current_database()";

/// Not used for superusers, who need no membership.
pub(super) const ACTS_AS: &str = "\
SELECT r.rolname::text FROM pg_roles r
WHERE pg_has_role(current_user, r.oid, 'USAGE')
  AND NOT (SELECT s.rolsuper FROM pg_roles s WHERE s.rolname = current_user)";

pub(super) const ROLES: &str = "\
SELECT r.oid, r.rolname::text, r.rolcanlogin, r.rolsuper, r.rolcreatedb, r.rolcreaterole, r.rolinherit,
       r.rolreplication, r.rolbypassrls, r.rolconnlimit,
       CASE WHEN isfinite(r.rolvaliduntil)
            THEN to_char(r.rolvaliduntil AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') END,
       d.description, r.rolconfig
FROM pg_roles r LEFT JOIN pg_shdescription d ON d.objoid = r.oid AND d.classoid = 'pg_authid'::regclass
WHERE r.rolname = ANY ($1)";

pub(super) const VERIFIERS: &str =
    "SELECT rolname::text, rolpassword FROM pg_authid WHERE rolname = ANY ($1)";

/// Subqueries look the names up once: a list in the condition would be searched for every row. Where a managed or retired
/// role has granted a membership, all members are needed: some depend on that grant.
pub(super) const MEMBERS: &str = "\
SELECT g.rolname::text, m.rolname::text, coalesce(b.rolname, '')::text, a.grantor = 10, a.admin_option,
       a.inherit_option, a.set_option
FROM pg_auth_members a
JOIN pg_roles g ON g.oid = a.roleid JOIN pg_roles m ON m.oid = a.member LEFT JOIN pg_roles b ON b.oid = a.grantor
WHERE a.roleid IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($1))
   OR a.member IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($2))
   OR a.roleid IN (SELECT d.roleid FROM pg_auth_members d
                   WHERE d.grantor IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($2) OR rolname = ANY ($3)))";

/// Before PostgreSQL 16 the member decides whether it inherits.
pub(super) const MEMBERS_15: &str = "\
SELECT g.rolname::text, m.rolname::text, '', true, a.admin_option, m.rolinherit, true
FROM pg_auth_members a
JOIN pg_roles g ON g.oid = a.roleid JOIN pg_roles m ON m.oid = a.member
WHERE a.roleid IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($1))
   OR a.member IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($2))";

/// Memberships above some roles, also of unmanaged ones: a circle can close anywhere.
pub(super) const ANCESTRY: &str = "\
WITH RECURSIVE above AS (
  SELECT oid FROM pg_roles WHERE rolname = ANY ($1)
  UNION SELECT a.roleid FROM pg_auth_members a JOIN above ON above.oid = a.member)
SELECT DISTINCT g.rolname::text, m.rolname::text
FROM above JOIN pg_auth_members a ON a.member = above.oid
JOIN pg_roles g ON g.oid = a.roleid JOIN pg_roles m ON m.oid = a.member";

pub(super) const SCHEMAS: &str = "\
SELECT n.oid, n.nspname::text, pg_get_userbyid(n.nspowner)::text, n.nspacl::text[]
FROM pg_namespace n WHERE n.nspname = ANY ($1)";

/// Objects without an ACL are fetched only if their existence matters.
pub(super) const RELATIONS: &str = "\
SELECT c.relnamespace, c.relname::text, c.relkind::text, pg_get_userbyid(c.relowner)::text, c.relacl::text[]
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
  AND (c.relacl IS NOT NULL OR c.relkind::text = ANY ($2) OR c.relname = ANY ($3))";

pub(super) const ROUTINES: &str = "\
SELECT p.pronamespace, p.proname::text,
       ARRAY(SELECT format_type(t.oid, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS t (oid, place)
             ORDER BY t.place),
       pg_get_userbyid(p.proowner)::text, p.proacl::text[]
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = ANY ($1) AND ($2 OR p.proacl IS NOT NULL OR p.proname = ANY ($3))";

/// Arrays and multiranges have no privileges of their own.
pub(super) const TYPES: &str = "\
SELECT t.typnamespace, t.typname::text, pg_get_userbyid(t.typowner)::text, t.typacl::text[]
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE n.nspname = ANY ($1) AND t.typtype NOT IN ('p', 'm')
  AND NOT (t.typelem <> 0 AND t.typsubscript = 'array_subscript_handler'::regproc)
  AND ($2 OR t.typacl IS NOT NULL OR t.typname = ANY ($3))";

pub(super) const COLUMNS: &str = "\
SELECT n.nspname::text, c.relname::text, a.attname::text, pg_get_userbyid(c.relowner)::text, a.attacl::text[]
FROM unnest($1::text[], $2::text[]) AS wanted (nsp, rel)
JOIN pg_namespace n ON n.nspname = wanted.nsp
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.rel
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attacl IS NOT NULL AND NOT a.attisdropped";

pub(super) const GLOBALS: &str = "\
SELECT 'language', lanname::text, pg_get_userbyid(lanowner)::text, lanacl::text[]
  FROM pg_language WHERE lanname = ANY ($1)
UNION ALL SELECT 'foreign_data_wrapper', fdwname::text, pg_get_userbyid(fdwowner)::text, fdwacl::text[]
  FROM pg_foreign_data_wrapper WHERE fdwname = ANY ($2)
UNION ALL SELECT 'foreign_server', srvname::text, pg_get_userbyid(srvowner)::text, srvacl::text[]
  FROM pg_foreign_server WHERE srvname = ANY ($3)
UNION ALL SELECT 'tablespace', spcname::text, pg_get_userbyid(spcowner)::text, spcacl::text[]
  FROM pg_tablespace WHERE spcname = ANY ($4)
UNION ALL SELECT 'large_object', oid::text, pg_get_userbyid(lomowner)::text, lomacl::text[]
  FROM pg_largeobject_metadata WHERE oid::text = ANY ($5)
UNION ALL SELECT 'parameter', parname, pg_get_userbyid(10)::text, paracl::text[]
  FROM pg_parameter_acl WHERE parname = ANY ($6)";

/// Default privileges in the managed schemas, global ones, and those of managed roles in other schemas.
pub(super) const DEFAULTS: &str = "\
SELECT pg_get_userbyid(d.defaclrole)::text, n.nspname::text, d.defaclobjtype::text, d.defaclacl::text[]
FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace
WHERE d.defaclnamespace = 0
   OR d.defaclnamespace IN (SELECT oid FROM pg_namespace WHERE nspname = ANY ($1))
   OR d.oid IN (
     SELECT s.objid FROM pg_shdepend s
     WHERE s.classid = 'pg_default_acl'::regclass AND s.refclassid = 'pg_authid'::regclass AND s.deptype = 'a'
       AND s.refobjid IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($2))
       AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database()))";

/// Privileges of managed roles outside of the managed schemas, and on columns anywhere. `pg_shdepend` records every
/// object whose ACL mentions a role (except the owner's own entry); most of them are in scope and are not fetched
/// again.
pub(super) const ELSEWHERE: &str = "\
WITH held AS MATERIALIZED (
  SELECT d.classid, d.objid, d.objsubid
  FROM pg_shdepend d
  WHERE d.refclassid = 'pg_authid'::regclass AND d.deptype = 'a'
    AND d.refobjid IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($1))
    AND d.dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))),
outside AS MATERIALIZED (
  SELECT n.oid, n.nspname::text AS name, n.nspowner, n.nspacl
  FROM pg_namespace n LEFT JOIN unnest($2::text[]) AS inside (name) ON inside.name = n.nspname::text
  WHERE inside.name IS NULL)
SELECT CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized_view' WHEN 'S' THEN 'sequence'
                      WHEN 'f' THEN 'foreign_table' ELSE 'table' END,
       o.name, c.relname::text, NULL::text, NULL::text[], pg_get_userbyid(c.relowner)::text, c.relacl::text[]
  FROM pg_class c JOIN outside o ON o.oid = c.relnamespace
  WHERE c.relacl IS NOT NULL
    AND c.oid IN (SELECT objid FROM held WHERE classid = 'pg_class'::regclass AND objsubid = 0)
UNION ALL SELECT 'table', n.nspname::text, c.relname::text,
       (SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = h.objid AND a.attnum = h.objsubid), NULL,
       pg_get_userbyid(c.relowner)::text,
       (SELECT a.attacl::text[] FROM pg_attribute a WHERE a.attrelid = h.objid AND a.attnum = h.objsubid)
  FROM (SELECT DISTINCT objid, objsubid FROM held WHERE classid = 'pg_class'::regclass AND objsubid > 0) h
  JOIN pg_class c ON c.oid = h.objid JOIN pg_namespace n ON n.oid = c.relnamespace
UNION ALL SELECT 'function', o.name, p.proname::text, NULL,
       ARRAY(SELECT format_type(t.oid, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS t (oid, place)
             ORDER BY t.place),
       pg_get_userbyid(p.proowner)::text, p.proacl::text[]
  FROM pg_proc p JOIN outside o ON o.oid = p.pronamespace
  WHERE p.proacl IS NOT NULL AND p.oid IN (SELECT objid FROM held WHERE classid = 'pg_proc'::regclass)
UNION ALL SELECT 'type', o.name, t.typname::text, NULL, NULL, pg_get_userbyid(t.typowner)::text, t.typacl::text[]
  FROM pg_type t JOIN outside o ON o.oid = t.typnamespace
  WHERE t.typacl IS NOT NULL AND t.oid IN (SELECT objid FROM held WHERE classid = 'pg_type'::regclass)
UNION ALL SELECT 'schema', NULL, o.name, NULL, NULL, pg_get_userbyid(o.nspowner)::text, o.nspacl::text[]
  FROM outside o WHERE o.oid IN (SELECT objid FROM held WHERE classid = 'pg_namespace'::regclass)
UNION ALL SELECT 'language', NULL, lanname::text, NULL, NULL, pg_get_userbyid(lanowner)::text, lanacl::text[]
  FROM pg_language WHERE oid IN (SELECT objid FROM held WHERE classid = 'pg_language'::regclass)
UNION ALL SELECT 'foreign_data_wrapper', NULL, fdwname::text, NULL, NULL, pg_get_userbyid(fdwowner)::text, fdwacl::text[]
  FROM pg_foreign_data_wrapper WHERE oid IN (SELECT objid FROM held WHERE classid = 'pg_foreign_data_wrapper'::regclass)
UNION ALL SELECT 'foreign_server', NULL, srvname::text, NULL, NULL, pg_get_userbyid(srvowner)::text, srvacl::text[]
  FROM pg_foreign_server WHERE oid IN (SELECT objid FROM held WHERE classid = 'pg_foreign_server'::regclass)
UNION ALL SELECT 'tablespace', NULL, spcname::text, NULL, NULL, pg_get_userbyid(spcowner)::text, spcacl::text[]
  FROM pg_tablespace WHERE oid IN (SELECT objid FROM held WHERE classid = 'pg_tablespace'::regclass)
UNION ALL SELECT 'large_object', NULL, oid::text, NULL, NULL, pg_get_userbyid(lomowner)::text, lomacl::text[]
  FROM pg_largeobject_metadata WHERE oid IN (SELECT objid FROM held WHERE classid = 'pg_largeobject'::regclass)
UNION ALL SELECT 'parameter', NULL, parname, NULL, NULL, pg_get_userbyid(10)::text, paracl::text[]
  FROM pg_parameter_acl WHERE oid IN (SELECT objid FROM held WHERE classid = 'pg_parameter_acl'::regclass)";

/// Objects of other databases can be counted, but not named. The diff removes the memberships that the role has granted.
pub(super) const DEPENDENCIES: &str = "\
SELECT r.rolname::text, b.datname::text, d.deptype = 'o',
       d.classid NOT IN ('pg_default_acl'::regclass, 'pg_user_mapping'::regclass), count(*),
       min(CASE WHEN d.dbid = 0 OR b.datname = current_database()
                THEN pg_describe_object(d.classid, d.objid, d.objsubid) END)
FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid LEFT JOIN pg_database b ON b.oid = d.dbid
WHERE d.refclassid = 'pg_authid'::regclass AND d.deptype IN ('o', 'a', 'r', 'i') AND r.rolname = ANY ($1)
  AND d.classid <> 'pg_auth_members'::regclass
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4";

pub(super) const SESSIONS: &str = "\
SELECT r.rolname::text, count(*)
FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
WHERE r.rolname = ANY ($1) AND a.pid <> pg_backend_pid() GROUP BY 1";
