//! The scan of JSON strings, sixteen bytes at a step: most bytes of most events are looked at here and nowhere else
//! one by one.

use wide::u8x16;

const LANES: usize = 16;

/// Where the first quote, backslash or control character stands at or behind `at`; the end if there is none.
#[inline]
pub(super) fn plain_end(json: &[u8], at: usize) -> usize {
    let rest = json.get(at..).unwrap_or_default();
    let (chunks, tail) = rest.as_chunks::<LANES>();
    let mut from = at;
    for chunk in chunks {
        let found = special(*chunk);
        if found != 0 {
            return from + found.trailing_zeros() as usize;
        }
        from += LANES;
    }
    match json.last_chunk::<LANES>() {
        // The last sixteen bytes, of which the first were looked at before.
        Some(last) => {
            let found = special(*last) >> (LANES - tail.len());
            if found == 0 { json.len() } else { from + found.trailing_zeros() as usize }
        }
        None => from + tail.iter().position(|byte| is_special(*byte)).unwrap_or(tail.len()),
    }
}

/// One bit for each byte that ends a plain stretch.
#[inline]
fn special(bytes: [u8; LANES]) -> u32 {
    let bytes = u8x16::new(bytes);
    let control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    (control | bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'))).to_bitmask()
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_found_or_passed() {
        for length in [0, 1, 15, 16, 17, 31, 32, 33, 50] {
            for place in 0..length {
                for byte in 0..=255_u8 {
                    let mut json = vec![b'x'; length];
                    json[place] = byte;
                    for at in [0, place / 2, place] {
                        let expected = if is_special(byte) { place } else { length };
                        assert_eq!(
                            plain_end(&json, at),
                            expected,
                            "{byte} at {place} of {length}, from {at}"
                        );
                    }
                    assert_eq!(plain_end(&json, place + 1), length, "behind {place} of {length}");
                }
            }
        }
    }
}
