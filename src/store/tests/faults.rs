//! Disks that are full, read-only or locked, jobs that panic, and files that aren't ours.

use super::*;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_full_disk_fails_what_does_not_fit_and_nothing_else() {
    let dir = Dir::new("full");
    let mut bench = Bench::new(DbPath::File(dir.file()));
    let pages: i64 = bench.writer.db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let limit = |extra: i64| format!("PRAGMA max_page_count = {}", pages + extra);
    bench.sql(&limit(8));
    let large = || Job::Commit(turn(2, "d", &format!("{{\"v\":\"{}\"}}", "x".repeat(1 << 20))));
    let jobs = vec![begin(1, "c"), begin(2, "d"), begin(3, "e"), commit(1, "c"), large(), commit(3, "e")];
    assert_eq!(bench.group(jobs), ["1 committed", "2 failed", "3 committed"]);
    assert_eq!(
        recorded(&bench),
        ["1 committed - c", "2 failed disk_full d", "3 committed - e", "turns 2"],
        "the failure is recorded with the next success"
    );
    // The outcome stands, even if there is room now.
    bench.sql(&limit(10_000));
    assert_eq!(bench.group(vec![begin(2, "d"), large()]), ["2 failed"]);
    assert_eq!(bench.group(vec![begin(4, "d"), commit(4, "d")]), ["4 committed"]);
}

#[test]
fn a_read_only_database_fails_commits_until_it_recovers() {
    let dir = Dir::new("readonly");
    let mut bench = Bench::new(DbPath::File(dir.file()));
    bench.group(vec![begin(0, "c"), commit(0, "c"), begin(1, "c"), begin(5, "c")]);
    bench.sql("PRAGMA query_only = ON");
    assert_eq!(bench.group(vec![commit(1, "c"), delete("c", Some(5))]), ["1 failed", "not deleted"]);
    assert_eq!(recorded(&bench), ["0 committed - c", "turns 1"]);
    bench.sql("PRAGMA query_only = OFF");
    assert_eq!(
        bench.group(vec![begin(2, "c"), commit(2, "c"), commit(5, "c")]),
        ["2 committed", "5 skipped"]
    );
    assert_eq!(
        recorded(&bench),
        ["0 committed - c", "1 failed read_only c", "2 committed - c", "5 skipped deleted c", "turns 2"]
    );
}

#[test]
fn a_failure_is_recorded_at_the_latest_when_the_store_closes() {
    let dir = Dir::new("owed");
    let mut bench = Bench::new(DbPath::File(dir.file()));
    bench.sql("PRAGMA query_only = ON");
    assert_eq!(bench.group(vec![begin(1, "c"), commit(1, "c")]), ["1 failed"]);
    bench.sql("PRAGMA query_only = OFF");
    drop(bench.jobs);
    bench.writer.run();
    let db = Connection::open(dir.file()).unwrap();
    assert_eq!(rows(&db, "SELECT outcome || ' ' || reason FROM finalizations"), ["failed read_only"]);
}

#[test]
fn a_locked_database_fails_commits_but_not_what_only_reads() {
    let dir = Dir::new("locked");
    let mut bench = Bench::new(DbPath::File(dir.file()));
    let other = Connection::open(dir.file()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let jobs =
        vec![begin(1, "c"), commit(1, "c"), begin(2, "d"), begin(3, "e"), commit(3, "e"), ask("c", 1, 0)];
    assert_eq!(bench.group(jobs), ["1 failed", "3 failed", "Missing"]);
    other.execute_batch("COMMIT").unwrap();
    // Run 2 began under the lock; its start is known all the same.
    assert_eq!(bench.group(vec![commit(2, "d")]), ["2 committed"]);
    assert_eq!(recorded(&bench), ["1 failed locked c", "2 committed - d", "3 failed locked e", "turns 1"]);
}

#[test]
fn a_group_waits_for_a_lock_once() {
    static WAITS: AtomicUsize = AtomicUsize::new(0);
    let dir = Dir::new("waits");
    let mut bench = Bench::new(DbPath::File(dir.file()));
    let wait = |_| WAITS.fetch_add(1, Ordering::Relaxed) > usize::MAX / 2;
    bench.writer.db.busy_handler(Some(wait)).unwrap();
    let other = Connection::open(dir.file()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(bench.group((0..100).map(|number| commit(number, "c")).collect()).len(), 100);
    assert_eq!(WAITS.load(Ordering::Relaxed), 1);
}

#[test]
fn a_start_that_could_not_be_read_fails_its_commit() {
    let mut bench = Bench::new(DbPath::Memory);
    bench.sql("ALTER TABLE chats RENAME TO elsewhere");
    assert_eq!(bench.group(vec![begin(1, "c")]), [""; 0]);
    bench.sql("ALTER TABLE elsewhere RENAME TO chats");
    assert_eq!(bench.group(vec![commit(1, "c")]), ["1 failed"]);
    assert_eq!(recorded(&bench), ["1 failed begin_unread c", "turns 0"]);
}

#[test]
fn a_job_that_panics_fails_alone() {
    let mut bench = Bench::new(DbPath::Memory);
    bench.writer.sabotaged = Some(run(2));
    // What began earlier must still be known after the group was rolled back.
    bench.group(vec![begin(1, "c"), begin(2, "d"), begin(3, "e")]);
    let jobs = vec![commit(1, "c"), commit(2, "d"), commit(3, "e")];
    assert_eq!(bench.group(jobs), ["1 committed", "2 failed", "3 committed"]);
    assert_eq!(recorded(&bench), ["1 committed - c", "2 failed panic d", "3 committed - e", "turns 2"]);
}

/// Opening `file` must be refused with words that hold `because`, and must not change it.
fn check_refused(file: &Path, because: &str) {
    let before = std::fs::read(file).unwrap();
    let refusal = Store::open(&config(DbPath::File(file.to_owned())), |_| {}).unwrap_err().to_string();
    assert!(refusal.contains(because), "{refusal}");
    assert!(refusal.contains(&file.display().to_string()), "{refusal}");
    assert_eq!(std::fs::read(file).unwrap(), before, "{because}");
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_untouched() {
    let dir = Dir::new("refused");
    let file = dir.file();
    std::fs::write(&file, "these are my notes, no database\n".repeat(100)).unwrap();
    check_refused(&file, "damaged");

    std::fs::remove_file(&file).unwrap();
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    check_refused(&file, "another application");

    std::fs::remove_file(&file).unwrap();
    drop(Bench::new(DbPath::File(file.clone())));
    Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    check_refused(&file, "schema version 99");

    std::fs::remove_file(&file).unwrap();
    let mut bench = Bench::new(DbPath::File(file.clone()));
    for number in 0..100 {
        bench.group(vec![begin(number, "c"), commit(number, "c")]);
    }
    drop(bench);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[8_192..16_384].fill(0xA5);
    std::fs::write(&file, bytes).unwrap();
    check_refused(&file, "damaged");
}

#[test]
fn a_path_that_holds_no_file_is_refused() {
    let dir = Dir::new("paths");
    for path in [dir.0.clone(), dir.0.join("missing/history.db")] {
        let refusal = Store::open(&config(DbPath::File(path.clone())), |_| {}).unwrap_err().to_string();
        assert!(refusal.contains(&path.display().to_string()), "{refusal}");
    }
    let file = dir.file();
    let mut bench = Bench::new(DbPath::File(file.clone()));
    bench.group(vec![begin(1, "c"), commit(1, "c")]);
    drop(bench);
    let other = Connection::open(&file).unwrap();
    other
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM meta WHERE name = ''")
        .unwrap();
    check_refused(&file, "another process");
}
