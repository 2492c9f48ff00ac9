//! hango-ports
