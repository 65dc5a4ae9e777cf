"""Interfaces and machines that a run is published to: network namespaces of Linux, which stand for machines."""

import os
import subprocess
import sys
import time

import pytest

from test_ros2 import ENVIRONMENT, HERE, PROGRAM, end

SECONDS = 12


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Machines:
    """A rig, connected by one interface each to `near` (10.77.1.2) and to `far` (10.77.2.2)."""

    def __init__(self):
        self.names = {name: f"stereod-{name}-{os.getpid()}" for name in ("rig", "near", "far")}

    def connect(self):
        for name in self.names.values():
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for network, name in (1, "near"), (2, "far"):
            here, there = self.names["rig"], self.names[name]
            ip("link", "add", name, "netns", here, "type", "veth", "peer", "name", "rig", "netns", there)
            for machine, link, number in (here, name, 1), (there, "rig", 2):
                ip("-n", machine, "address", "add", f"10.77.{network}.{number}/24", "dev", link)
                ip("-n", machine, "link", "set", link, "up")
        # Fast DDS misses an interface whose IPv6 address is not confirmed yet.
        time.sleep(3)

    def without_multicast(self):
        for machine, link in ("rig", "near"), ("rig", "far"), ("near", "rig"), ("far", "rig"):
            ip("-n", self.names[machine], "link", "set", link, "multicast", "off")

    def remove(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)

    def start(self, name, command, **options):
        environment = ENVIRONMENT | options.pop("variables", {})
        return subprocess.Popen(["ip", "netns", "exec", self.names[name], *command], env=environment, **options)

    def heard(self, discovery, folder, near={}, far={}):
        """Messages that arrive at both, with these variables, from a run with this setting."""
        command = [PROGRAM, "run", "--demo", "--demo-size", "96x72", "-d", "32", "--headless", "--engine", "cpu",
                   "--frames", "0", "--focal", "90", "--baseline", "0.12", "--set=source.pace=realtime", "--ros2",
                   "/front", f"--set=ros2.discovery={discovery}"]
        with open(folder / "log", "w") as log:
            rig = self.start("rig", command, stderr=log)
        listener = [sys.executable, str(HERE / "heard.py"), str(SECONDS)]
        subnet = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}
        listeners = [self.start(name, listener, variables=subnet | variables, stdout=subprocess.PIPE, text=True)
                     for name, variables in (("near", near), ("far", far))]
        counts = [int(listener.communicate()[0]) for listener in listeners]
        end(rig)
        return counts


@pytest.fixture
def machines():
    made = Machines()
    try:
        try:
            made.connect()
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"there are no network namespaces: {error}")
        yield made
    finally:
        made.remove()


def test_a_run_reaches_the_networks_of_the_named_interfaces(machines, tmp_path):
    assert machines.heard("subnet", tmp_path) == [5, 5]
    assert machines.heard("10.77.2.1", tmp_path) == [0, 5]
    assert machines.heard("localhost", tmp_path) == [0, 0]


def test_without_multicast_the_others_name_the_rig(machines, tmp_path):
    machines.without_multicast()
    peers = {"ROS_STATIC_PEERS": "10.77.1.1"}
    assert machines.heard("subnet", tmp_path, near=peers) == [5, 0]


def test_addresses_of_other_machines_are_refused(tmp_path):
    command = [PROGRAM, "run", "--demo", "--headless", "--ros2", "/front", "--set=ros2.discovery=192.0.2.7"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 1 and "192.0.2.7" in done.stderr and "ip address" in done.stderr
