//! The options that say which server a command talks to, and how it is let in.

use clap::Args;

use rejoin::client::ServerUrl;

#[derive(Args, Debug)]
pub(crate) struct RemoteArgs {
    /// Where the server is
    #[arg(long, default_value = super::SERVER, value_name = "URL", value_parser = ServerUrl::parse)]
    url: ServerUrl,

    /// Token, if the server asks for one; other users of this machine can't see it in the environment
    #[arg(long, env = "REJOIN_TOKEN", hide_env_values = true, value_name = "TOKEN", value_parser = token)]
    token: Option<String>,
}

/// What can stand in a field of a request.
pub(crate) fn token(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err("a token has no spaces, line ends or letters beyond ASCII".to_owned())
    }
}

impl RemoteArgs {
    /// The server.
    pub(crate) fn server(&self) -> ServerUrl {
        let url = self.url.clone();
        match &self.token {
            Some(token) => url.with_token(token),
            None => url,
        }
    }
}
