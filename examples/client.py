#!/usr/bin/env python3
"""Renders one picture with a worker of mandelq: client.py ENDPOINT FILE.png [KEY=JSON...]

Written from mandelq-protocol(7) alone, and needs pyzmq. A key is a setting of mandelq-job(5):
client.py ipc:///run/mandelq/mandelqd.sock set.png width=800 height=600 'palette="ocean"'
"""
import hashlib, json, os, sys, time, uuid, zlib
import zmq

FINAL = ("done", "failed", "cancelled")


class Worker:
    def __init__(self, endpoint):
        self.endpoint, self.seq, self.socket = endpoint, 0, None

    def call(self, verb, **args):
        """The result of a verb, and the second frame where there is one."""
        self.seq += 1
        request = {"mandelq": 1, "seq": self.seq, "verb": verb, "args": args}
        for _ in range(5):  # no answer: the same request again, over a new connection
            if self.socket is None:
                self.socket = zmq.Context.instance().socket(zmq.DEALER)
                self.socket.linger = 0
                self.socket.connect(self.endpoint)
            self.socket.send(json.dumps(request).encode())
            while self.socket.poll(2000):
                head, *body = self.socket.recv_multipart()
                reply = json.loads(head)
                if reply["seq"] != self.seq:
                    continue  # to an earlier request
                if reply["status"] != "ok":
                    sys.exit(f"{verb}: {reply['status']}: {reply['error']}")
                return reply["result"], (body[0] if body else b"")
            self.socket.close()
            self.socket = None
        sys.exit(f"{verb}: no worker answers at {self.endpoint}")


def main(endpoint, path, *settings):
    worker = Worker(endpoint)
    job = {key: json.loads(value) for key, value in (s.split("=", 1) for s in settings)}
    number = worker.call("submit", job=job, request_id=str(uuid.uuid4()))[0]["id"]
    while (row := worker.call("status", ids=[number])[0]["jobs"][0])["state"] not in FINAL:
        time.sleep(0.2)
    if row["state"] != "done":
        sys.exit(f"job {number} {row['state']}: {row['error']}")
    opened, digest, offset = worker.call("open", id=number, what="picture")[0], hashlib.sha256(), 0
    with open(path + ".part", "wb") as out:
        while offset < opened["bytes"]:
            said, data = worker.call("read", handle=opened["handle"], offset=offset, length=1 << 20)
            if not data or len(data) != said["bytes"] or zlib.crc32(data) != said["crc32"]:
                sys.exit(f"{path}: damaged on its way, at byte {offset}")
            out.write(data)
            digest.update(data)
            offset += len(data)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != opened["sha256"]:
        sys.exit(f"{path}: not the picture that was opened")
    os.replace(path + ".part", path)
    worker.call("close", handle=opened["handle"], kept=True)  # the worker may remove its own from now on


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
