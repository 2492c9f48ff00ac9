//! Cuts bytes into pieces; where, the bytes themselves say, so that a finding can be played again.

/// The pieces, of up to 16 bytes each.
pub(crate) fn pieces(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while let Some(first) = bytes.first() {
        let length = usize::from(first % 16 + 1).min(bytes.len());
        let (piece, rest) = bytes.split_at(length);
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}
