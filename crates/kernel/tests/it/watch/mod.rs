//! What wakes an object, on a real API server: traps 1 and 2 (kube's shared streams lose deletions and events), the
//! index of what was read, and watches with malformed objects or missing permissions.

mod children;
mod external;
mod malformed;
mod names;
mod primary;
mod rbac;
mod secrets;
