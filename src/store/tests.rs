//! The store against real databases: what is committed, skipped, failed, withdrawn, deleted, refused.

mod faults;

use super::writer::{GROUP_JOBS_MAX, Writer};
use super::*;
use crate::proto::history::{Page, PageMark, Trigger, Turn};
use crate::proto::id::{ChatId, Seq, Ticket};
use crate::rope::Rope;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use rusqlite::Connection;

/// A directory of its own for one test, removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(test: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("rejoin-store-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn file(&self) -> PathBuf {
        self.0.join("history.db")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn config(path: DbPath) -> StoreConfig {
    StoreConfig { path, queue_jobs_max: 4_096, busy_ms: 0 }
}

fn run(number: u128) -> RunId {
    RunId::from_bits(number)
}

fn chat(name: &str) -> ChatId {
    ChatId::parse(name).unwrap()
}

fn begin(number: u128, name: &str) -> Job {
    Job::Begin { run: run(number), chat: chat(name) }
}

fn turn(number: u128, name: &str, events: &str) -> Turn {
    Turn {
        run: run(number),
        chat: chat(name),
        trigger: Trigger::User,
        seq: Seq(3),
        started_wall_ms: 10,
        ended_wall_ms: 20,
        events: Rope::from(events.as_bytes().to_vec()),
        closed: None,
        superseded: false,
    }
}

