use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::*;

const NOW_MS: u64 = 1_800_000_000_000;
const NOW_S: f64 = 1_800_000_000.0;
const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn chat(id: &str) -> ChatId {
    ChatId::parse(id).unwrap()
}

/// A private key of Ed25519: its PKCS #8, and its public half.
fn ed25519() -> (Vec<u8>, Vec<u8>) {
    let rng = ring::rand::SystemRandom::new();
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&rng).unwrap().as_ref().to_vec();
    let public = Ed25519KeyPair::from_pkcs8(&pkcs8).unwrap().public_key().as_ref().to_vec();
    (pkcs8, public)
}

fn pem(pkcs8: &[u8]) -> String {
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(pkcs8))
}

fn claims(rights: &[Right]) -> Claims {
    Claims {
        exp: NOW_S + 60.0,
        chats: vec!["c".to_owned()],
        chat_prefixes: vec!["team-1/".to_owned()],
        rights: rights.to_vec(),
        ..Claims::default()
    }
}

/// A token with any header and claims, signed with HMAC.
fn signed(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    let signature = ring::hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
}

fn hs256() -> Access {
    Access::parse(&format!("hs256 {SECRET}")).unwrap()
}

fn why(access: &Access, token: &str) -> &'static str {
    match access.grant(Some(token), NOW_MS) {
        Err(Denied::Invalid(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_token_file_is_read_line_by_line() {
    let (_, public) = ed25519();
    let der =
        [&[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00][..], &public].concat();
    let good = [
        "admin 0123456789abcdef".to_owned(),
        "# a comment\n\n  producer   abcdefghijklmnop==  \r\n".to_owned(),
        format!("hs256 {SECRET}"),
        format!("ed25519 {}", URL_SAFE_NO_PAD.encode(&public)),
        format!("ed25519 {}", STANDARD.encode(&der)),
    ];
    for text in good {
        assert!(!Access::parse(&text).unwrap().is_open(), "{text}");
    }
    let bad = [
        ("", 0, "empty"),
        ("# only a comment\n", 0, "empty"),
        ("admin", 1, "write"),
        ("admin a b", 1, "write"),
        ("root 0123456789abcdef", 1, "first word"),
        ("\nadmin short", 2, "16 characters"),
        ("admin 0123456789abcde\u{e4}", 1, "letters, digits"),
        ("hs256 0123456789abcdef0123456789abcde", 1, "32 bytes"),
        ("ed25519 xyz", 1, "Ed25519"),
        ("ed25519 AAAA", 1, "Ed25519"),
    ];
    for (text, line, what) in bad {
        let fault = Access::parse(text).unwrap_err();
        assert_eq!(fault.line, line, "{text:?}");
        assert!(fault.to_string().contains(what), "{text:?}: {fault}");
    }
}

#[test]
fn without_a_token_file_everybody_may_do_everything() {
    let open = Access::default();
    assert!(open.is_open());
    for bearer in [None, Some("anything")] {
        assert!(open.grant(bearer, NOW_MS).unwrap().administers());
    }
}

#[test]
fn secrets_are_compared_whole() {
    let access = Access::parse("admin 0123456789abcdef\nproducer fedcba9876543210").unwrap();
    assert!(access.grant(Some("0123456789abcdef"), NOW_MS).unwrap().administers());
    let producer = access.grant(Some("fedcba9876543210"), NOW_MS).unwrap();
    assert!(!producer.administers() && producer.covers_all_chats(Right::Produce));
    assert!(Right::ALL.iter().filter(|right| producer.has(**right)).count() == 1);
    assert_eq!(access.grant(None, NOW_MS).unwrap_err(), Denied::Missing);
    for wrong in ["", "0", "0123456789abcde", "0123456789abcdeg", "0123456789abcdef0", "0123456789ABCDEF"] {
        assert!(matches!(access.grant(Some(wrong), NOW_MS), Err(Denied::Invalid(_))), "{wrong:?}");
    }
    assert!(matches!(access.grant_jwt("0123456789abcdef", NOW_MS), Err(Denied::Invalid(_))), "it is no JWT");
}

#[test]
fn a_jwt_gives_its_rights_in_its_chats() {
    let (pkcs8, public) = ed25519();
    let text = format!("hs256 {SECRET}\ned25519 {}", URL_SAFE_NO_PAD.encode(&public));
    let access = Access::parse(&text).unwrap();
    let claims = claims(&[Right::Observe, Right::History]);
    for token in [access.mint(&claims).unwrap(), mint_with_ed25519(&pem(&pkcs8), &claims).unwrap()] {
        let grant = access.grant(Some(&token), NOW_MS).unwrap();
        for (id, named) in
            [("c", true), ("team-1/x", true), ("team-1/", true), ("c2", false), ("team-10/x", false)]
        {
            for right in Right::ALL {
                let given = matches!(right, Right::Observe | Right::History);
                assert_eq!(grant.covers(right, &chat(id)), named && given, "{id} {right:?}");
            }
        }
        assert!(!grant.covers_all_chats(Right::Observe) && !grant.administers());
        assert_eq!(grant.expires_wall_ms(), Some(NOW_MS + 60_000));
    }
    let all = Claims { chat_prefixes: vec![String::new()], ..claims };
    let grant = access.grant(Some(&access.mint(&all).unwrap()), NOW_MS).unwrap();
    assert!(grant.covers_all_chats(Right::Observe) && !grant.covers_all_chats(Right::Send));
}

#[test]
fn a_jwt_is_good_in_its_time_only() {
    let access = hs256();
    let token = access.mint(&claims(&[Right::Observe])).unwrap();
    assert!(access.grant(Some(&token), NOW_MS + 59_999).is_ok());
    assert!(
        matches!(access.grant(Some(&token), NOW_MS + 60_000), Err(Denied::Invalid(why)) if why.contains("expired"))
    );
    let from = |nbf| access.mint(&Claims { nbf: Some(nbf), ..claims(&[Right::Observe]) }).unwrap();
    assert!(access.grant(Some(&from(NOW_S + 60.0)), NOW_MS).is_ok(), "clocks differ a little");
    assert!(why(&access, &from(NOW_S + 61.0)).contains("not valid yet"));
    for exp in [-1.0, 1e300] {
        let token = access.mint(&Claims { exp, ..claims(&[Right::Observe]) }).unwrap();
        assert!(why(&access, &token).contains("exp"), "{exp}");
    }
}

#[test]
fn claims_have_to_be_there_and_what_they_are() {
    let access = hs256();
    let header = json!({"alg": "HS256"});
    let good =
        json!({"exp": NOW_S + 60.0, "chats": ["c"], "rights": ["observe"], "sub": "somebody", "iat": 1});
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        signed(&header, &claims, SECRET.as_bytes())
    };
    assert!(access.grant(Some(&signed(&header, &good, SECRET.as_bytes())), NOW_MS).is_ok());
    assert!(access.grant(Some(&with("aud", json!("rejoin"))), NOW_MS).is_ok());
    assert!(access.grant(Some(&with("aud", json!(["other", "rejoin"]))), NOW_MS).is_ok());
    assert!(why(&access, &with("aud", json!("other"))).contains("somebody else"));
    assert!(why(&access, &with("aud", json!([]))).contains("somebody else"));
    for (name, value) in [
        ("exp", Value::Null),
        ("exp", json!("1900000000")),
        ("rights", Value::Null),
        ("rights", json!("observe")),
        ("rights", json!(["observ"])),
        ("chats", json!("c")),
        ("chats", json!([1])),
        ("aud", json!(5)),
    ] {
        assert!(why(&access, &with(name, value.clone())).contains("claims"), "{name} {value}");
    }
    let nothing = access.grant(Some(&with("chats", json!([]))), NOW_MS).unwrap();
    assert!(!nothing.covers(Right::Observe, &chat("c")));
}

#[test]
fn only_the_keys_of_its_algorithm_verify_a_jwt() {
    let (pkcs8, public) = ed25519();
    let x = URL_SAFE_NO_PAD.encode(&public);
    let by_key = Access::parse(&format!("ed25519 {x}")).unwrap();
    let claims_json = json!({"exp": NOW_S + 60.0, "chats": ["c"], "rights": ["observe"]});
    let hs = |alg: &str, secret: &[u8]| signed(&json!({"alg": alg}), &claims_json, secret);
    // The public key taken for a secret: as bytes, and in its spellings.
    for secret in [&public[..], x.as_bytes(), STANDARD.encode(&public).as_bytes()] {
        for alg in ["HS256", "EdDSA", "HS384"] {
            assert!(matches!(by_key.grant(Some(&hs(alg, secret)), NOW_MS), Err(Denied::Invalid(_))), "{alg}");
        }
    }
    let good = hs("HS256", SECRET.as_bytes());
    assert!(hs256().grant(Some(&good), NOW_MS).is_ok());
    assert!(by_key.grant(Some(&good), NOW_MS).is_err(), "there is no secret here");
    let message = good.rsplit_once('.').unwrap().0;
    let unsigned = |alg: &str| {
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": alg}).to_string());
        let body = URL_SAFE_NO_PAD.encode(claims_json.to_string());
        [format!("{header}.{body}."), format!("{header}.{body}")]
    };
    let mut forged: Vec<String> = ["none", "None", "HS256", "EdDSA"].into_iter().flat_map(unsigned).collect();
    forged.extend([
        format!("{message}."),
        format!("{message}.{}", URL_SAFE_NO_PAD.encode([0; 32])),
        hs("HS256", b"another secret of thirty-two byte"),
        hs("HS256", b""),
        format!("{good}="),
        format!("{good}.x"),
        good.replace('.', ".."),
        mint_with_ed25519(&pem(&ed25519().0), &claims(&[Right::Observe])).unwrap(),
        "a.b.c".to_owned(),
        "x".repeat(crate::limits::TOKEN_BYTES_MAX + 1),
    ]);
    let both = Access::parse(&format!("hs256 {SECRET}\ned25519 {x}")).unwrap();
    for token in &forged {
        assert!(matches!(both.grant(Some(token), NOW_MS), Err(Denied::Invalid(_))), "{token}");
    }
    // Every byte of a good one counts.
    let real = mint_with_ed25519(&pem(&pkcs8), &claims(&[Right::Observe])).unwrap();
    for token in [&good, &real] {
        assert!(both.grant(Some(token), NOW_MS).is_ok());
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(both.grant(Some(&changed), NOW_MS).is_err(), "{at}: {changed}");
        }
    }
}

#[test]
fn a_critical_header_that_is_not_known_is_refused() {
    let header = json!({"alg": "HS256", "crit": ["b64"], "b64": false});
    let claims = json!({"exp": NOW_S + 60.0, "chats": ["c"], "rights": ["observe"]});
    assert!(hs256().grant(Some(&signed(&header, &claims, SECRET.as_bytes())), NOW_MS).is_err());
}

#[test]
fn who_can_not_sign_says_so() {
    let access = Access::parse("admin 0123456789abcdef").unwrap();
    assert_eq!(access.mint(&claims(&[Right::Observe])).unwrap_err(), MintFault::NoSecret);
    for key in ["", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"] {
        assert_eq!(
            mint_with_ed25519(key, &claims(&[Right::Observe])).unwrap_err(),
            MintFault::BadKey,
            "{key}"
        );
    }
    assert_eq!(format!("{access:?}"), "Access(by token)", "no secret in logs");
}
