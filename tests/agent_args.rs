//! The options that name agents. No command has them until `serve` starts turns: this builds them, and runs the tests
//! that they bring along.

#[path = "../src/cli"]
mod cli {
    mod agents;
}
