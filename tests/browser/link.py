"""A slow link to a server, and proxies in front of it."""

import re
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs" / "remote.md"


class SlowLink:
    """Takes `rate` bytes a second from a server, which may change."""

    def __init__(self, port, rate):
        self.rate, self.target = rate, ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            for way in [(client, server, False), (server, client, True)]:
                threading.Thread(target=self.pass_on, args=way, daemon=True).start()

    def pass_on(self, source, sink, is_slow):
        try:
            while part := source.recv(max(self.rate // 20, 1) if is_slow else 65536):
                sink.sendall(part)
                if is_slow:
                    time.sleep(len(part) / self.rate)
        except OSError:
            pass
        sink.close()
        source.close()


def block(language):
    """The first block of the documentation in this language."""
    return re.search(rf"```{language}\n(.*?)```", DOCS.read_text(), re.S)[1]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def certificate(folder, name):
    files = folder / "rig.key", folder / "rig.crt"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
               "-addext", f"subjectAltName=DNS:{name}", "-keyout", files[0], "-out", files[1]]
    subprocess.run(command, check=True, capture_output=True)
    return files


def nginx(folder, name, port, upstream):
    """The command of nginx with the block of the documentation."""
    key, crt = certificate(folder, name)
    location = block("nginx").replace("127.0.0.1:8080", f"127.0.0.1:{upstream}")
    (folder / "nginx.conf").write_text(f"""
        daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
        events {{}}
        http {{
            access_log off;
            {"".join(f"{what}_temp_path {folder}/{what};" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))}
            server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {crt}; ssl_certificate_key {key};
            {location} }}
        }}""")
    return ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "nginx.log")]


def caddy(folder, name, port, upstream):
    """The command of Caddy with the block of the documentation."""
    key, crt = certificate(folder, name)
    site = block("caddy").replace("127.0.0.1:8080", f"127.0.0.1:{upstream}").replace("rig.example.org", f"{name}:{port}")
    site = site.replace("{\n", f"{{\n    tls {crt} {key}\n", 1)
    (folder / "Caddyfile").write_text("{\n    admin off\n    auto_https off\n}\n" + site)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]

