//! Who comes: clients of every kind, and producers inside the server.

use crate::agents::REQUEST;
use crate::client::{Client, request};
use crate::listener::Listener;
use crate::observer::Observer;
use crate::producer::Producer;
use crate::rng::Rng;
use crate::world::World;

impl World {
    /// Adds a client of a random kind.
    pub fn new_client(&mut self) {
        let chat = format!("chat{}", self.rng.below(self.swarm.chats));
        let kind = self.rng.below(100);
        let client = if kind < self.swarm.garbage {
            Client::Garbage(garbage(&mut self.rng))
        } else if kind < self.swarm.garbage + self.swarm.delete {
            self.checker.may_be_deleted(&chat);
            Client::Once(format!("DELETE /chats/{chat} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        } else if kind < self.swarm.garbage + self.swarm.delete + self.swarm.senders {
            self.sender(chat)
        } else if kind < 25 {
            let path = ["/healthz", "/chats", "/chats/chat0", "/runs/nonsense"][self.rng.below(4)];
            Client::Once(format!("GET {path} HTTP/1.0\r\n\r\n"))
        } else if kind < 28 {
            Client::Listener(Listener::new(&mut self.rng))
        } else if kind < 50 {
            return self.new_producer(chat);
        } else {
            let known = self.checker.known(&chat);
            Client::Observer(Observer::new(&mut self.rng, chat, &known))
        };
        self.waiting.push(client);
    }

    fn new_producer(&mut self, chat: String) {
        if self.rng.chance(self.swarm.locals) {
            return self.add_local(chat);
        }
        let producer = Producer::new(&mut self.rng, &self.swarm, chat);
        self.waiting.push(Client::Producer(producer));
    }

    /// Somebody who wants something of the agent.
    fn sender(&mut self, chat: String) -> Client {
        let index = self.rng.below(4);
        let (path, body) = match self.rng.below(12) {
            0..3 => ("send", r#","message":"x""#.to_owned()),
            3 => ("send", r#","trigger":"heartbeat""#.to_owned()),
            4 | 5 => ("steer-send", r#","message":"x""#.to_owned()),
            6 => ("retry", String::new()),
            7 => ("retry", format!(r#","message":"y","message_index":{index}"#)),
            8 => ("stop", String::new()),
            9 => ("respond", format!(r#","request_id":"{REQUEST}","option_id":"yes""#)),
            10 => ("respond", format!(r#","request_id":"{REQUEST}","cancelled":true"#)),
            _ => return Client::Observer(Observer::sending(&mut self.rng, chat)),
        };
        let body = format!(r#"{{"chat_id":"{chat}"{body}}}"#);
        Client::Sender(request(&format!("POST /chat/{path}"), "1.1", "application/json", body.as_bytes()))
    }
}

fn garbage(rng: &mut Rng) -> Vec<u8> {
    let samples: [&[u8]; 8] = [
        b"\x16\x03\x01\x02\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /chat/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        b"GET /chat/live HTTP/1.1\r\n\r\n",
        b"POST /chats/chat0/runs?stream=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nx",
        b"POST /chat/live HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"BREW /chats HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ];
    rng.pick(&samples).to_vec()
}
