//! hango-conformance
