#!/usr/bin/env python3
"""A scripted ACP agent that can be as odd as no real one should be. It needs nothing but Python 3.

Its arguments choose how it opens a conversation, the first word of a prompt what it does then; both are listed below.
"""

import json
import os
import subprocess
import sys
import time

# Arguments.
#   version    speaks version 2           refuse     refuses to initialize     auth     wants somebody to log in
#   load       can load a conversation    greet      begins with a greeting on stdout
#   files      takes images and resources late       tells of its commands and of the past before the prompt
#   gone       knows no session at the prompt        mute     never answers initialize
FLAGS = set(sys.argv[1:])

out = sys.stdout.buffer
session = "none"


def write(line):
    out.write(line + b"\n")
    out.flush()


def send(**message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode())


def update(session_update, **members):
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": session_update, **members}})


def say(text, kind="agent_message_chunk"):
    update(kind, content={"type": "text", "text": text})


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(method, params):
    """Sends a request and waits for its answer; a cancel that comes before is remembered."""
    send(id="ask-1", method=method, params=params)
    while True:
        message = read()
        if message.get("id") == "ask-1":
            return message.get("result") or message["error"]
        if message.get("method") == "session/cancel":
            ask.cancelled = True


ask.cancelled = False


def text(words, prompt):
    say("Hel")
    say("")
    say("lo")


def thought(words, prompt):
    say("Hm", "agent_thought_chunk")
    say("Yes")


def tools(words, prompt):
    update("plan", entries=[])
    update("tool_call", toolCallId="t1", title="Read", rawInput={"path": "/a"})
    update("tool_call", toolCallId="t2", title="List", rawInput={})
    update("tool_call_update", toolCallId="t1", status="in_progress")
    say("Both run.")
    content = [{"type": "content", "content": {"type": "text", "text": "42"}}]
    update("tool_call_update", toolCallId="t1", status="completed", content=content)
    update("tool_call_update", toolCallId="t3", status="failed", rawOutput={"no": 1})


def permission(words, prompt):
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    params = {"sessionId": session, "toolCall": {"toolCallId": "t1", "title": "Write"}, "options": options}
    say("May I?")
    answer = ask("session/request_permission", params)
    say(json.dumps(answer))
    return "cancelled" if ask.cancelled else "end_turn"


def form(words, prompt):
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"sessionId": session, "mode": "form", "message": "Who?", "requestedSchema": schema}
    say(json.dumps(ask("elicitation/create", params)))
    say(json.dumps(ask("elicitation/create", {**params, "mode": "url"})["code"]))


def other(words, prompt):
    say(json.dumps(ask("fs/read_text_file", {"sessionId": session, "path": "/etc/hosts"})["code"]))


def hang(words, prompt):
    say("One moment")
    time.sleep(60)


def slow(words, prompt):
    say("Wait")
    while read().get("method") != "session/cancel":
        pass
    say("this comes too late")
    return "cancelled"


def die(words, prompt):
    say("Oh")
    print("first words", file=sys.stderr)
    print("out of cheese", file=sys.stderr)
    sys.stderr.flush()
    sys.exit(3)


def close(words, prompt):
    os.close(1)
    time.sleep(60)


def error(words, prompt):
    say("Hm")
    return {"code": -32603, "message": "Internal error", "data": {"details": "no cheese"}}


def badjson(words, prompt):
    write(b"Loading the cheese")
    write(b"")
    write(b"\xff\xfe")
    write(b"[1]")
    write(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"\\ud83d"}}')
    write(b'{"jsonrpc":"2.0","id":77,"result":{}}')
    write(b'{"jsonrpc":"2.0","method":"_new/thing","params":{}}')
    other_session = {"sessionId": "another", "update": {"sessionUpdate": "plan", "entries": []}}
    send(method="session/update", params=other_session)
    send(id="odd", method="session/request_permission", params={"options": 7})
    say("half \ud83d")


def long(words, prompt):
    write(b"x" * ((16 << 20) + 1))


def stop(words, prompt):
    return words[1]


def odd(words, prompt):
    """Gives no reason why it stopped."""
    return odd


def child(words, prompt):
    """Leaves a process behind that holds a connection to the port that the prompt names."""
    script = "import socket,sys,time; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.send(b'x'); time.sleep(60)"
    subprocess.Popen([sys.executable, "-c", script, words[1]])
    say("started")
    return "end_turn"


def show(words, prompt):
    say(json.dumps(prompt))


def past(words, prompt):
    """Talks on after the end of its turn."""
    return past

ACTS = [text, thought, tools, permission, form, other, hang, slow, die, close, error, badjson, long, stop, odd, child, show, past]


def prompt(request, params):
    ask.cancelled = False
    if "gone" in FLAGS:
        return send(id=request, error={"code": -32002, "message": "Resource not found"})
    words = params["prompt"][0]["text"].split()
    act = next(act for act in ACTS if act.__name__ == words[0])
    stop_reason = act(words, params["prompt"])
    if stop_reason is odd:
        send(id=request, result={})
    elif isinstance(stop_reason, dict):
        send(id=request, error=stop_reason)
    elif stop_reason is past:
        send(id=request, result={"stopReason": "end_turn"})
        say("too late")
        update("usage_update", used=1)
    else:
        send(id=request, result={"stopReason": stop_reason or "end_turn"})


def replay():
    say("an old question", "user_message_chunk")
    say("an old answer")
    update("available_commands_update", availableCommands=[])


def serve(request, method, params):
    global session
    if method == "initialize":
        if "mute" in FLAGS:
            return
        if "refuse" in FLAGS:
            return send(id=request, error={"code": -32603, "message": "not today"})
        files = {"image": True, "embeddedContext": True} if "files" in FLAGS else {}
        can = {"loadSession": "load" in FLAGS, "promptCapabilities": files}
        send(id=request, result={"protocolVersion": 2 if "version" in FLAGS else 1, "agentCapabilities": can})
    elif method == "session/new":
        if "auth" in FLAGS:
            return send(id=request, error={"code": -32000, "message": "Authentication required"})
        session = "new"
        if "late" in FLAGS:
            replay()
        send(id=request, result={"sessionId": session})
    elif method == "session/load":
        if params["sessionId"] != "known":
            return send(id=request, error={"code": -32002, "message": "Resource not found"})
        session = "known"
        replay()
        send(id=request, result=None)
    elif method == "session/prompt":
        prompt(request, params)


if "greet" in FLAGS:
    write(b"Welcome to the agent!")
while True:
    message = read()
    if "id" in message and "method" in message:
        serve(message["id"], message["method"], message["params"])
