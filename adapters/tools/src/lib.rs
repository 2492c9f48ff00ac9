//! hango-tools
