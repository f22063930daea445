//! Forms as browsers and other programs write them, and bodies that are none.

use proptest::prelude::*;

use super::{MultipartFault, PARTS_MAX, PartFault, boundary, parts};

/// Writes down each part as `name(file name; content type)=content`, or the fault.
fn check(body: impl AsRef<[u8]>, expected: Result<&[&str], MultipartFault>) {
    let body = body.as_ref();
    let shown: String = String::from_utf8_lossy(body).chars().take(300).collect();
    let got = parts(body, "b-1").map(|parts| {
        parts
            .into_iter()
            .map(|part| {
                let file = part.file_name.map(|name| format!("({name})")).unwrap_or_default();
                let kind = part.content_type.map(|kind| format!("<{kind}>")).unwrap_or_default();
                format!("{}{file}{kind}={}", part.name, String::from_utf8_lossy(part.bytes))
            })
            .collect::<Vec<_>>()
    });
    let expected = expected.map(|parts| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
    assert_eq!(got, expected, "{shown:?}");
}

/// A form of one part with this head, which lacks its last line end, and the content `x`.
fn with_head(head: &str) -> String {
    format!("--b-1\r\n{head}\r\n\r\nx\r\n--b-1--\r\n")
}

/// The same, with these parameters of the Content-Disposition.
fn with_parameters(parameters: &str) -> String {
    with_head(&format!("Content-Disposition: form-data{parameters}"))
}

#[test]
fn a_boundary_is_found_in_its_content_type() {
    let longest = "x".repeat(70);
    for (content_type, expected) in [
        ("multipart/form-data; boundary=b-1", Some("b-1")),
        ("multipart/form-data;boundary=b-1", Some("b-1")),
        ("Multipart/Form-Data ; charset=utf-8 ;\tBOUNDARY=B-1 ", Some("B-1")),
        ("multipart/form-data; boundary=\"b-1\"; a=b", Some("b-1")),
        ("multipart/form-data; boundary=\"a b:c'()+_,-./=?\"", Some("a b:c'()+_,-./=?")),
        ("multipart/form-data; boundary=a/b=c", Some("a/b=c")),
        ("multipart/form-data; a=\";boundary=x\"; boundary=b-1;", Some("b-1")),
        (&format!("multipart/form-data; boundary={longest}"), Some(longest.as_str())),
        (&format!("multipart/form-data; boundary={longest}x"), None),
        ("multipart/form-data; boundary=", None),
        ("multipart/form-data; boundary=\"\"", None),
        ("multipart/form-data; boundary=\"a \"", None),
        ("multipart/form-data; boundary=\"a", None),
        ("multipart/form-data; boundary=\"a\" b", None),
        ("multipart/form-data; boundary=a\"b\"", None),
        ("multipart/form-data; boundary=\"a\\\"b\"", None),
        ("multipart/form-data; boundary=caf\u{e9}", None),
        ("multipart/form-data; boundary=a; boundary=b", None),
        ("multipart/form-data; boundary", None),
        ("multipart/form-data", None),
        ("multipart/mixed; boundary=b-1", None),
        ("text/plain; boundary=b-1", None),
        ("boundary=b-1", None),
        ("", None),
    ] {
        assert_eq!(boundary(content_type).as_deref(), expected, "{content_type:?}");
    }
}

#[test]
fn a_form_is_cut_into_its_parts() {
    let field = "Content-Disposition: form-data; name=a";
    check(
        format!(
            "--b-1\r\n{field}\r\n\r\none\r\n--b-1\r\ncontent-disposition:FORM-DATA ; NAME=\"b\"; \
             FileName=\"f.txt\"\r\nContent-Type: \t text/plain; charset=utf-8 \r\nX-Other: y\r\n\r\n\
             \r\ntwo\r\n\r\n--b-1--\r\n"
        ),
        Ok(&["a=one", "b(f.txt)<text/plain; charset=utf-8>=\r\ntwo\r\n"]),
    );
    for (body, expected) in [
        ("--b-1--\r\n".to_owned(), &[] as &[&str]),
        ("--b-1--".to_owned(), &[]),
        (format!("preamble --b-1\r\n--b-1\r\n{field}\r\n\r\nx\r\n--b-1-- \t\r\nepilogue\r\n--b-1"), &["a=x"]),
        (format!("\r\n--b-1 \t\r\n{field}\r\n\r\nx\r\n--b-1--"), &["a=x"]),
        (format!("--b-12\r\n--b-1\r\n{field}\r\n\r\nx\r\n--b-1--"), &["a=x"]),
        (format!("--b-1\r\n{field}\r\n\r\n\r\n--b-1--"), &["a="]),
        (format!("--b-1\r\n{field}\r\n\r\n--b-1--"), &["a="]),
        (with_head(&format!("{field}\r\nContent-Type:")), &["a<>=x"]),
        (with_head(&format!("{field}\r\nContent-Transfer-Encoding: Binary")), &["a=x"]),
        (format!("--b-1\r\n{field}\r\n\r\n1\r\n--b-1\r\n{field}\r\n\r\n2\r\n--b-1--"), &["a=1", "a=2"]),
    ] {
        check(body, Ok(expected));
    }
}

#[test]
fn what_only_looks_like_a_delimiter_is_content() {
    for content in [
        "x--b-1--\r\n",
        "x\n--b-1\n--b-1--\n",
        "\r\n--b-1x\r\n",
        "\r\n--b-1-\r\n",
        "\r\n--b-1 x\r\n",
        "\r\n--b-1--x\r\n",
        "\r\n--b-1\n",
        "\r\n--b-1\r",
        "\r\n--b-\r\n-b-1",
        "\r\n\r\n--B-1--\r\n",
        "--b-1--x",
        "\r\r\n\n",
    ] {
        let body = format!("--b-1\r\nContent-Disposition: form-data; name=a\r\n\r\n{content}\r\n--b-1--\r\n");
        check(body, Ok(&[&format!("a={content}")]));
    }
}

#[test]
fn names_are_read_as_clients_write_them() {
    for (parameters, expected) in [
        (r#"; name="a b;c=d""#, "a b;c=d=x"),
        (r#"; name="""#, "=x"),
        (r#"; name = "a" ;; filename = b.txt ;"#, "a(b.txt)=x"),
        (r#"; name=a; filename=my file.txt"#, "a(my file.txt)=x"),
        (r#"; name=a; filename="""#, "a()=x"),
        (r#"; name="日本"; filename="naïve ☃.png""#, "日本(naïve ☃.png)=x"),
        (r#"; name="%22a%0D%0Ab%0d%0ac%22""#, "\"a\r\nb\r\nc\"=x"),
        (r#"; name=a; filename="100% %41%2.png""#, "a(100% %41%2.png)=x"),
        (r#"; name=a; filename="say \"hi\" \\ ho""#, r#"a(say "hi" \ ho)=x"#),
        (r#"; name=a; filename="C:\temp\new\日.txt""#, r"a(C:\temp\new\日.txt)=x"),
        (r#"; name=a; filename="../../etc/passwd""#, "a(../../etc/passwd)=x"),
        (r#"; name=a; filename*=UTF-8''b%20%e2%98%83.txt; filename="f.txt""#, "a(f.txt)=x"),
        (r#"; name=a; filename="f.txt"; filename*=latin1''b"#, "a(f.txt)=x"),
        (r#"; name=a; filename*=utf-8'en'b%20%E2%98%83.txt"#, "a(b \u{2603}.txt)=x"),
    ] {
        check(with_parameters(parameters), Ok(&[expected]));
    }
}

#[test]
fn content_may_be_any_bytes() {
    let content: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    let mut body = b"--b-1\r\nContent-Disposition: form-data; name=a\r\n\r\n".to_vec();
    body.extend_from_slice(&content);
    body.extend_from_slice(b"\r\n--b-1--\r\n");
    assert_eq!(parts(&body, "b-1").unwrap().first().unwrap().bytes, content);
}

#[test]
fn a_body_that_is_no_form_is_refused() {
    let field = "Content-Disposition: form-data; name=a\r\n\r\nx";
    for (body, fault) in [
        (String::new(), MultipartFault::NoStart),
        ("a=b&c=d".to_owned(), MultipartFault::NoStart),
        ("--b-1".to_owned(), MultipartFault::NoStart),
        (format!("--b-1\n{}\n--b-1--\n", field.replace("\r\n", "\n")), MultipartFault::NoStart),
        (format!("--b-2\r\n{field}\r\n--b-2--\r\n"), MultipartFault::NoStart),
        ("--b-1\r\n".to_owned(), MultipartFault::NoEnd),
        (format!("--b-1\r\n{field}"), MultipartFault::NoEnd),
        (format!("--b-1\r\n{field}\r\n--b-1"), MultipartFault::NoEnd),
        (format!("--b-1\r\n{field}\r\n--b-1\r\n"), MultipartFault::NoEnd),
        (format!("--b-1\r\n{field}\r\n--b-1-"), MultipartFault::NoEnd),
        (format!("--b-1\r\n{field}--b-1--\r\n"), MultipartFault::NoEnd),
    ] {
        check(body, Err(fault));
    }
}

#[test]
fn a_part_that_is_none_of_a_form_is_refused() {
    let named = "Content-Disposition: form-data; name=a";
    for (body, fault) in [
        ("--b-1\r\n\r\nx\r\n--b-1--".to_owned(), PartFault::NoDisposition),
        ("--b-1\r\n\r\n--b-1--".to_owned(), PartFault::NoDisposition),
        (with_head("Content-Type: text/plain"), PartFault::NoDisposition),
        (with_head("Content-Disposition: attachment; name=a"), PartFault::NotFormData),
        (with_head("Content-Disposition: form-data-x; name=a"), PartFault::NotFormData),
        (with_head("Content-Disposition:"), PartFault::NotFormData),
        (with_head(named).replace("\r\n\r\n", ""), PartFault::HeadOpen),
        (format!("--b-1\r\n{named}\nx\r\n\r\n--b-1--"), PartFault::HeadLine),
        (with_head(&format!("{named}\r\n folded")), PartFault::HeadLine),
        (with_head(&format!("{named}\r\nno field")), PartFault::HeadLine),
        (with_head(&format!("{named}\r\n: nameless")), PartFault::HeadLine),
        (with_head("Content-Disposition : form-data; name=a"), PartFault::HeadLine),
        (with_head(&format!("{named}\0")), PartFault::HeadLine),
        (with_head(&format!("{named}\rb")), PartFault::HeadLine),
        (with_head(&format!("{named}\r\ncontent-disposition: x")), PartFault::Twice("Content-Disposition")),
        (
            with_head(&format!("{named}\r\nContent-Type: a\r\nContent-Type: b")),
            PartFault::Twice("Content-Type"),
        ),
        (with_head(&format!("{named}\r\nContent-Transfer-Encoding: base64")), PartFault::Encoded),
        (with_parameters(""), PartFault::NoName),
        (with_parameters("; filename=\"f\""), PartFault::NoName),
        (with_parameters("; name*=UTF-8''a"), PartFault::NoName),
        (with_parameters("; name=a; NAME=b"), PartFault::Twice("name")),
        (with_parameters("; name=a; filename=b; filename=c"), PartFault::Twice("filename")),
        (with_parameters("; name"), PartFault::Parameters),
        (with_parameters("; name="), PartFault::Parameters),
        (with_parameters("; =a"), PartFault::Parameters),
        (with_parameters("; name=\"a"), PartFault::Parameters),
        (with_parameters("; name=\"a\\\""), PartFault::Parameters),
        (with_parameters("; name=\"a\"b"), PartFault::Parameters),
        (with_parameters("; name=\"a\" filename=\"b\""), PartFault::Parameters),
        (with_parameters("; name=a; filename*=latin1''b"), PartFault::FileNameCoding),
        (with_parameters("; name=a; filename*=b"), PartFault::FileNameCoding),
        (with_parameters("; name=a; filename*=UTF-8''%e"), PartFault::FileNameCoding),
        (with_parameters("; name=a; filename*=UTF-8''%ff"), PartFault::FileNameCoding),
    ] {
        check(body, Err(MultipartFault::Part { part: 1, fault }));
    }
    check(
        format!("--b-1\r\n{named}\r\n\r\nx\r\n--b-1\r\n\r\nx\r\n--b-1--"),
        Err(MultipartFault::Part { part: 2, fault: PartFault::NoDisposition }),
    );
    check(
        b"--b-1\r\nContent-Disposition: form-data; name=\xff\r\n\r\nx\r\n--b-1--",
        Err(MultipartFault::Part { part: 1, fault: PartFault::NotUtf8 }),
    );
}

#[test]
fn heads_and_parts_have_bounds() {
    let start = "Content-Disposition: form-data; name=a\r\nX: ";
    let fitting = format!("{start}{}", "y".repeat(8 * 1024 - start.len() - 2));
    check(with_head(&fitting), Ok(&["a=x"]));
    let too_long = MultipartFault::Part { part: 1, fault: PartFault::HeadTooLong };
    check(with_head(&format!("{fitting}y")), Err(too_long));
    check(with_head(&"y".repeat(100_000)), Err(too_long));

    let part = "--b-1\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n";
    check(part.repeat(PARTS_MAX) + "--b-1--", Ok(&["a=x"; PARTS_MAX]));
    check(part.repeat(PARTS_MAX + 1) + "--b-1--", Err(MultipartFault::TooManyParts));
}

#[test]
fn a_fault_says_which_part_and_what_to_change() {
    for (fault, expected) in [
        (MultipartFault::NoEnd, "end it with a line of two dashes, the boundary and two dashes"),
        (MultipartFault::TooManyParts, "more than 64 parts: send fewer"),
        (
            MultipartFault::Part { part: 2, fault: PartFault::NoName },
            "part 2 of the form has no name: add 'name=",
        ),
        (
            MultipartFault::Part { part: 9, fault: PartFault::HeadTooLong },
            "part 9 of the form has a head of more than 8192",
        ),
        (MultipartFault::Part { part: 1, fault: PartFault::Twice("filename") }, "has its filename twice"),
    ] {
        let message = fault.to_string();
        assert!(message.contains(expected), "{message}");
    }
}

/// Two ways to quote a name. Neither can tell its own escape from one that was there before, so no name has one.
#[derive(Clone, Copy, Debug)]
enum Quoting {
    Browser,
    Backslash,
}

fn quote(text: &str, quoting: Quoting) -> String {
    match quoting {
        Quoting::Browser => text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A"),
        Quoting::Backslash => text.replace('\\', "\\\\").replace('"', "\\\""),
    }
}

type Written = (String, Option<String>, Option<String>, Vec<u8>);

fn written_parts() -> impl Strategy<Value = (Quoting, Vec<Written>)> {
    // No piece makes a delimiter, alone or joined to others.
    let piece = prop_oneof![
        prop::sample::select(vec![
            "\r\n",
            "\r",
            "\n",
            "--",
            "\r\n--b-1X",
            "\r\n--b-1-x",
            "\r\n--b-1--x",
            "\r\n--b-1 \tx",
            "x--b-1",
            "\0",
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    let content = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    let quoting = prop_oneof![
        Just((Quoting::Browser, "[a-z\"\r\n;=: ï☃]{0,12}")),
        Just((Quoting::Backslash, "[a-z\"\\\\;=: ï☃]{0,12}")),
    ];
    quoting.prop_flat_map(move |(quoting, name)| {
        let part = (
            name,
            prop::option::of(name),
            prop::option::of("[a-z]{1,9}/[a-z; =]{0,9}[a-z]"),
            content.clone(),
        );
        (Just(quoting), prop::collection::vec(part, 0..5))
    })
}

fn write(quoting: Quoting, parts: &[Written]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file_name, content_type, content) in parts {
        let mut head = format!("--b-1\r\nContent-Disposition: form-data; name=\"{}\"", quote(name, quoting));
        if let Some(file_name) = file_name {
            head += &format!("; filename=\"{}\"", quote(file_name, quoting));
        }
        if let Some(content_type) = content_type {
            head += &format!("\r\nContent-Type: {content_type}");
        }
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--b-1--\r\n");
    body
}

/// Bodies that are nearly right: a written one with some bytes changed and its end cut off.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), prop::sample::select(b"\r\n-b1\";=\\%: \0\xff".to_vec()));
    (written_parts(), prop::collection::vec(change, 0..6), any::<prop::sample::Index>()).prop_map(
        |((quoting, parts), changes, cut)| {
            let mut body = write(quoting, &parts);
            for (index, byte) in changes {
                let at = index.index(body.len());
                *body.get_mut(at).unwrap() = byte;
            }
            body.truncate(body.len() - cut.index(body.len()) / 4);
            body
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back((quoting, written) in written_parts()) {
        let body = write(quoting, &written);
        let read: Vec<Written> = parts(&body, "b-1")
            .unwrap()
            .into_iter()
            .map(|part| (part.name, part.file_name, part.content_type, part.bytes.to_vec()))
            .collect();
        prop_assert_eq!(read, written);
    }

    #[test]
    fn noise_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), text in ".{0,60}") {
        let _ = parts(&bytes, &text);
        let _ = boundary(&text);
        let _ = boundary(&format!("multipart/form-data;{text}"));
        let _ = parts(with_parameters(&text).as_bytes(), "b-1");
    }

    #[test]
    fn damage_is_survived(body in damaged()) {
        let total: usize = parts(&body, "b-1").map_or(0, |parts| parts.iter().map(|part| part.bytes.len()).sum());
        prop_assert!(total <= body.len());
    }
}
