-- A function of Realtime's sets this parameter.
BEGIN
  EXECUTE format('GRANT SET ON PARAMETER log_min_messages TO supabase_realtime_admin, %I', current_setting('stanchion.realtime'));
END;
