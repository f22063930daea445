//! The pages that a browser is served: the chat at `/` and the inspector at `/inspect`, with their scripts. The files are
//! part of the binary, so they fit it and need no network.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::LazyLock;

/// A file of a page.
#[derive(Debug)]
pub struct File {
    /// Type of the content.
    pub content_type: &'static str,
    /// The content.
    pub bytes: &'static [u8],
    /// Names the content, in quotes: the value of an `ETag` field.
    pub etag: String,
}

/// Says what a page may load and do: nothing but its own server's. Text of agents is shown in it, and stays text.
pub const SECURITY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The file at a path of a request, given as its segments.
pub fn find(segments: &[&str]) -> Option<&'static File> {
    FILES.get(segments.join("/").as_str())
}

macro_rules! files {
    ($($folder:literal => $prefix:literal { $($name:literal)* })*) => {
        [$($((concat!($prefix, $name), include_bytes!(concat!("../clients/", $folder, $name)) as &[u8])),*),*]
    };
}

static FILES: LazyLock<BTreeMap<&'static str, File>> = LazyLock::new(|| {
    let pages: [(&str, &[u8]); 2] = [
        ("", include_bytes!("../clients/page/chat.html")),
        ("inspect", include_bytes!("../clients/page/inspect.html")),
    ];
    pages.into_iter().chain(parts()).map(|(path, bytes)| (path, file(path, bytes))).collect()
});

fn parts() -> impl IntoIterator<Item = (&'static str, &'static [u8])> {
    files! {
        "page/src/" => "page/src/" {
            "chat.js" "chat-list.js" "chat-view.js" "composer.js" "connection-view.js" "conversation.js" "dom.js" "exchange-view.js"
            "form-view.js" "format.js" "history-model.js" "inspect.js" "inspect-chart.js" "inspect-model.js" "markdown.js"
            "part-view.js" "question-view.js" "texts.js" "token.js"
        }
        "page/style/" => "page/style/" { "base.css" "chat.css" "inspect.css" }
        "page/vendor/" => "page/vendor/" { "marked.esm.js" "purify.es.mjs" }
        "js/src/" => "page/client/" {
            "agui-turn.js" "attach.js" "backoff.js" "bus-hub.js" "bus-leader.js" "bus-notice.js" "bus-upstream.js"
            "bus-worker-port.js" "bus-worker-source.js" "bus-worker.js" "bus.js" "client.js" "endpoint.js" "errors.js"
            "files.js" "follow.js" "frame.js" "history.js" "index.js" "json-patch.js" "queue.js" "request.js" "seed.js"
            "sse.js" "stream.js" "transcript-draft.js" "transcript-messages.js" "transcript-others.js"
            "transcript-questions.js" "transcript-runs.js" "transcript-tools.js" "transcript.js" "turns.js" "wait.js"
        }
    }
}

fn file(path: &str, bytes: &'static [u8]) -> File {
    let content_type = match path.rsplit_once('.') {
        Some((_, "js" | "mjs")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some(_) | None => "text/html; charset=utf-8",
    };
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(bytes);
    File { content_type, bytes, etag: format!("\"{:016x}\"", hasher.finish()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn every_script_and_style_is_served() {
        for (folder, prefix) in [
            ("page/src", "page/src"),
            ("page/style", "page/style"),
            ("page/vendor", "page/vendor"),
            ("js/src", "page/client"),
        ] {
            let path = format!("{}/clients/{folder}", env!("CARGO_MANIFEST_DIR"));
            for entry in std::fs::read_dir(path).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let served =
                    !(name.ends_with(".d.ts") || name.starts_with("ag-ui") || name.starts_with("LICENSE"));
                assert_eq!(
                    FILES.contains_key(format!("{prefix}/{name}").as_str()),
                    served,
                    "{folder}/{name}"
                );
            }
        }
    }

    #[test]
    fn what_a_script_imports_is_served() {
        for (path, file) in FILES.iter().filter(|(path, _)| path.ends_with(".js") && !path.contains("vendor"))
        {
            let text = std::str::from_utf8(file.bytes).unwrap();
            for imported in text.lines().filter_map(|line| line.split_once(" from \"")).map(|(_, rest)| rest)
            {
                let target = imported.split('"').next().unwrap();
                let folder = path.rsplit_once('/').unwrap().0;
                let target = match target.strip_prefix("../") {
                    Some(rest) => format!("page/{rest}"),
                    None => format!("{folder}/{}", target.trim_start_matches("./")),
                };
                assert!(FILES.contains_key(target.as_str()), "{path} imports {target}");
            }
        }
    }

    #[test]
    fn types_and_tags_are_those_of_the_content() {
        assert_eq!(find(&[]).unwrap().content_type, "text/html; charset=utf-8");
        assert_eq!(find(&["inspect"]).unwrap().content_type, "text/html; charset=utf-8");
        assert_eq!(find(&["page", "src", "chat.js"]).unwrap().content_type, "text/javascript; charset=utf-8");
        let (chat, inspect) = (find(&[]).unwrap(), find(&["inspect"]).unwrap());
        assert!(chat.etag != inspect.etag && chat.etag.len() == 18, "{}", chat.etag);
        assert!(find(&["page"]).is_none() && find(&["page", "..", "Cargo.toml"]).is_none());
    }
}
