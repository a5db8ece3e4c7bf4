//! `SupabaseProject`: a whole Supabase on a PostgreSQL and an S3 that somebody else runs.
//!
//! | module | subject |
//! |---|---|
//! | [`database`] | what the services need in the database, made once and recorded there |
//! | [`dependencies`] | whether PostgreSQL and S3 answer, and if not, why not |

pub mod database;
pub mod dependencies;
