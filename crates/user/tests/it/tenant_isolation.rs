//! Attacks of a tenant who may write objects in one namespace, against objects of others on a shared server.
//! `docs/security/users.md` lists them.

mod boundary;
mod handover;
mod locks;
mod marks;
mod powers;
mod tenants;
mod upgrade;
mod withdrawal;
