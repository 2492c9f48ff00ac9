//! hango
fn main() {}
