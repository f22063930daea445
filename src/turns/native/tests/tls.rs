//! Agents over TLS, with certificates that are trusted and that are not.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use ureq::tls::{Certificate, RootCerts};

use super::agent::{Agent, LAST, SSE, chunk, closed, request, say};
use super::{PROMPT, Turn, order};
use crate::turns::TurnControl;

/// A certificate that only its owner vouches for, and a server that shows it.
fn identity() -> (Certificate<'static>, Arc<ServerConfig>) {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(identity.signing_key.serialize_der().into());
    let shown = identity.cert.der().clone();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![shown.clone()], key)
        .unwrap();
    (Certificate::from_der(&shown).to_owned(), Arc::new(config))
}

/// A turn with an agent over TLS.
fn begin<T: Send + 'static>(
    roots: Option<RootCerts>,
    act: impl FnOnce(&mut StreamOwned<ServerConnection, TcpStream>) -> T + Send + 'static,
) -> (Turn, Agent<T>, String) {
    let (certificate, config) = identity();
    let agent = Agent::accepting(move |stream| {
        let connection = ServerConnection::new(config).unwrap();
        act(&mut StreamOwned::new(connection, stream))
    });
    let host = agent.host.replace("127.0.0.1", "localhost");
    let roots = roots.unwrap_or_else(|| RootCerts::Specific(Arc::new(vec![certificate])));
    (Turn::begin(order(&format!("https://{host}/"), 20_000), roots), agent, host)
}

#[test]
fn a_trusted_agent_is_heard() {
    let (turn, agent, host) = begin(None, |stream| {
        let request = request(&mut *stream);
        say(stream, &[(SSE.to_owned() + &chunk("data: {\"type\":\"A\"}\n\n") + LAST).as_bytes()]);
        request
    });
    assert_eq!(turn.rest(&host), [r#"{"type":"A"}"#, "done"]);
    assert!(agent.join().starts_with("POST / HTTP/1.1\r\n"));
}

#[test]
fn a_cancel_is_prompt_over_tls() {
    let (turn, agent, _) = begin(None, |stream| {
        request(&mut *stream);
        say(stream, &[(SSE.to_owned() + &chunk("data: {\"type\":\"A\"}\n\n")).as_bytes()]);
        closed(&stream.sock);
    });
    turn.next().expect("the event is told");
    turn.control.send(TurnControl::Cancel).unwrap();
    turn.assert_over();
    agent.join();
}

#[test]
fn a_cancel_is_prompt_during_the_handshake() {
    let (ready, is_ready) = crossbeam_channel::bounded(1);
    let agent = Agent::accepting(move |mut stream| {
        stream.read_exact(&mut [0]).unwrap();
        ready.send(()).unwrap();
        let rest = io::copy(&mut stream, &mut io::sink());
        assert!(!rest.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "it is closed");
    });
    let turn = Turn::begin(order(&format!("https://{}/", agent.host), 20_000), RootCerts::WebPki);
    is_ready.recv_timeout(PROMPT).unwrap();
    turn.control.send(TurnControl::Cancel).unwrap();
    turn.assert_over();
    agent.join();
}

/// A turn that is to fail with this reason.
fn check_refused<T: Send + 'static>(turn: Turn, agent: Agent<T>, host: &str, reason: &str) {
    let told = turn.rest(host).concat();
    let expected = format!("agent_error: The agent helper at HOST can't be spoken to over TLS ({reason}");
    assert!(told.starts_with(&expected), "{told}");
    agent.join();
}

#[test]
fn an_agent_that_nobody_vouches_for_is_refused() {
    // Which roots the system has is not known here: its reason may be another.
    let unknown = "invalid peer certificate: UnknownIssuer)";
    for (roots, reason) in [(RootCerts::WebPki, unknown), (RootCerts::PlatformVerifier, "")] {
        let (turn, agent, host) = begin(Some(roots), |stream| {
            assert!(stream.read(&mut [0]).is_err(), "no request comes without a handshake");
        });
        check_refused(turn, agent, &host, reason);
    }
}

#[test]
fn an_agent_without_tls_is_told_from_one_with() {
    let agent = Agent::accepting(|mut stream| {
        stream.read_exact(&mut [0; 64]).unwrap();
        say(&mut stream, &[b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"]);
        // Whatever else came is read, so that closing does not reset the connection.
        let _ = io::copy(&mut stream, &mut io::sink());
    });
    let turn = Turn::begin(order(&format!("https://{}/", agent.host), 20_000), RootCerts::WebPki);
    let host = agent.host.clone();
    check_refused(turn, agent, &host, "received corrupt message of type InvalidContentType)");
}
