"""Builds the package with the standard library alone (PEP 517), so that pip needs no network for it."""

import base64
import hashlib
import io
import pathlib
import re
import tarfile
import zipfile

_HERE = pathlib.Path(__file__).parent
_TOML = (_HERE / "pyproject.toml").read_text(encoding="utf-8")
_PROJECT = dict(re.findall(r'^([\w-]+) = "(.*)"$', _TOML, re.MULTILINE))
_NAME = _PROJECT["name"].replace("-", "_")
_STEM = f"{_NAME}-{_PROJECT['version']}"
_SOURCES = sorted(file for file in (_HERE / _NAME).iterdir() if file.suffix in (".py", ".pyi", ".typed"))
# In a source archive the licence is beside this file, and in the repository at its root.
_LICENSE = next(file for file in (_HERE / "LICENSE", _HERE.parent.parent / "LICENSE") if file.exists())


def _list(name):
    [items] = re.findall(rf"^{name} = \[(.*?)\]$", _TOML, re.MULTILINE | re.DOTALL)
    return re.findall(r'"(.*?)"', items)


def _metadata():
    fields = [
        ("Metadata-Version", "2.1"),
        ("Name", _PROJECT["name"]),
        ("Version", _PROJECT["version"]),
        ("Summary", _PROJECT["description"]),
        ("Keywords", ",".join(_list("keywords"))),
        ("License", re.search(r'^license = \{ text = "(.*)" \}$', _TOML, re.MULTILINE)[1]),
        *(("Classifier", classifier) for classifier in _list("classifiers")),
        ("Requires-Python", _PROJECT["requires-python"]),
        ("Description-Content-Type", "text/markdown"),
    ]
    head = "".join(f"{name}: {value}\n" for name, value in fields)
    return f"{head}\n{(_HERE / 'README.md').read_text(encoding='utf-8')}".encode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {f"{_NAME}/{source.name}": source.read_bytes() for source in _SOURCES}
    info = f"{_STEM}.dist-info"
    files[f"{info}/METADATA"] = _metadata()
    files[f"{info}/LICENSE"] = _LICENSE.read_bytes()
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
    others = ("README.md", "CHANGELOG.md", "pyproject.toml", "_build.py", "example.py")
    with tarfile.open(pathlib.Path(sdist_directory) / sdist, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for file in [*_SOURCES, *(_HERE / name for name in others)]:
            archive.add(file, f"{_STEM}/{file.relative_to(_HERE)}")
        archive.add(_LICENSE, f"{_STEM}/LICENSE")
        metadata = tarfile.TarInfo(f"{_STEM}/PKG-INFO")
        metadata.size = len(_metadata())
        archive.addfile(metadata, io.BytesIO(_metadata()))
    return sdist