fn commit(number: u128, name: &str) -> Job {
    Job::Commit(turn(number, name, r#"{"type":"RUN_STARTED"}"#))
}

fn delete(name: &str, cut: Option<u128>) -> Job {
    Job::Delete { ticket: Ticket(9), chat: chat(name), cut: cut.map(run), wall_ms: 30 }
}

fn ask(name: &str, turns_max: u32, after_turn: u64) -> Job {
    Job::Chat { ticket: Ticket(1), chat: chat(name), turns_max, after_turn }
}

/// An answer in few words: `1 committed`, `deleted`, or a page's body.
fn words(answer: Answer) -> String {
    match answer {
        Answer::Finalized { run: id, outcome } => {
            let number = (0..3_000).find(|number| run(*number) == id).unwrap();
            format!("{number} {}", outcome.name())
        }
        Answer::Opened { .. } | Answer::RetryPoint { .. } => panic!("{answer:?}"),
        Answer::Deleted { done, .. } => if done { "deleted" } else { "not deleted" }.to_owned(),
        Answer::Page { page: Page::Found(body), .. } => String::from_utf8(body).unwrap(),
        Answer::Page { page, .. } => format!("{page:?}"),
    }
}

/// A writer without its thread, so that a test decides what is one group.
struct Bench {
    writer: Writer<Box<dyn Fn(Answer)>>,
    jobs: Sender<Job>,
    withdrawals: Sender<RunId>,
    answers: Receiver<Answer>,
}

impl Bench {
    fn new(path: DbPath) -> Bench {
        let (jobs, queued) = unbounded();
        let (withdrawals, withdrawn) = unbounded();
        let (answer, answers) = unbounded();
        let db = schema::open_writer(&config(path)).unwrap();
        let answer: Box<dyn Fn(Answer)> = Box::new(move |done| answer.send(done).unwrap());
        let writer = Writer::new(db, "test".to_owned(), queued, withdrawn, answer);
        Bench { writer, jobs, withdrawals, answers }
    }

    fn group(&mut self, jobs: Vec<Job>) -> Vec<String> {
        self.writer.carry_out(&jobs);
        self.answers.try_iter().map(words).collect()
    }

    fn sql(&self, sql: &str) {
        self.writer.db.execute_batch(sql).unwrap();
    }

    fn rows(&self, sql: &str) -> Vec<String> {
        rows(&self.writer.db, sql)
    }
}

/// The rows of a query with one text column.
fn rows(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// The finalizations of runs 0 to 5, and the number of turns.
fn recorded(bench: &Bench) -> Vec<String> {
    let mut all = Vec::new();
    for number in 0..6 {
        let found = bench.rows(&format!(
            "SELECT outcome || ' ' || COALESCE(reason, '-') || ' ' || COALESCE(chat_id, '-')
             FROM finalizations WHERE run_id = '{}'",
            run(number)
        ));
        all.extend(found.into_iter().map(|row| format!("{number} {row}")));
    }
    all.extend(bench.rows("SELECT 'turns ' || COUNT(*) FROM turns"));
    all
}

/// Carries the jobs out in one transaction, and again each in its own: the same must come of it.
fn check(name: &str, jobs: fn() -> Vec<Job>, answers: &[&str], records: &[&str]) {
    let mut together = Bench::new(DbPath::Memory);
    assert_eq!(together.group(jobs()), answers, "{name}, one group");
    assert_eq!(recorded(&together), records, "{name}, one group");
    let mut apart = Bench::new(DbPath::Memory);
    let got: Vec<String> = jobs().into_iter().flat_map(|job| apart.group(vec![job])).collect();
    assert_eq!(got, answers, "{name}, apart");
    assert_eq!(recorded(&apart), records, "{name}, apart");
}

#[test]
fn outcomes() {
    check(
        "two turns in a row",
        || vec![begin(1, "c"), commit(1, "c"), begin(2, "c"), commit(2, "c")],
        &["1 committed", "2 committed"],
        &["1 committed - c", "2 committed - c", "turns 2"],
    );
    check(
        "a stale revision",
        || vec![begin(1, "c"), begin(2, "c"), commit(2, "c"), commit(1, "c")],
        &["2 committed", "1 skipped"],
        &["1 skipped stale c", "2 committed - c", "turns 1"],
    );
    check("never begun", || vec![commit(1, "c")], &["1 skipped"], &["1 skipped not_begun -", "turns 0"]);
    check(
        "begun for another chat",
        || vec![begin(1, "c"), commit(1, "d")],
        &["1 skipped"],
        &["1 skipped not_begun -", "turns 0"],
    );
    check(
        "finalized once",
        || vec![begin(1, "c"), commit(1, "c"), commit(1, "c"), begin(1, "c"), commit(1, "c")],
        &["1 committed", "1 committed", "1 committed"],
        &["1 committed - c", "turns 1"],
    );
    check(
        "deleted while it ran",
        || vec![begin(1, "c"), begin(2, "d"), delete("c", None), commit(1, "c"), commit(2, "d")],
        &["deleted", "1 skipped", "2 committed"],
        &["1 skipped not_begun -", "2 committed - d", "turns 1"],
    );
    check(
        "cut off by the deletion",
        || vec![begin(0, "c"), commit(0, "c"), begin(1, "c"), delete("c", Some(1)), commit(1, "c")],
        &["0 committed", "deleted", "1 skipped"],
        &["0 committed - -", "1 skipped deleted -", "turns 0"],
    );
    check(
        "made again, an old run is stale",
        || {
            vec![
                begin(1, "c"),
                commit(1, "c"),
                begin(2, "c"),
                delete("c", None),
                begin(3, "c"),
                begin(4, "c"),
                commit(3, "c"),
                commit(2, "c"),
                commit(4, "c"),
            ]
        },
        &["1 committed", "deleted", "3 committed", "2 skipped", "4 skipped"],
        &["1 committed - -", "2 skipped not_begun -", "3 committed - c", "4 skipped stale c", "turns 1"],
    );
    check("deleting what isn't there", || vec![delete("c", None)], &["deleted"], &["turns 0"]);
}

#[test]
fn a_chat_that_was_made_again_never_has_an_old_revision() {
    let mut bench = Bench::new(DbPath::Memory);
    bench.group(vec![begin(1, "c"), commit(1, "c"), delete("c", None), begin(2, "c"), commit(2, "c")]);
    assert_eq!(bench.rows("SELECT CAST(revision AS TEXT) FROM chats"), ["2"]);
}

const EVENTS: &str = "{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m\"},\
     {\"type\":\"TEXT_MESSAGE_CONTENT\" , \"messageId\":\"m\",\"delta\":\"日本 \u{2028} \\u00e9 \\ud83d 👩‍👩‍👧\"},\
     {\"type\":\"CUSTOM\",\"value\":12345678901234567890123}";

#[test]
fn a_turn_comes_back_byte_for_byte() {
    let dir = Dir::new("bytes");
    for path in [DbPath::Memory, DbPath::File(dir.file())] {
        let (answer, answers) = unbounded();
        let store = Store::open(&config(path), move |done| answer.send(done).unwrap()).unwrap();
        let mut turn = turn(1, "日本", "");
        for byte in EVENTS.as_bytes() {
            turn.events.push_copy(&[*byte]);
        }
        (turn.closed, turn.superseded, turn.trigger) = (Some("stopped"), true, Trigger::Canvas);
        store.submit(begin(1, "日本")).unwrap();
        store.submit(Job::Commit(turn)).unwrap();
        assert_eq!(words(answers.recv().unwrap()), "1 committed");
        // Asked after the answer: the turn must be there.
        store.submit(ask("日本", 10, 0)).unwrap();
        let want = format!(
            "{{\"chat_id\":\"日本\",\"revision\":1,\"messages\":[{{\"id\":\"m\",\"role\":\"assistant\",\"content\":\
             \"日本 \u{2028} \\u00e9 \\ud83d 👩‍👩‍👧\"}}],\"turns\":[{{\"turn\":1,\"run_id\":\"{}\",\"trigger\":\"canvas\",\
             \"seq\":3,\"started_ms\":10,\"ended_ms\":20,\"persisted\":true,\"superseded\":true,\"closed\":\"stopped\",\
             \"messages\":1,\"events\":[{EVENTS}]}}],\"next\":null}}",
            run(1)
        );
        assert_eq!(words(answers.recv().unwrap()), want);
        store.submit(ask("nobody", 10, 0)).unwrap();
        assert_eq!(words(answers.recv().unwrap()), "Missing");
        store.close();
    }
}

#[test]
fn what_a_snapshot_repeats_is_not_stored_twice() {
    let mut bench = Bench::new(DbPath::Memory);
    let first = r#"{"type":"TEXT_MESSAGE_START","messageId":"a"}"#;
    let second = r#"{"type":"TEXT_MESSAGE_START","messageId":"b"},
        {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant"},{"id":"u","role":"user"},{"id":"b","role":"assistant"}]}"#;
    // The same ids again, but written by the turn itself: both are kept.
    for (number, events) in [(1, first), (2, second), (3, first)] {
        bench.group(vec![begin(number, "c"), Job::Commit(turn(number, "c", events))]);
    }
    let stored = "SELECT turn || ' ' || CAST(message_id AS TEXT) FROM messages ORDER BY position";
    assert_eq!(bench.rows(stored), ["1 a", "2 b", "2 u", "3 a"]);
}

#[test]
fn pages_go_on_where_the_last_one_ended() {
    let mut bench = Bench::new(DbPath::Memory);
    let names = ["a", "b", "c", "d", "e"];
    for (number, name) in names.iter().enumerate() {
        let mut turn = turn(number as u128, name, "");
        turn.ended_wall_ms = if number < 3 { 20 } else { 30 };
        bench.group(vec![begin(number as u128, name), Job::Commit(turn)]);
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let body = bench.group(vec![Job::Chats { ticket: Ticket(1), rows_max: 2, after }]).remove(0);
        let page: serde_json::Value = serde_json::from_str(&body).unwrap();
        let ids =
            page["chats"].as_array().unwrap().iter().map(|row| row["chat_id"].as_str().unwrap().to_owned());
        seen.push(ids.collect::<String>());
        let next = &page["next"];
        if next.is_null() {
            break;
        }
        after = Some(PageMark {
            changed_wall_ms: next["changed_ms"].as_u64().unwrap(),
            chat: chat(next["chat_id"].as_str().unwrap()),
        });
    }
    assert_eq!(seen, ["de", "ab", "c"], "newest change first, equal times by name");

    for number in 10..14 {
        bench.group(vec![begin(number, "a"), commit(number, "a")]);
    }
    for (turns_max, after, turns, next) in [
        (2, 0, vec![1, 2], Some(2)),
        (2, 2, vec![3, 4], Some(4)),
        (2, 4, vec![5], None),
        (5, 0, vec![1, 2, 3, 4, 5], None),
        (0, 9, vec![], None),
    ] {
        let body = bench.group(vec![ask("a", turns_max, after)]).remove(0);
        let page: serde_json::Value = serde_json::from_str(&body).unwrap();
        let got: Vec<u64> =
            page["turns"].as_array().unwrap().iter().map(|turn| turn["turn"].as_u64().unwrap()).collect();
        assert_eq!((got, page["next"].as_u64()), (turns, next), "{turns_max} after {after}");
    }
}

#[test]
fn a_page_has_the_messages_of_its_turns_and_a_bounded_size() {
    let mut bench = Bench::new(DbPath::Memory);
    let pad = "x".repeat(5 << 20);
    for number in 1..4 {
        let events = format!(
            r#"{{"type":"TEXT_MESSAGE_START","messageId":"m{number}"}},{{"type":"CUSTOM","value":"{pad}"}}"#
        );
        bench.group(vec![begin(number, "c"), Job::Commit(turn(number, "c", &events))]);
    }
    let body = bench.group(vec![ask("c", 10, 0)]).remove(0);
    let page: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((page["turns"].as_array().unwrap().len(), page["next"].as_u64()), (2, Some(2)));
    let ids: Vec<&str> =
        page["messages"].as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["m1", "m2"]);
}

#[test]
fn a_thousand_jobs_take_few_transactions() {
    let mut bench = Bench::new(DbPath::Memory);
    for number in 0..500 {
        bench.jobs.send(begin(number, &format!("c{number}"))).unwrap();
        bench.jobs.send(commit(number, &format!("c{number}"))).unwrap();
    }
    let mut groups = 0;
    while !bench.jobs.is_empty() {
        let group = bench.writer.next_group().unwrap();
        bench.writer.carry_out(&group);
        groups += 1;
    }
    assert_eq!(groups, 1_000_usize.div_ceil(GROUP_JOBS_MAX));
    let answers: Vec<String> = bench.answers.try_iter().map(words).collect();
    let want: Vec<String> = (0..500).map(|number| format!("{number} committed")).collect();
    assert_eq!(answers, want, "in the order of the jobs");

    // Large turns make small groups.
    for number in 500..503 {
        bench.jobs.send(Job::Commit(turn(number, "c", &"x".repeat(5 << 20)))).unwrap();
    }
    assert_eq!(bench.writer.next_group().unwrap().len(), 2);
    assert_eq!(bench.writer.next_group().unwrap().len(), 1);
}

#[test]
fn a_withdrawn_commit_is_skipped() {
    let mut bench = Bench::new(DbPath::Memory);
    bench.withdrawals.send(run(2)).unwrap();
    let jobs = vec![begin(1, "c"), begin(2, "d"), commit(1, "c"), commit(2, "d")];
    assert_eq!(bench.group(jobs), ["1 committed", "2 skipped"]);
    assert_eq!(recorded(&bench), ["1 committed - c", "2 skipped withdrawn d", "turns 1"]);
    // Too late: it has landed, and stays.
    bench.withdrawals.send(run(1)).unwrap();
    assert_eq!(bench.group(vec![commit(1, "c")]), ["1 committed"]);
}

#[test]
fn a_commit_is_withdrawn_while_the_thread_is_stuck() {
    let dir = Dir::new("stuck");
    let (answer, answers) = unbounded();
    let config = StoreConfig { busy_ms: 60_000, ..config(DbPath::File(dir.file())) };
    let store = Store::open(&config, move |done| answer.send(done).unwrap()).unwrap();
    let other = Connection::open(dir.file()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    for job in [begin(1, "c"), begin(2, "d"), commit(1, "c"), commit(2, "d")] {
        store.submit(job).unwrap();
    }
    store.withdraw(run(2));
    // Reading goes on meanwhile.
    store.submit(ask("c", 1, 0)).unwrap();
    assert_eq!(words(answers.recv().unwrap()), "Missing");
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(words(answers.recv().unwrap()), "1 committed");
    assert_eq!(words(answers.recv().unwrap()), "2 skipped");
    store.close();
}

#[test]
fn a_full_queue_gives_the_job_back_and_close_finishes_the_rest() {
    let (answer, answers) = unbounded();
    let (open, gate) = bounded::<()>(0);
    let config = StoreConfig { queue_jobs_max: 2, ..config(DbPath::Memory) };
    // The first answer holds the thread until the gate is gone.
    let store = Store::open(&config, move |done| {
        answer.send(done).unwrap();
        let _ = gate.recv();
    })
    .unwrap();
    store.submit(commit(1, "c")).unwrap();
    assert_eq!(words(answers.recv().unwrap()), "1 skipped");
    store.submit(begin(2, "c")).unwrap();
    store.submit(commit(2, "c")).unwrap();
    assert!(matches!(store.submit(commit(3, "c")), Err(Job::Commit(turn)) if turn.run == run(3)));
    drop(open);
    store.close();
    assert_eq!(answers.iter().map(words).collect::<Vec<_>>(), ["2 committed"]);
}

#[test]
fn a_deleted_chat_leaves_no_byte_behind() {
    let dir = Dir::new("delete");
    let (answer, answers) = unbounded();
    let store =
        Store::open(&config(DbPath::File(dir.file())), move |done| answer.send(done).unwrap()).unwrap();
    let secret = "a secret that nobody must find";
    let events = format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"{secret}"}}"#);
    for job in [
        begin(1, secret),
        Job::Commit(turn(1, secret, &events)),
        begin(2, "kept chat"),
        commit(2, "kept chat"),
    ] {
        store.submit(job).unwrap();
    }
    assert_eq!(words(answers.recv().unwrap()), "1 committed");
    assert_eq!(words(answers.recv().unwrap()), "2 committed");
    let holds = |text: &str| {
        let files =
            std::fs::read_dir(&dir.0).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        files.into_iter().any(|bytes| memchr::memmem::find(&bytes, text.as_bytes()).is_some())
    };
    assert!(holds(secret));
    store.submit(delete(secret, None)).unwrap();
    assert_eq!(words(answers.recv().unwrap()), "deleted");
    // The log is emptied behind the answer, and before the next one.
    store.submit(commit(3, "kept chat")).unwrap();
    assert_eq!(words(answers.recv().unwrap()), "3 skipped");
    assert!(!holds(secret));
    store.close();
    assert!(!holds(secret));
    assert!(holds("kept chat"));
}

#[test]
fn a_history_is_there_after_a_restart_and_private() {
    let dir = Dir::new("restart");
    let mut bench = Bench::new(DbPath::File(dir.file()));
    bench.group(vec![begin(1, "c"), commit(1, "c"), begin(2, "c")]);
    drop(bench);
    let mut bench = Bench::new(DbPath::File(dir.file()));
    let jobs = vec![commit(2, "c"), begin(3, "c"), commit(3, "c"), commit(1, "c")];
    assert_eq!(bench.group(jobs), ["2 skipped", "3 committed", "1 committed"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(dir.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
