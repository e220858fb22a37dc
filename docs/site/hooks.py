"""The site has the repository's paths: its Markdown files, and the files that they link to. So each link works in both.
docs/api is the reference of the HTTP API, which docs/openapi/reference.mjs writes."""
import posixpath
import re
import subprocess
import tempfile
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = 'docs/api'
generated = tempfile.TemporaryDirectory()


def slug(heading, separator):
    """The anchor of a heading, as web hosts of repositories form it."""
    return re.sub(r'[^\w\- ]', '', heading.strip().lower()).replace(' ', separator)


def on_config(config):
    config['mdx_configs']['toc']['slugify'] = slug
    return config


def on_files(files, config):
    command = ['git', 'ls-files', '-co', '--exclude-standard', '*.md']
    paths = set(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split())
    for page in sorted(paths):
        for target in re.findall(r'\]\(([^)\s:#]+)', (ROOT / page).read_text()):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
            if (ROOT / path).is_file():
                paths.add(path)
    themes = [file for file in files if not Path(file.abs_src_path).is_relative_to(ROOT)]
    pages = [File(path, ROOT, config['site_dir'], config['use_directory_urls']) for path in sorted(paths)]
    subprocess.run(['node', ROOT / 'docs/openapi/reference.mjs', Path(generated.name, REFERENCE)], check=True)
    reference = [File(f'{REFERENCE}/{page.name}', generated.name, config['site_dir'], config['use_directory_urls'])
                 for page in sorted(Path(generated.name, REFERENCE).iterdir())]
    return Files(themes + pages + reference)
