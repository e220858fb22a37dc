"""Builds the package with the standard library alone (PEP 517), so that pip needs no network for it."""

import base64
import hashlib
import pathlib
import re
import tarfile
import zipfile

_HERE = pathlib.Path(__file__).parent
_PROJECT = dict(re.findall(r'^([\w-]+) = "(.*)"$', (_HERE / "pyproject.toml").read_text(), re.MULTILINE))
_NAME = _PROJECT["name"].replace("-", "_")
_STEM = f"{_NAME}-{_PROJECT['version']}"
_SOURCES = sorted((_HERE / _NAME).glob("*.py"))


def _metadata():
    fields = {
        "Metadata-Version": "2.1",
        "Name": _PROJECT["name"],
        "Version": _PROJECT["version"],
        "Summary": _PROJECT["description"],
        "Requires-Python": _PROJECT["requires-python"],
        "License": "Apache-2.0",
        "Description-Content-Type": "text/markdown",
    }
    head = "".join(f"{name}: {value}\n" for name, value in fields.items())
    return f"{head}\n{(_HERE / 'README.md').read_text(encoding='utf-8')}".encode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {f"{_NAME}/{source.name}": source.read_bytes() for source in _SOURCES}
    info = f"{_STEM}.dist-info"
    files[f"{info}/METADATA"] = _metadata()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: _build\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = f"{_STEM}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    sdist = f"{_STEM}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / sdist, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for file in [*_SOURCES, *(_HERE / name for name in ("README.md", "pyproject.toml", "_build.py"))]:
            archive.add(file, f"{_STEM}/{file.relative_to(_HERE)}")
    return sdist
