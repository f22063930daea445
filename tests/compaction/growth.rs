//! What compaction costs: memory close to the text, and no step that copies the text gathered so far.

use crate::{Gathered, args, text};

/// Deltas of 1 KiB, of `targets` messages in turn.
fn grown(events: usize, targets: usize) -> Gathered {
    let delta = "x".repeat(1024);
    let mut gathered = Gathered::new();
    for number in 0..events {
        gathered.add(&args(&format!("call-{}", number % targets), &delta));
    }
    gathered
}

#[test]
fn memory_stays_close_to_the_text() {
    for targets in [1, 2, 16] {
        let gathered = grown(4_096, targets);
        let text_bytes = 4_096 * 1024_u64;
        let held = gathered.0.text.memory_bytes();
        let most = text_bytes + text_bytes / 10 + targets as u64 * (64 << 10);
        assert!(held < most, "{targets} targets: {held} bytes for {text_bytes}");
    }
}

#[test]
fn a_small_run_stays_small() {
    let mut gathered = Gathered::new();
    for _ in 0..100 {
        gathered.add(&text("message-1", "a word, "));
    }
    assert!(gathered.0.text.memory_bytes() <= 1 << 10, "{}", gathered.0.text.memory_bytes());
}

#[test]
fn a_capture_shares_the_text_and_copies_only_the_open_block() {
    let mut gathered = grown(4_096, 1);
    let before = gathered.0.text.capture();
    gathered.add(&args("call-0", "tail"));
    let after = gathered.0.text.capture();
    let shared = before.pieces().zip(after.pieces()).filter(|(a, b)| std::sync::Arc::ptr_eq(a, b)).count();
    assert!(shared + 1 >= before.pieces_len(), "{shared} of {} pieces are shared", before.pieces_len());
    let copied: usize = after.pieces().skip(shared).map(|piece| piece.len()).sum();
    assert!(copied <= 64 << 10, "{copied} bytes were copied");
}

#[test]
fn interleaving_changes_no_byte_of_any_target() {
    for targets in [2, 3, 50] {
        let snapshot = String::from_utf8(grown(500, targets).snapshot()).unwrap();
        let entries: Vec<serde_json::Value> = serde_json::from_str(&snapshot).unwrap();
        assert_eq!(entries.len(), targets);
        for (number, entry) in entries.iter().enumerate() {
            assert_eq!(entry["toolCallId"], format!("call-{number}"));
            let deltas = (number..500).step_by(targets).count();
            assert_eq!(entry["delta"].as_str().unwrap().len(), deltas * 1024);
        }
    }
}
