//! hango-sqlite
