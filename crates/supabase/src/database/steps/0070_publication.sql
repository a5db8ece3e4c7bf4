-- The tables that Realtime follows. Studio adds and removes them, so the publication is Studio's.
BEGIN
  IF NOT EXISTS (SELECT FROM pg_publication p WHERE p.pubname = 'supabase_realtime') THEN
    CREATE PUBLICATION supabase_realtime;
    EXECUTE format('ALTER PUBLICATION supabase_realtime OWNER TO %I', current_setting('stanchion.meta'));
  END IF;
END;
