"""JavaScript modules as one script: each keeps a scope of its own, as it has when a browser loads it.

Only what the page's own modules use is known: `import { a, b as c } from "./other.js";` and `export` before a
function, a class or a const.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)


def joined(modules: Mapping[str, str]) -> str:
    """All modules by their names, in an order in which each comes after those that it imports."""
    return "\n".join(_scoped(name, source) for name, source in modules.items())


def _scoped(name: str, source: str) -> str:
    exported = ", ".join(found[2] for found in _EXPORT.finditer(source))
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(_destructured, source))
    return f"const ${name} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _destructured(found: re.Match[str]) -> str:
    return f"const {{{found[1].replace(' as ', ': ')}}} = ${found[2]};"
