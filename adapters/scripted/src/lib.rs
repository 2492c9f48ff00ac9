//! hango-scripted
