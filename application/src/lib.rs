//! hango-application
