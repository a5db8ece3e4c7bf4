-- Drops the keeper role if it owns nothing.
DECLARE
  keeper text := current_setting('stanchion.keeper');
BEGIN
  IF NOT EXISTS (
    SELECT FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid
    WHERE d.refclassid = 'pg_authid'::regclass AND r.rolname = keeper)
  THEN
    EXECUTE format('DROP ROLE IF EXISTS %I', keeper);
  END IF;
END;
