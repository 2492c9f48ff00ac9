//! hango-memory
