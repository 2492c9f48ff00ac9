//! hango-http
