//! The cases, in groups: one module for each part of the protocol.

mod bus;
mod compact;
mod end;
mod frames;
mod get;
mod handoff;
mod input;
mod legacy;
mod live;
mod push;
mod replace;
mod stop;
mod wait;
mod window;

use super::peer::Peer;
use super::{Case, Tested};

/// All groups, from the simplest.
pub(super) const GROUPS: [&[Case]; 14] = [
    frames::CASES,
    live::CASES,
    wait::CASES,
    window::CASES,
    handoff::CASES,
    end::CASES,
    replace::CASES,
    get::CASES,
    legacy::CASES,
    push::CASES,
    stop::CASES,
    bus::CASES,
    compact::CASES,
    input::CASES,
];

const fn case(name: &'static str, about: &'static str, test: fn(&Peer<'_>) -> Tested) -> Case {
    Case { name, about, test }
}
