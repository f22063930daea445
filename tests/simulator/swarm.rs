//! Swarm options: what a seed lets happen. Most faults are off in most runs, so that rare combinations get their turn.

use crate::rng::Rng;

/// What one seed's world is like.
#[derive(Clone, Debug)]
pub struct Swarm {
    pub chats: usize,
    pub window: usize,
    pub retention_ms: u64,
    pub retention_chats: usize,
    pub event_bytes_max: usize,
    pub run_bytes_max: u64,
    pub steps: usize,
    /// Of 1,000 steps, roughly, this many …
    pub new_client: usize,
    pub cut: usize,
    pub half_close: usize,
    pub time: usize,
    /// … of 100 writes, this many are short, and this many block.
    pub short_write: usize,
    pub block: usize,
    /// Of 100 snapshot jobs, this many fail.
    pub job_fails: usize,
    /// Of 100 commits, this many fail, and this many hang.
    pub commit_fails: usize,
    pub commit_hangs: usize,
    /// Of 100 starts, this many supersede.
    pub supersede: usize,
    /// Of 100 producers, this many are in the server's process, and of those that are cut, this many are not noticed.
    pub locals: usize,
    pub ghosts: usize,
    /// Of 100 clients, this many are deleters, and this many send garbage.
    pub delete: usize,
    pub garbage: usize,
    /// Of 100 clients, this many ask the agent, and this many threads there are for turns.
    pub senders: usize,
    pub turns_max: usize,
    /// Bytes of a delta, at most.
    pub delta_bytes: usize,
    /// Whether bytes arrive one by one.
    pub dribble: bool,
}

impl Swarm {
    pub fn draw(rng: &mut Rng) -> Swarm {
        let mut some = |most: usize| if rng.chance(50) { 0 } else { rng.below(most) + 1 };
        let (cut, half_close, short_write, block) = (some(40), some(15), some(80), some(40));
        let (job_fails, commit_fails, commit_hangs) = (some(10), some(40), some(20));
        let (supersede, delete, garbage, ghosts) = (some(60), some(8), some(10), some(60));
        Swarm {
            chats: *rng.pick(&[1, 2, 3, 8]),
            window: *rng.pick(&[1, 2, 3, 8, 64, 4_096]),
            retention_ms: *rng.pick(&[0, 1_000, 300_000]),
            retention_chats: *rng.pick(&[0, 1, 4, 64]),
            event_bytes_max: *rng.pick(&[300, 4_096, 1 << 20]),
            run_bytes_max: *rng.pick(&[4_000, 1 << 20, 64 << 20]),
            steps: *rng.pick(&[150, 400, 900]),
            new_client: *rng.pick(&[30, 80, 160]),
            cut,
            half_close,
            time: *rng.pick(&[5, 30, 80]),
            short_write,
            block,
            job_fails,
            commit_fails,
            commit_hangs,
            supersede,
            locals: *rng.pick(&[0, 20, 60]),
            ghosts,
            delete,
            garbage,
            senders: *rng.pick(&[0, 10, 40]),
            turns_max: *rng.pick(&[1, 2, 256]),
            delta_bytes: *rng.pick(&[3, 40, 400, 3_000]),
            dribble: rng.chance(25),
        }
    }
}
