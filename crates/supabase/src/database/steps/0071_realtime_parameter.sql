-- A function of Realtime's sets this parameter. Its login inherits the right; the server has one row for it, which
-- all projects would otherwise write at once.
BEGIN
  IF NOT has_parameter_privilege('supabase_realtime_admin', 'log_min_messages', 'SET') THEN
    GRANT SET ON PARAMETER log_min_messages TO supabase_realtime_admin;
  END IF;
END;
