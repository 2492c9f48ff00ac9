//! A real PostgreSQL for tests: a database of its own for each of them.
//!
//! Its server is, in this order,
//!
//! 1. the one that `HANGO_TEST_DATABASE_URL` names, as a role that may create databases;
//! 2. a container, where a Docker engine answers;
//! 3. a cluster of the machine's own programs: those in `HANGO_PG_BINDIR`, else the newest of
//!    `/usr/lib/postgresql/*/bin`; as root it runs as `nobody`, and in memory where there is `/dev/shm`.
//!
//! Where there is none of them a test fails and says what to install: it is never left out.
//!
//! A process starts one server, which all of its tests share, and which ends with the process, however
//! that ends (`guardian`). Tests that stop and restart a server have a [`Cluster`] of their own.

mod cluster;
mod container;
mod database;
mod guardian;
mod programs;
mod server;

pub use cluster::{Cluster, Settings, Stop};
pub use database::TestDatabase;
pub use guardian::Guardian;
