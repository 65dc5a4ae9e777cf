"""Statistics of runs against the JSON Schema that the program prints."""

import json

import jsonschema
import pytest

from conftest import generated, stereod, write_pngs


def closed(schema):
    """The schema, refusing keys that it does not name."""
    if isinstance(schema, dict):
        schema = {key: closed(value) for key, value in schema.items()}
        if "properties" in schema:
            schema["additionalProperties"] = False
    elif isinstance(schema, list):
        schema = [closed(value) for value in schema]
    return schema


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    schema = json.loads(stereod("schema", folder=tmp_path_factory.mktemp("schema"))[0])
    jsonschema.Draft202012Validator.check_schema(schema)
    return closed(schema)


DEMO = ["--demo", "--demo-size", "96x64", "--frames", 12]
IMAGES = ["--left", "left/%06d.png", "--right", "right/%06d.png"]


@pytest.mark.parametrize("arguments", [
    DEMO + ["--record", "o.mkv", "--preview", "o.mp4", "--pictures", "p"],
    DEMO + ["--temporal", "denoise"],
    IMAGES + ["-d", 8],
    IMAGES + ["--set", "source.pace=realtime", "--focal", 300, "--baseline", 0.1, "--depth", "--record", "o.mcap"],
])
def test_statistics_follow_the_schema(arguments, schema, tmp_path):
    write_pngs(tmp_path, generated())
    statistics = json.loads(stereod("run", *arguments, "--headless", "--stats", "-", folder=tmp_path)[0])
    jsonschema.validate(statistics, schema)
    assert statistics["matched"] > 0


def test_a_failed_run_follows_the_schema(schema, tmp_path):
    write_pngs(tmp_path, generated())
    (tmp_path / "left" / "000003.png").write_bytes(b"no image")
    (tmp_path / "left" / "000004.png").write_bytes(b"no image")
    out, _ = stereod("run", *IMAGES, "--headless", "--stats", "-", folder=tmp_path, status=1)
    jsonschema.validate(json.loads(out), schema)


def test_a_missing_key_is_noticed(schema, tmp_path):
    statistics = json.loads(stereod("run", *DEMO, "--headless", "--stats", "-", folder=tmp_path)[0])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(statistics | {"colour": 1}, schema)
    del statistics["known"], statistics["pairs"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(statistics, schema)
