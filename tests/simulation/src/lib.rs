//! The engine under virtual time.
