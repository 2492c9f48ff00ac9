//! hango
